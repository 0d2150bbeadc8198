/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VMREAD and VMWRITE over all encodings: which exist, widths, high halves, read-only fields, bad encodings,
 * no current VMCS; and the capability MSRs that describe all this. SDM "VMREAD", "VMWRITE", "VMX Capability
 * Reporting Facility".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: VMCS fields and capabilities";

static u64 vmcs;

enum { WIDTH_16, WIDTH_64, WIDTH_32, WIDTH_NATURAL };

static u64 width_mask(u32 field)
{
	static const u64 masks[] = {0xffff, ~0ul, 0xffffffff, ~0ul};

	return masks[field >> 13 & 3];
}

static bool read_only(u32 field)
{
	return (field >> 10 & 3) == 1;
}

/* Some CPUs keep only the defined bits of access-rights fields, bit 0 of link pointers and the like: the SDM
 * allows it. */
static bool is_access_rights(u32 field)
{
	return field >= VMCS_GUEST_ES_AR && field <= VMCS_GUEST_TR_AR;
}

static void scan(void)
{
	u32 bad_width = 0, bad_high = 0, bad_read_only = 0, strange = 0, found = 0, highest = 0;
	bool may_write_all = rdmsr(MSR_VMX_MISC) & BIT(29);

	for (u32 field = 0; field < 0x8000; field++) {
		u64 pattern = 0xa5a5a5a5a5a5a5a5, got = 0;
		u32 result = vmread_try(field, &got);

		if (result == VMFAIL_VALID(12))
			continue;
		strange += result != VM_OK;
		found++;
		if ((field >> 1 & 0x1ff) > highest)
			highest = field >> 1 & 0x1ff;
		if (field & 1) {
			bad_high += (field >> 13 & 3) != WIDTH_64;
			continue;
		}
		if (read_only(field) && !may_write_all) {
			bad_read_only += vmwrite_try(field, pattern) != VMFAIL_VALID(13);
			continue;
		}
		if (vmwrite_try(field, pattern) != VM_OK) {
			strange++;
			continue;
		}
		vmread_try(field, &got);
		if (got != (pattern & width_mask(field)) && !is_access_rights(field))
			bad_width++;
	}
	expect_eq("scan-only-success-or-12", strange, 0);
	expect_true("scan-found-fields", found > 100);
	expect_eq("scan-widths", bad_width, 0);
	expect_eq("scan-high-only-64-bit", bad_high, 0);
	expect_eq("scan-read-only", bad_read_only, 0);
	expect_true("enum-covers-all", (rdmsr(MSR_VMX_VMCS_ENUM) >> 1 & 0x1ff) >= highest);
}

/* The fields every L1 system relies on, whatever the optional features. */
static void always_there(void)
{
	static const u16 fields[] = {
		VMCS_GUEST_ES_SEL,     VMCS_HOST_TR_SEL,          VMCS_EXIT_MSR_STORE,   VMCS_TSC_OFFSET,
		VMCS_LINK_POINTER,     VMCS_GUEST_DEBUGCTL,       VMCS_PIN_CTL,          VMCS_PROC_CTL,
		VMCS_EXCEPTION_BITMAP, VMCS_ENTRY_INTR_INFO,      VMCS_INSN_ERROR,       VMCS_EXIT_REASON,
		VMCS_GUEST_TR_AR,      VMCS_GUEST_ACTIVITY_STATE, VMCS_HOST_SYSENTER_CS, VMCS_CR0_READ_SHADOW,
		VMCS_EXIT_QUAL,        VMCS_GUEST_LINEAR,         VMCS_GUEST_RIP,        VMCS_HOST_RIP,
	};
	u32 missing = 0;

	for (u32 i = 0; i < ARRAY_SIZE(fields); i++)
		missing += vmread_try(fields[i], NULL) != VM_OK;
	expect_eq("basic-fields-exist", missing, 0);
	expect_eq("ept-field-follows-capability", vmread_try(VMCS_EPTP, NULL) == VM_OK, proc2_has(PROC2_EPT));
	expect_eq("vpid-field-follows-capability", vmread_try(VMCS_VPID, NULL) == VM_OK,
		  proc2_has(PROC2_VPID));
	expect_eq("timer-field-follows-capability", vmread_try(VMCS_PREEMPTION_TIMER, NULL) == VM_OK,
		  ctl_has(VMCS_PIN_CTL, PIN_TIMER));
	expect_eq("posted-field-follows-capability", vmread_try(VMCS_POSTED_DESC, NULL) == VM_OK,
		  ctl_has(VMCS_PIN_CTL, PIN_POSTED));
	expect_eq("pml-field-follows-capability", vmread_try(VMCS_PML_INDEX, NULL) == VM_OK,
		  proc2_has(PROC2_PML));
	expect_eq("scaling-field-follows-capability", vmread_try(VMCS_TSC_MULTIPLIER, NULL) == VM_OK,
		  proc2_has(PROC2_TSC_SCALING));
}

