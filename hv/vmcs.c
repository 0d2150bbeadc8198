/* SPDX-License-Identifier: Apache-2.0 */
/* VMCS regions: making, clearing, making current; and the dump of the current one. */
#include "hv/vmcs.h"
#include "hv/cpu.h"
#include "hv/lib.h"
#include "hv/print.h"
#include "hv/symbols.h"
#include "hv/x86.h"
#include "mm/palloc.h"

/* This file is built for speed, but for these. */
#define COLD __attribute__((cold))

u32 vmcs_format;

/* The operand is the region's machine address, which is what `page` holds. */
static inline void vmptrld(const struct vmcs *vmcs)
{
	asm volatile("1: vmptrld (%[a])\n\t" VMCS_SITE
		     :
		     : [a] "r"(&vmcs->page), VMCS_SITE_KEY(VMCS_KEY_LOAD)
		     : "cc", "memory");
}

static void vmclear(const struct vmcs *vmcs)
{
	asm volatile("1: vmclear (%[a])\n\t" VMCS_SITE
		     :
		     : [a] "D"(&vmcs->page), VMCS_SITE_KEY(VMCS_KEY_CLEAR)
		     : "cc", "memory");
}

COLD bool vmcs_create(struct vmcs *vmcs)
{
	u32 *page = page_alloc();

	if (!page)
		return false;
	*page = vmcs_format ? vmcs_format : (u32)rdmsr(MSR_VMX_BASIC) & 0x7fffffffu;
	*vmcs = (struct vmcs){.page = page};
	return true;
}

/* SDM "Software Use of Virtual-Machine Control Structures": only VMCLEAR brings the data to memory and the
 * launch state to clear (entry.S finds out). */
void vmcs_clear(struct vmcs *vmcs)
{
	struct cpu *c = this_cpu();

	BUG_ON(vmcs->cpu && vmcs->cpu != c);
	vmclear(vmcs);
	vmcs->cpu = NULL;
	if (c->current == vmcs)
		c->current = NULL;
}

/* VMPTRLD; hyperv/client wants `current` set. */
static inline void make_current(struct cpu *c, struct vmcs *vmcs)
{
	c->current = vmcs;
	vmptrld(vmcs);
}

/* Clear it, because it is active nowhere; then make it current. */
static __attribute__((noinline)) void first_load(struct vmcs *vmcs)
{
	struct cpu *c = this_cpu();

	BUG_ON(vmcs->cpu);
	vmclear(vmcs);
	vmcs->cpu = c;
	make_current(c, vmcs);
}

void vmcs_load(struct vmcs *vmcs)
{
	struct cpu *c = this_cpu();

	if (c->current == vmcs)
		return;
	if (likely(vmcs->cpu == c))
		make_current(c, vmcs);
	else
		first_load(vmcs);
}

/* The site whose branch goes to `target`; 0: none. */
static COLD u64 site_of(u64 target)
{
	for (const u32 *s = vmcs_sites; s < vmcs_sites_end; s++) {
		const u8 *code = vmcs_site_code(*s);
		const u8 *branch = vmcs_site_branch(code);
		s32 rel;

		if (!branch)
			continue;
		memcpy(&rel, branch + 2, sizeof(rel));
		if ((uintptr_t)branch + VMCS_BRANCH + (u64)(s64)rel == target)
			return (uintptr_t)code;
	}
	return 0;
}

COLD void vmcs_access_failed(void)
{
	u64 rip = site_of((uintptr_t)__builtin_return_address(0) - 5); /* the length of a CALL */
	char name[SYMBOL_MAX] = "?";
	u64 offset = 0;

	symbol_at(rip, name, &offset);
	panic("VMX instruction failed in %s+%#llx (%#llx)", name, (unsigned long long)offset,
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
COLD void vmcs_dump(void)
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
#define TYPE(enc) ((enc) >> 10 & 3)
#define TYPE_INFO 1u

COLD void vmcs_prove(void)
{
	if (vmcs_format)
		return; /* hyperv/client has a place for each field, or keeps its instruction */
	for (const u32 *s = vmcs_sites; s < vmcs_sites_end; s++) {
		u32 field = VMCS_KEY_FIELD(*s >> VMCS_SITE_SHIFT);

		if (vmcs_site_branch(vmcs_site_code(*s)))
			continue;
		if (TYPE(field) == TYPE_INFO)
			vmcs_read_raw(field);
		else
			vmcs_write_raw(field, vmcs_read_raw(field));
	}
}
