/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Enlightened VMCSs for L0 itself. The page of the current one is mapped behind the CPU's structure, at a
 * fixed distance from GS, so that a VMREAD becomes one load and a VMWRITE one store and the clearing of the
 * field's clean bit. What a field's place is, hyperv/evmcs tells.
 */
#include "hyperv/client.h"
#include "hv/cpu.h"
#include "hv/lib.h"
#include "hv/panic.h"
#include "hv/tlb.h"
#include "hv/vmcs.h"
#include "hv/x86.h"
#include "hyperv/assist.h"
#include "hyperv/call.h"
#include "hyperv/evmcs.h"
#include "hyperv/interface.h"
#include "hyperv/patch.h"
#include "mm/hostpt.h"
#include "mm/palloc.h"
#include "nested/enlightened.h"

#define ECX1_HYPERVISOR BIT32(31)
/* The MSRs for the assist page and the hypercall page. */
#define ACCESS_NEEDED (ACCESS_INTR_CONTROL | ACCESS_HYPERCALL)
/* TLFS "Reporting the Guest OS Identity": open source, of no listed type. */
#define OS_ID (BIT(63) | 0x7full << 56 | 1)

#define ROUTINES_SIZE (3 * PAGE_SIZE)

/* The page of the current VMCS, as this CPU sees it. */
static u8 *window_of(struct cpu *c)
{
	return (u8 *)c + PAGE_SIZE;
}

/* Where a field is, by its key (hv/vmcs.h): place in the low bits, clean group above; 0: nowhere. */
#define PLACE_BITS 10
static u16 places[VMCS_KEYS];
/* The last page is the hypervisor's, which writes the way to call it there. */
static u8 routines[ROUTINES_SIZE + PAGE_SIZE] __attribute__((aligned(4096), section(".bss.pages")));

/* TLFS "Partition Assist Page": no locks, so L2 goes on when its flush is done. */
static u8 partition_assist[PAGE_SIZE] __attribute__((aligned(4096), section(".bss.pages")));
static u32 features; /* of LEAF_NESTED */

bool hv_client;

void hv_any_read(void);
void hv_any_write(void);
void hv_current_changed(void);
void hv_vmclear(void);
u64 hv_read(u32 field);
void hv_write(u32 field, u64 value);
void hv_use(void);
void hv_clear(const u64 *operand);

bool hv_client_offered(void)
{
	u32 versions;

	if (!(cpuid(1, 0).ecx & ECX1_HYPERVISOR) || cpuid(LEAF_VENDOR, 0).eax < LEAF_NESTED ||
	    cpuid(LEAF_INTERFACE, 0).eax != INTERFACE_HV1 ||
	    (cpuid(LEAF_FEATURES, 0).eax & ACCESS_NEEDED) != ACCESS_NEEDED ||
	    !(cpuid(LEAF_RECOMMENDATIONS, 0).eax & USE_ENLIGHTENED_VMCS))
		return false;
	versions = cpuid(LEAF_NESTED, 0).eax; /* the lowest, the highest */
	return (versions & 0xff) <= EVMCS_VERSION && (versions >> 8 & 0xff) >= EVMCS_VERSION;
}

static void find_places(void)
{
	for (u32 key = 0; key < VMCS_KEY_CLEAR; key++) {
		struct vmcs12_field f;
		u16 at;
		u8 bytes;

		if (vmcs12_lookup(VMCS_KEY_FIELD(key), &f) && evmcs_find(&f, &at, &bytes))
			places[key] = (u16)(at | f.group << PLACE_BITS);
	}
}

/* Bytes of a field by bits 14:13 of its encoding. */
static u8 width_of(u32 key)
{
	static const u8 bytes[] = {2, 8, 4, 8};

	return bytes[key >> 7];
}

static struct patch_field field_at(u32 key)
{
	u32 place = places[key], group = place >> PLACE_BITS, page = PAGE_SIZE;

	return (struct patch_field){
		.disp = page + (place & MASK(PLACE_BITS)),
		.bytes = width_of(key),
		.clean_disp = page + EVMCS_CLEAN_FIELDS + group / 8,
		.clean_mask = group < GROUP_ENLIGHTENMENTS ? (u8)(1u << group % 8) : 0,
	};
}

/* VMPTRLD and VMCLEAR: a call instead. */
static void patch_instruction(u8 *code, const void *target)
{
	patch_call(code, (unsigned)(vmcs_site_branch(code) - code) + VMCS_BRANCH, target);
}

/* One site. Returns the end of the routines. Fields without a place keep their instruction: nothing uses them
 * where the capability MSRs do not offer what they belong to. */
static u8 *patch_site(u32 record, u8 *end)
{
	u32 key = record >> VMCS_SITE_SHIFT;
	u8 *code = vmcs_site_code(record), *start = end;
	struct patch_field f = field_at(key);
	struct patch_site s;

	if (key == VMCS_KEY_LOAD || key == VMCS_KEY_CLEAR) {
		patch_instruction(code, key == VMCS_KEY_LOAD ? hv_current_changed : hv_vmclear);
		return end;
	}
	BUG_ON(!patch_decode(code, &s) || end > routines + ROUTINES_SIZE - PATCH_ROUTINE);
	if (key == VMCS_KEY_ANY) {
		end = patch_any_routine(end, &s, s.kind == SITE_READ ? hv_any_read : hv_any_write);
	} else if (!places[key]) {
		return end;
	} else if (!s.memory && (s.kind == SITE_READ || !f.clean_mask)) {
		patch_move(code, &s, &f);
		return end;
	} else {
		end = patch_routine(end, &s, &f);
	}
	patch_call(code, s.size, start);
	return end;
}