static void halves(void)
{
	vmwrite(VMCS_TSC_OFFSET, 0x1111222233334444);
	expect_eq("high-read", vmread(VMCS_TSC_OFFSET + 1), 0x11112222);
	vmwrite(VMCS_TSC_OFFSET + 1, 0xffffffff55556666);
	expect_eq("high-write", vmread(VMCS_TSC_OFFSET), 0x5555666633334444);
	vmwrite(VMCS_EXCEPTION_BITMAP, 0xdeadbeef12345678);
	expect_eq("32-bit-truncates", vmread(VMCS_EXCEPTION_BITMAP), 0x12345678);
	vmwrite(VMCS_GUEST_ES_SEL, 0xdeadbeef12345678);
	expect_eq("16-bit-truncates", vmread(VMCS_GUEST_ES_SEL), 0x5678);
}

static void bad_encodings(void)
{
	static const struct {
		const char *name;
		u64 field;
	} bad[] = {
		{"bit-12", 0x681e | BIT(12)}, {"bit-15", 0x681e | BIT(15)}, {"bit-31", 0x681e | BIT(31)},
		{"bit-32", 0x681e | BIT(32)}, {"bit-63", 0x681e | BIT(63)}, {"index-1ff-16", 0x03fe},
		{"index-1ff-64", 0x23fe},     {"index-1ff-32", 0x43fe},     {"index-1ff-natural", 0x63fe},
		{"index-1ff-host", 0x6ffe},   {"high-of-natural", 0x681f},  {"high-of-32", 0x4001},
		{"all-ones", ~0ul},
	};
	char name[48];

	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		u64 value = 0x1234;

		format_text(name, sizeof(name), "vmread-%s", bad[i].name);
		expect_eq(name, vmread_try(bad[i].field, &value), VMFAIL_VALID(12));
		format_text(name, sizeof(name), "vmwrite-%s", bad[i].name);
		expect_eq(name, vmwrite_try(bad[i].field, 0), VMFAIL_VALID(12));
		if (value != 0x1234)
			expect_eq("vmread-failure-keeps-destination", value, 0x1234);
	}
}

static void memory_operands(void)
{
	u64 box[2] = {0, 0xeeeeeeeeeeeeeeee}, va = 0x5000000000;

	vmwrite(VMCS_GUEST_RSP, 0x1122334455667788);
	asm volatile("vmread %1, %0" : "=m"(box[0]) : "r"((u64)VMCS_GUEST_RSP) : "cc");
	expect_eq("vmread-to-memory", box[0], 0x1122334455667788);
	asm volatile("vmread %1, %0" : "=m"(box[0]) : "r"((u64)VMCS_GUEST_ES_SEL) : "cc");
	expect_eq("vmread-16-to-memory-zero-extends", box[0], 0x5678);
	expect_eq("vmread-writes-8-bytes", box[1], 0xeeeeeeeeeeeeeeee);
	box[0] = 0x99;
	asm volatile("vmwrite %0, %1" : : "m"(box[0]), "r"((u64)VMCS_GUEST_RSP) : "cc");
	expect_eq("vmwrite-from-memory", vmread(VMCS_GUEST_RSP), 0x99);
	trap_forget();
	asm volatile(TRY("vmread %1, (%0)") : : "r"(va), "r"((u64)VMCS_GUEST_RSP) : "cc", "memory");
	expect_eq("vmread-to-nowhere", trap_last(), FAULT(VEC_PF, 2));
	trap_forget();
	asm volatile(TRY("vmwrite (%0), %1") : : "r"(va), "r"((u64)VMCS_GUEST_RSP) : "cc", "memory");
	expect_eq("vmwrite-from-nowhere", trap_last(), FAULT(VEC_PF, 0));
}

