/* SPDX-License-Identifier: Apache-2.0 */
/* VMCS regions: making, clearing, making current; and the dump of the current one. */
#include "hv/vmcs.h"
#include "hv/cpu.h"
#include "hv/lib.h"
#include "hv/print.h"
#include "hv/symbols.h"
#include "hv/x86.h"
#include "mm/palloc.h"

/* The operand is the region's machine address, which is what `page` holds. */
static bool vmptrld(const struct vmcs *vmcs)
{
	bool fail;

	asm volatile("vmptrld %1" : "=@ccbe"(fail) : "m"(vmcs->page) : "memory");
	return !fail;
}

static bool vmclear(hpa_t a)
{
	bool fail;

	asm volatile("vmclear %1" : "=@ccbe"(fail) : "m"(a.v) : "memory");
	return !fail;
}

bool vmcs_create(struct vmcs *vmcs)
{
	u32 *page = page_alloc();

	if (!page)
		return false;
	*page = (u32)rdmsr(MSR_VMX_BASIC) & 0x7fffffffu;
	*vmcs = (struct vmcs){.page = page};
	return true;
}

/* SDM "Software Use of Virtual-Machine Control Structures": only VMCLEAR brings the data to memory and the
 * launch state to clear (entry.S finds out). */
void vmcs_clear(struct vmcs *vmcs)
{
	struct cpu *c = this_cpu();

	BUG_ON(vmcs->cpu && vmcs->cpu != c);
	BUG_ON(!vmclear(ptr_hpa(vmcs->page)));
	vmcs->cpu = NULL;
	if (c->current == vmcs)
		c->current = NULL;
}

/* Clear it, when it is active nowhere; then make it current. */
static __attribute__((noinline)) void first_load(struct vmcs *vmcs)
{
	struct cpu *c = this_cpu();

	if (!vmcs->cpu) {
		BUG_ON(!vmclear(ptr_hpa(vmcs->page)));
		vmcs->cpu = c;
	}
	BUG_ON(vmcs->cpu != c);
	BUG_ON(!vmptrld(vmcs));
	c->current = vmcs;
}

void vmcs_load(struct vmcs *vmcs)
{
	struct cpu *c = this_cpu();
	bool fail;

	if (c->current == vmcs)
		return;
	if (unlikely(vmcs->cpu != c)) {
		first_load(vmcs);
		return;
	}
	/* The pointer to the page is its machine address. */
	asm volatile("vmptrld %1" : "=@ccbe"(fail) : "m"(vmcs->page) : "memory");
	if (unlikely(fail)) {
		first_load(vmcs); /* which finds it out again, and says so */
		return;
	}
	c->current = vmcs;
}

void vmcs_access_failed(u64 rip)
{
	char name[SYMBOL_MAX] = "?";
	u64 offset = 0;

	symbol_at(rip, name, &offset);
	panic("VMREAD or VMWRITE failed in %s+%#llx (%#llx)", name, (unsigned long long)offset,
	      (unsigned long long)rip);
}

/* Encodings and, in the same order, names with a zero behind each: half the size of an array of pointers. */
static const u16 encodings[] = {
#define X(width, NAME, enc, member, cap) (enc),
	VMCS_FIELDS(X)
#undef X
};
static const char names[] =
#define X(width, NAME, enc, member, cap) #member "\0"
	VMCS_FIELDS(X)
#undef X
	;

/* For panic: must not fail on a field this CPU lacks, nor without a current VMCS. */
void vmcs_dump(void)
{
	const char *name = names;

	for (size_t i = 0; i < ARRAY_SIZE(encodings); i++, name += strlen(name) + 1) {
		u64 value;
		bool fail;

		asm volatile("vmread %2, %1"
			     : "=@ccbe"(fail), "=r"(value)
			     : "r"((u64)encodings[i])
			     : "memory");
		if (!fail)
			log_error("  %04x %-24s %016llx", encodings[i], name, (unsigned long long)value);
	}
}

/* SDM "Field Encoding in VMCS", bits 11:10. */
#define TYPE(enc)  ((enc) >> 10 & 3)
#define TYPE_INFO  1u
#define TYPE_GUEST 2u

/* By the list's capabilities. */
static bool is_everywhere(u32 enc)
{
	switch (enc) {
	case VMCS_GUEST_INTR_STATUS ... VMCS_PML_INDEX:
	case VMCS_GUEST_PHYS:
	case VMCS_GUEST_PAT ... VMCS_GUEST_BNDCFGS:
	case VMCS_PREEMPT_TIMER:
	case VMCS_GUEST_S_CET ... VMCS_GUEST_SSP_TABLE:
		return false;
	default:
		return TYPE(enc) == TYPE_INFO || TYPE(enc) == TYPE_GUEST;
	}
}

void vmcs_prove(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(encodings); i++) {
		u32 enc = encodings[i];

		if (!is_everywhere(enc))
			continue;
		if (TYPE(enc) == TYPE_GUEST)
			vmcs_write_raw(enc, vmcs_read_raw(enc));
		else
			vmcs_read_raw(enc);
	}
}