/* Instead of invept_single. For all CPUs, which is more than is asked for. TLFS
 * "HvCallFlushGuestPhysicalAddressSpace": the address of the EPT's root, no flags; fast input. */
static void flush_mappings(u64 eptp)
{
	u64 control = HV_FLUSH_GPA_SPACE | CALL_FAST, space = eptp & PAGE_MASK, status;
	register u64 flags asm("r8") = 0;

	asm volatile("call *%[call]"
		     : "=a"(status), "+c"(control), "+d"(space), "+r"(flags)
		     : [call] "r"(routines + ROUTINES_SIZE)
		     : "r9", "r10", "r11", "cc", "memory");
	if ((u16)status != HV_SUCCESS)
		invept(INV_ALL, 0);
}

void hv_client_patch(void)
{
	u8 *end = routines;

	find_places();
	for (const u32 *record = vmcs_sites; record < vmcs_sites_end; record++)
		end = patch_site(*record, end);
	features = cpuid(LEAF_NESTED, 0).eax;
	if (features & NESTED_MAPPING_FLUSH)
		patch_jump((u8 *)(uintptr_t)invept_single, (const void *)(uintptr_t)flush_mappings);
	vmcs_format = EVMCS_VERSION;
	hv_client = true;
}

void hv_client_protect(void)
{
	if (hv_client)
		hostpt_make_code(routines, sizeof(routines));
}

bool hv_client_cpu(void)
{
	struct cpu *c = this_cpu();

	if (!hv_client)
		return true;
	c->assist = page_alloc();
	if (!c->assist)
		return false;
	c->evmcs_entry = hostpt_window(window_of(c));
	if (c == cpus[0]) { /* the interface is the machine's */
		wrmsr(HV_MSR_GUEST_OS_ID, OS_ID);
		wrmsr(HV_MSR_HYPERCALL, ptr_hpa(routines + ROUTINES_SIZE).v | HV_PAGE_ENABLE);
	}
	wrmsr(HV_MSR_VP_ASSIST_PAGE, ptr_hpa(c->assist).v | HV_PAGE_ENABLE);
	return true;
}

/* What the hypervisor below need not ask us for. TLFS "Enlightened MSR Bitmap", "Direct Virtual Flush". */
static u32 controls(const struct vmcs *vmcs)
{
	return (vmcs->steady_bitmap ? ENLIGHTENED_MSR_BITMAP : 0) |
	       (vmcs->vm_id && features & NESTED_DIRECT_FLUSH ? ENLIGHTENED_NESTED_FLUSH : 0);
}

/* Instead of VMPTRLD: this_cpu()->current has changed. */
void hv_use(void)
{
	struct cpu *c = this_cpu();
	const struct vmcs *vmcs = c->current;
	struct assist_page *assist = c->assist;
	u8 *window = window_of(c);
	hpa_t page = ptr_hpa(vmcs->page);

	hostpt_window_set(c->evmcs_entry, window, page);
	EVMCS_AT(u32, window, EVMCS_CONTROL) = controls(vmcs);
	EVMCS_AT(u32, window, EVMCS_VP_ID) = vmcs->vp_id;
	EVMCS_AT(u64, window, EVMCS_VM_ID) = vmcs->vm_id;
	EVMCS_AT(u64, window, EVMCS_PARTITION_ASSIST) = ptr_hpa(partition_assist).v;
	assist->nested_features = ASSIST_DIRECT_HYPERCALL;
	assist->current_nested_vmcs = page.v;
	assist->enlighten_vmentry = 1;
}

/* Instead of VMCLEAR: nothing of the page is known to the hypervisor below when it is used again. */
void hv_clear(const u64 *operand)
{
	bool failed;

	EVMCS_AT(u32, *operand, EVMCS_CLEAN_FIELDS) = 0;
	asm volatile("vmclear %1" : "=@ccbe"(failed) : "m"(*operand) : "memory");
	BUG_ON(failed);
}

static volatile void *place_of(u32 field)
{
	u32 place = places[VMCS_KEY(field)];

	BUG_ON(!place);
	return window_of(this_cpu()) + (place & MASK(PLACE_BITS));
}

/* A VMREAD whose field the compiler did not know. */
u64 hv_read(u32 field)
{
	volatile void *at = place_of(field);

	switch (width_of(VMCS_KEY(field))) {
	case 2:
		return *(volatile u16 *)at;
	case 4:
		return *(volatile u32 *)at;
	default:
		return *(volatile u64 *)at;
	}
}

void hv_write(u32 field, u64 value)
{
	volatile void *at = place_of(field);
	u32 group = places[VMCS_KEY(field)] >> PLACE_BITS;

	switch (width_of(VMCS_KEY(field))) {
	case 2:
		*(volatile u16 *)at = (u16)value;
		break;
	case 4:
		*(volatile u32 *)at = (u32)value;
		break;
	default:
		*(volatile u64 *)at = value;
	}
	if (group < GROUP_ENLIGHTENMENTS)
		EVMCS_AT(u32, window_of(this_cpu()), EVMCS_CLEAN_FIELDS) &= ~BIT32(group);
}