static void without_vmcs(void)
{
	vmclear(vmcs);
	expect_eq("vmread-without-vmcs", vmread_try(VMCS_GUEST_RIP, NULL), VMFAIL_INVALID);
	expect_eq("vmwrite-without-vmcs", vmwrite_try(VMCS_GUEST_RIP, 0), VMFAIL_INVALID);
	vmptrld(vmcs);
	expect_eq("content-survives-vmclear", vmread(VMCS_GUEST_RSP), 0x99);
}

static void control_msr(const char *name, u32 plain, u32 exact)
{
	u64 p = rdmsr(plain), t = rdmsr(exact);
	char text[48];

	format_text(text, sizeof(text), "%s-must-within-may", name);
	expect_eq(text, (u32)p & ~(u32)(p >> 32), 0);
	format_text(text, sizeof(text), "%s-true-must-within-may", name);
	expect_eq(text, (u32)t & ~(u32)(t >> 32), 0);
	format_text(text, sizeof(text), "%s-same-may", name);
	expect_eq(text, p >> 32, t >> 32);
	format_text(text, sizeof(text), "%s-true-relaxes", name);
	expect_eq(text, (u32)t & ~(u32)p, 0);
}

static void capability_msrs(void)
{
	u64 basic = rdmsr(MSR_VMX_BASIC), cr0 = rdmsr(MSR_VMX_CR0_FIXED0), cr4 = rdmsr(MSR_VMX_CR4_FIXED0);

	expect_eq("basic-bit-31", basic & BIT(31), 0);
	expect_near("basic-region-size", basic >> 32 & 0x1fff, 1, 4096);
	expect_eq("basic-memory-type", basic >> 50 & 15, 6);
	expect_eq("basic-addresses-are-wide", basic >> 48 & 1, 0);
	expect_eq("basic-true-controls", basic >> 55 & 1, 1);
	control_msr("pin", MSR_VMX_PIN, MSR_VMX_TRUE_PIN);
	control_msr("proc", MSR_VMX_PROC, MSR_VMX_TRUE_PROC);
	control_msr("exit", MSR_VMX_EXIT, MSR_VMX_TRUE_EXIT);
	control_msr("entry", MSR_VMX_ENTRY, MSR_VMX_TRUE_ENTRY);
	expect_eq("cr0-fixed0", cr0, CR0_PE | CR0_NE | CR0_PG);
	expect_eq("cr0-fixed1", (u32)rdmsr(MSR_VMX_CR0_FIXED1), 0xffffffff);
	expect_eq("cr4-fixed0", cr4, CR4_VMXE);
	expect_eq("cr4-now-allowed", read_cr4() & ~rdmsr(MSR_VMX_CR4_FIXED1), 0);
	expect_eq("vmfunc-msr-follows-control", try_rdmsr(MSR_VMX_VMFUNC, NULL) == 0,
		  proc2_has(PROC2_VMFUNC));
	expect_true("preemption-timer-rate", (rdmsr(MSR_VMX_MISC) & 31) <= 31);
	expect_eq("activity-states-hlt", rdmsr(MSR_VMX_MISC) >> 6 & 1, 1);
}

void test_main(void)
{
	if (!vmx_available() || !vmx_start())
		return;
	vmcs = vmcs_alloc();
	vmclear(vmcs);
	vmptrld(vmcs);
	capability_msrs();
	always_there();
	scan();
	vmclear(vmcs);
	vmptrld(vmcs);
	halves();
	bad_encodings();
	memory_operands();
	without_vmcs();
}
