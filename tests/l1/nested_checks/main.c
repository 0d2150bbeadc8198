/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VM-entry checks: each row breaks one rule of an otherwise good VMCS and says how the entry must fail. Order
 * and wording follow SDM "Checks on VMX Controls and Host-State Area", "Checking and Loading Guest State".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: VM-entry checks";

#define CTL   FAILED(VMFAIL_VALID(7))
#define HOST  FAILED(VMFAIL_VALID(8))
#define GUEST (EXIT_ENTRY_FAILED | EXIT_BAD_GUEST)
#define FINE  EXIT_VMCALL

#define NONCANONICAL 0x0000800000000000ul
#define WIDE         BIT(51) /* above the physical width of any CPU of today */
#define PAGE_ADDRESS 0x9000ul

enum op { NOP, SET, OR, CLEAR };

struct change {
	enum op op;
	u32 field;
	u64 value;
};

struct check {
	const char *name;
	u64 want;
	struct change change[4];
	u64 proc2; /* secondary controls that must be offered for a row that is to enter */
};

#define PIN(bits)   OR, VMCS_PIN_CTL, bits
#define PROC(bits)  OR, VMCS_PROC_CTL, bits
#define PROC2(bits) OR, VMCS_PROC2_CTL, bits
#define XIT(bits)   OR, VMCS_EXIT_CTL, bits
#define ENT(bits)   OR, VMCS_ENTRY_CTL, bits

/* clang-format off */
static const struct check checks[] = {
	{"pin-default1", CTL, {{CLEAR, VMCS_PIN_CTL, 2}}, 0},
	{"pin-unknown", CTL, {{PIN(BIT(31))}}, 0},
	{"proc-default1", CTL, {{CLEAR, VMCS_PROC_CTL, 2}}, 0},
	{"proc-unknown", CTL, {{PROC(1)}}, 0},
	{"proc2-unknown", CTL, {{PROC2(BIT(29))}}, 0},
	{"proc2-unknown-but-off", FINE, {{PROC2(BIT(29))}, {CLEAR, VMCS_PROC_CTL, PROC_SECONDARY}}, 0},
	{"cr3-targets", CTL, {{SET, VMCS_CR3_TARGET_COUNT, 300}}, 0},
	{"io-bitmap-a-aligned", CTL, {{PROC(PROC_IO_BITMAPS)}, {SET, VMCS_IO_BITMAP_A, 0x9001}, {SET, VMCS_IO_BITMAP_B, PAGE_ADDRESS}}, 0},
	{"io-bitmap-b-wide", CTL, {{PROC(PROC_IO_BITMAPS)}, {SET, VMCS_IO_BITMAP_A, PAGE_ADDRESS}, {SET, VMCS_IO_BITMAP_B, WIDE}}, 0},
	{"io-bitmaps-off", FINE, {{CLEAR, VMCS_PROC_CTL, PROC_IO_BITMAPS}, {SET, VMCS_IO_BITMAP_A, ~0ul}, {SET, VMCS_IO_BITMAP_B, ~0ul}}, 0},
	{"msr-bitmap-aligned", CTL, {{PROC(PROC_MSR_BITMAP)}, {SET, VMCS_MSR_BITMAP, 0x9800}}, 0},
	{"msr-bitmap-wide", CTL, {{PROC(PROC_MSR_BITMAP)}, {SET, VMCS_MSR_BITMAP, WIDE}}, 0},
	{"msr-bitmap-off", FINE, {{CLEAR, VMCS_PROC_CTL, PROC_MSR_BITMAP}, {SET, VMCS_MSR_BITMAP, ~0ul}}, 0},
	{"virtual-apic-aligned", CTL, {{PROC(PROC_TPR_SHADOW)}, {SET, VMCS_VIRTUAL_APIC, 0x9010}, {SET, VMCS_TPR_THRESHOLD, 0}}, 0},
	{"virtual-apic-wide", CTL, {{PROC(PROC_TPR_SHADOW)}, {SET, VMCS_VIRTUAL_APIC, WIDE}, {SET, VMCS_TPR_THRESHOLD, 0}}, 0},
	{"tpr-threshold-reserved", CTL, {{PROC(PROC_TPR_SHADOW)}, {SET, VMCS_VIRTUAL_APIC, PAGE_ADDRESS}, {SET, VMCS_TPR_THRESHOLD, 0x10}}, 0},
	{"tpr-threshold-above-vtpr", CTL, {{PROC(PROC_TPR_SHADOW)}, {SET, VMCS_VIRTUAL_APIC, PAGE_ADDRESS}, {SET, VMCS_TPR_THRESHOLD, 1}}, 0},
	{"x2apic-without-tpr-shadow", CTL, {{PROC2(PROC2_X2APIC)}}, PROC2_X2APIC},
	{"apic-reg-without-tpr-shadow", CTL, {{PROC2(PROC2_APIC_REG)}}, PROC2_APIC_REG},
	{"vid-without-tpr-shadow", CTL, {{PROC2(PROC2_VID)}, {PIN(PIN_EXT_INT)}}, PROC2_VID},
	{"vid-without-ext-int", CTL, {{PROC2(PROC2_VID)}, {PROC(PROC_TPR_SHADOW)}, {SET, VMCS_VIRTUAL_APIC, PAGE_ADDRESS}}, PROC2_VID},
	{"apic-access-aligned", CTL, {{PROC2(PROC2_APIC_ACCESS)}, {SET, VMCS_APIC_ACCESS, 0x9004}}, PROC2_APIC_ACCESS},
	{"apic-access-and-x2apic", CTL, {{PROC2(PROC2_APIC_ACCESS | PROC2_X2APIC)}, {PROC(PROC_TPR_SHADOW)}, {SET, VMCS_VIRTUAL_APIC, PAGE_ADDRESS}, {SET, VMCS_APIC_ACCESS, PAGE_ADDRESS}}, PROC2_APIC_ACCESS | PROC2_X2APIC},
	{"vnmi-without-nmi", CTL, {{PIN(PIN_VNMI)}}, 0},
	{"nmi-window-without-vnmi", CTL, {{PIN(PIN_NMI)}, {PROC(PROC_NMI_WINDOW)}}, 0},
	{"vnmi-with-nmi", FINE, {{PIN(PIN_NMI | PIN_VNMI)}}, 0},
	{"vpid-zero", CTL, {{PROC2(PROC2_VPID)}, {SET, VMCS_VPID, 0}}, PROC2_VPID},
	{"vpid-one", FINE, {{PROC2(PROC2_VPID)}, {SET, VMCS_VPID, 1}}, PROC2_VPID},
	{"vpid-ffff", FINE, {{PROC2(PROC2_VPID)}, {SET, VMCS_VPID, 0xffff}}, PROC2_VPID},
	{"eptp-memory-type", CTL, {{CLEAR, VMCS_EPTP, 7}, {OR, VMCS_EPTP, 2}}, PROC2_EPT},
	{"eptp-walk-length", CTL, {{CLEAR, VMCS_EPTP, 0x38}}, PROC2_EPT},
	{"eptp-reserved", CTL, {{OR, VMCS_EPTP, BIT(11)}}, PROC2_EPT},
	{"eptp-wide", CTL, {{OR, VMCS_EPTP, WIDE}}, PROC2_EPT},
	{"unrestricted-without-ept", CTL, {{PROC2(PROC2_UNRESTRICTED)}, {CLEAR, VMCS_PROC2_CTL, PROC2_EPT}}, PROC2_UNRESTRICTED},
	{"pml-without-ept", CTL, {{PROC2(PROC2_PML)}, {SET, VMCS_PML_ADDRESS, PAGE_ADDRESS}, {CLEAR, VMCS_PROC2_CTL, PROC2_EPT | PROC2_UNRESTRICTED}}, PROC2_PML},
	{"pml-aligned", CTL, {{PROC2(PROC2_PML)}, {SET, VMCS_PML_ADDRESS, 0x9008}}, PROC2_PML},
	{"vmfunc-unknown-function", CTL, {{PROC2(PROC2_VMFUNC)}, {SET, VMCS_VMFUNC_CTL, BIT(40)}}, PROC2_VMFUNC},
	{"eptp-list-aligned", CTL, {{PROC2(PROC2_VMFUNC)}, {SET, VMCS_VMFUNC_CTL, 1}, {SET, VMCS_EPTP_LIST, 0x9008}}, PROC2_VMFUNC},
	{"vmread-bitmap-aligned", CTL, {{PROC2(PROC2_SHADOW)}, {SET, VMCS_VMREAD_BITMAP, 0x9008}, {SET, VMCS_VMWRITE_BITMAP, PAGE_ADDRESS}}, PROC2_SHADOW},
	{"ve-info-aligned", CTL, {{PROC2(PROC2_VE)}, {SET, VMCS_VE_INFO, 0x9008}}, PROC2_VE},
	{"tsc-multiplier-zero", CTL, {{PROC2(PROC2_TSC_SCALING)}, {SET, VMCS_TSC_MULTIPLIER, 0}}, PROC2_TSC_SCALING},

	{"exit-default1", CTL, {{CLEAR, VMCS_EXIT_CTL, 1}}, 0},
	{"exit-unknown", CTL, {{XIT(BIT(27))}}, 0},
	{"save-timer-without-timer", CTL, {{XIT(EXIT_SAVE_TIMER)}}, 0},
	{"msr-store-aligned", CTL, {{SET, VMCS_EXIT_MSR_STORE_COUNT, 1}, {SET, VMCS_EXIT_MSR_STORE, 0x9008}}, 0},
	{"msr-store-wide", CTL, {{SET, VMCS_EXIT_MSR_STORE_COUNT, 1}, {SET, VMCS_EXIT_MSR_STORE, WIDE}}, 0},
	{"msr-store-off", FINE, {{SET, VMCS_EXIT_MSR_STORE_COUNT, 0}, {SET, VMCS_EXIT_MSR_STORE, ~0ul}}, 0},
	{"exit-msr-load-aligned", CTL, {{SET, VMCS_EXIT_MSR_LOAD_COUNT, 1}, {SET, VMCS_EXIT_MSR_LOAD, 0x9004}}, 0},

	{"entry-default1", CTL, {{CLEAR, VMCS_ENTRY_CTL, 1}}, 0},
	{"entry-unknown", CTL, {{ENT(BIT(27))}}, 0},
	{"entry-dual-monitor", CTL, {{ENT(ENTRY_DUAL_MONITOR)}}, 0},
	{"entry-msr-load-aligned", CTL, {{SET, VMCS_ENTRY_MSR_LOAD_COUNT, 1}, {SET, VMCS_ENTRY_MSR_LOAD, 0x9004}}, 0},
	{"inject-type-1", CTL, {{SET, VMCS_ENTRY_INTR_INFO, INTR_VALID | 1u << 8 | 0x20}}, 0},
	{"inject-nmi-vector-3", CTL, {{SET, VMCS_ENTRY_INTR_INFO, INTR_VALID | INTR_NMI | 3}}, 0},
	{"inject-exception-32", CTL, {{SET, VMCS_ENTRY_INTR_INFO, INTR_VALID | INTR_EXCEPTION | 32}}, 0},
	{"inject-gp-without-error", CTL, {{SET, VMCS_ENTRY_INTR_INFO, INTR_VALID | INTR_EXCEPTION | VEC_GP}}, 0},
	{"inject-ud-with-error", CTL, {{SET, VMCS_ENTRY_INTR_INFO, INTR_VALID | INTR_EXCEPTION | INTR_ERROR_CODE | VEC_UD}}, 0},
	{"inject-external-with-error", CTL, {{SET, VMCS_ENTRY_INTR_INFO, INTR_VALID | INTR_ERROR_CODE | 0x40}}, 0},
	{"inject-error-bits-16", CTL, {{SET, VMCS_ENTRY_INTR_INFO, INTR_VALID | INTR_EXCEPTION | INTR_ERROR_CODE | VEC_GP}, {SET, VMCS_ENTRY_ERROR_CODE, BIT(16)}}, 0},
	{"inject-reserved-12", CTL, {{SET, VMCS_ENTRY_INTR_INFO, INTR_VALID | INTR_EXCEPTION | VEC_UD | BIT(12)}}, 0},
	{"inject-soft-length-16", CTL, {{SET, VMCS_ENTRY_INTR_INFO, INTR_VALID | INTR_SOFT_INT | 0x40}, {SET, VMCS_ENTRY_INSN_LEN, 16}}, 0},
	{"inject-not-valid", FINE, {{SET, VMCS_ENTRY_INTR_INFO, 0x7fffffff}, {SET, VMCS_ENTRY_INSN_LEN, 99}}, 0},

	{"host-cr0-ne", HOST, {{CLEAR, VMCS_HOST_CR0, CR0_NE}}, 0},
	{"host-cr0-pg", HOST, {{CLEAR, VMCS_HOST_CR0, CR0_PG}}, 0},
	{"host-cr0-bit-32", HOST, {{OR, VMCS_HOST_CR0, BIT(32)}}, 0},
	{"host-cr4-vmxe", HOST, {{CLEAR, VMCS_HOST_CR4, CR4_VMXE}}, 0},
	{"host-cr4-pae", HOST, {{CLEAR, VMCS_HOST_CR4, CR4_PAE}}, 0},
	{"host-cr4-reserved", HOST, {{OR, VMCS_HOST_CR4, BIT(15)}}, 0},
	{"host-cr3-wide", HOST, {{OR, VMCS_HOST_CR3, WIDE}}, 0},
	{"host-sysenter-esp", HOST, {{SET, VMCS_HOST_SYSENTER_ESP, NONCANONICAL}}, 0},
	{"host-sysenter-eip", HOST, {{SET, VMCS_HOST_SYSENTER_EIP, NONCANONICAL}}, 0},
	{"host-pat", HOST, {{XIT(EXIT_LOAD_PAT)}, {SET, VMCS_HOST_PAT, 0x0007040600070402}}, 0},
	{"host-efer-lma", HOST, {{XIT(EXIT_LOAD_EFER)}, {CLEAR, VMCS_HOST_EFER, EFER_LMA}}, 0},
	{"host-efer-lme", HOST, {{XIT(EXIT_LOAD_EFER)}, {CLEAR, VMCS_HOST_EFER, EFER_LME}}, 0},
	{"host-efer-reserved", HOST, {{XIT(EXIT_LOAD_EFER)}, {OR, VMCS_HOST_EFER, BIT(1)}}, 0},
	{"host-cs-rpl", HOST, {{SET, VMCS_HOST_CS_SEL, SEL_CODE64 | 3}}, 0},
	{"host-ss-ti", HOST, {{SET, VMCS_HOST_SS_SEL, SEL_DATA | 4}}, 0},
	{"host-ds-rpl", HOST, {{SET, VMCS_HOST_DS_SEL, SEL_DATA | 1}}, 0},
	{"host-tr-ti", HOST, {{SET, VMCS_HOST_TR_SEL, SEL_TSS | 4}}, 0},
	{"host-cs-null", HOST, {{SET, VMCS_HOST_CS_SEL, 0}}, 0},
	{"host-tr-null", HOST, {{SET, VMCS_HOST_TR_SEL, 0}}, 0},
	{"host-ss-null-in-64-bit", FINE, {{SET, VMCS_HOST_SS_SEL, 0}}, 0},
	{"host-fs-base", HOST, {{SET, VMCS_HOST_FS_BASE, NONCANONICAL}}, 0},
	{"host-gs-base", HOST, {{SET, VMCS_HOST_GS_BASE, NONCANONICAL}}, 0},
	{"host-tr-base", HOST, {{SET, VMCS_HOST_TR_BASE, NONCANONICAL}}, 0},
	{"host-gdtr-base", HOST, {{SET, VMCS_HOST_GDTR_BASE, NONCANONICAL}}, 0},
	{"host-idtr-base", HOST, {{SET, VMCS_HOST_IDTR_BASE, NONCANONICAL}}, 0},
	{"host-rip", HOST, {{SET, VMCS_HOST_RIP, NONCANONICAL}}, 0},
	{"host-not-64-bit", HOST, {{CLEAR, VMCS_EXIT_CTL, EXIT_HOST64}}, 0},

	{"guest-cr0-pg-without-pe", GUEST, {{CLEAR, VMCS_GUEST_CR0, CR0_PE}}, 0},
	{"guest-cr0-ne", GUEST, {{CLEAR, VMCS_GUEST_CR0, CR0_NE}}, 0},
	{"guest-cr4-vmxe", GUEST, {{CLEAR, VMCS_GUEST_CR4, CR4_VMXE}}, 0},
	{"guest-cr4-pae", GUEST, {{CLEAR, VMCS_GUEST_CR4, CR4_PAE}}, 0},
	{"guest-cr4-reserved", GUEST, {{OR, VMCS_GUEST_CR4, BIT(15)}}, 0},
	{"guest-cr3-wide", GUEST, {{OR, VMCS_GUEST_CR3, WIDE}}, 0},
	{"guest-debugctl-reserved", GUEST, {{ENT(ENTRY_LOAD_DEBUG)}, {SET, VMCS_GUEST_DEBUGCTL, BIT(40)}}, 0},
	{"guest-dr7-high", GUEST, {{ENT(ENTRY_LOAD_DEBUG)}, {SET, VMCS_GUEST_DR7, BIT(32) | 0x400}}, 0},
	{"guest-sysenter-esp", GUEST, {{SET, VMCS_GUEST_SYSENTER_ESP, NONCANONICAL}}, 0},
	{"guest-sysenter-eip", GUEST, {{SET, VMCS_GUEST_SYSENTER_EIP, NONCANONICAL}}, 0},
	{"guest-pat", GUEST, {{ENT(ENTRY_LOAD_PAT)}, {SET, VMCS_GUEST_PAT, 0x0307040600070406}}, 0},
	{"guest-efer-lma", GUEST, {{CLEAR, VMCS_GUEST_EFER, EFER_LMA}}, 0},
	{"guest-efer-lme", GUEST, {{CLEAR, VMCS_GUEST_EFER, EFER_LME}}, 0},
	{"guest-efer-reserved", GUEST, {{OR, VMCS_GUEST_EFER, BIT(1)}}, 0},
	{"guest-efer-not-loaded", FINE, {{CLEAR, VMCS_ENTRY_CTL, ENTRY_LOAD_EFER}, {SET, VMCS_GUEST_EFER, ~0ul}}, 0},

	{"guest-tr-ti", GUEST, {{SET, VMCS_GUEST_TR_SEL, SEL_TSS | 4}}, 0},
	{"guest-tr-unusable", GUEST, {{OR, VMCS_GUEST_TR_AR, 0x10000}}, 0},
	{"guest-tr-type", GUEST, {{SET, VMCS_GUEST_TR_AR, 0x89}}, 0},
	{"guest-tr-not-present", GUEST, {{SET, VMCS_GUEST_TR_AR, 0x0b}}, 0},
	{"guest-tr-base", GUEST, {{SET, VMCS_GUEST_TR_BASE, NONCANONICAL}}, 0},
	{"guest-ldtr-type", GUEST, {{SET, VMCS_GUEST_LDTR_AR, 0x83}}, 0},
	{"guest-fs-base", GUEST, {{SET, VMCS_GUEST_FS_BASE, NONCANONICAL}}, 0},
	{"guest-cs-base-high", GUEST, {{SET, VMCS_GUEST_CS_BASE, BIT(32)}}, 0},
	{"guest-ds-base-high", GUEST, {{SET, VMCS_GUEST_DS_BASE, BIT(32)}}, 0},
	{"guest-cs-type-data", GUEST, {{SET, VMCS_GUEST_CS_AR, 0xa091}}, 0},
	{"guest-cs-not-accessed", GUEST, {{SET, VMCS_GUEST_CS_AR, 0xa09a}}, 0},
	{"guest-cs-system", GUEST, {{SET, VMCS_GUEST_CS_AR, 0xa08b}}, 0},
	{"guest-cs-unusable", GUEST, {{SET, VMCS_GUEST_CS_AR, 0x1a09b - 0x9b + 0x1b}}, 0},
	{"guest-cs-l-and-d", GUEST, {{SET, VMCS_GUEST_CS_AR, 0xe09b}}, 0},
	{"guest-cs-dpl-above-ss", GUEST, {{SET, VMCS_GUEST_CS_AR, 0xa0fb}}, 0},
	{"guest-cs-granularity", GUEST, {{SET, VMCS_GUEST_CS_AR, 0x209b}}, 0},
	{"guest-cs-reserved", GUEST, {{SET, VMCS_GUEST_CS_AR, 0xa19b}}, 0},
	{"guest-ss-type-code", GUEST, {{SET, VMCS_GUEST_SS_AR, 0xc09b}}, 0},
	{"guest-ds-not-accessed", GUEST, {{SET, VMCS_GUEST_DS_AR, 0xc092}}, 0},
	{"guest-ds-execute-only", GUEST, {{SET, VMCS_GUEST_DS_AR, 0xc099}}, 0},
	{"guest-ds-unusable", FINE, {{SET, VMCS_GUEST_DS_AR, 0x10000}}, 0},
	{"guest-gdtr-base", GUEST, {{SET, VMCS_GUEST_GDTR_BASE, NONCANONICAL}}, 0},
	{"guest-gdtr-limit", GUEST, {{SET, VMCS_GUEST_GDTR_LIMIT, 0x10000}}, 0},
	{"guest-idtr-limit", GUEST, {{SET, VMCS_GUEST_IDTR_LIMIT, 0x10000}}, 0},

	/* "Bits 63:N must be identical", N being the linear width: the first address of the hole passes, and faults in L2. */
	{"guest-rip-not-canonical", GUEST, {{SET, VMCS_GUEST_RIP, BIT(62)}}, 0},
	{"guest-rip-at-the-hole", EXIT_EXCEPTION, {{SET, VMCS_GUEST_RIP, NONCANONICAL}}, 0},
	{"guest-rip-high-outside-64-bit", GUEST, {{SET, VMCS_GUEST_CS_AR, 0xc09b}, {SET, VMCS_GUEST_RIP, BIT(32)}}, 0},
	{"guest-rflags-bit-1", GUEST, {{SET, VMCS_GUEST_RFLAGS, 0}}, 0},
	{"guest-rflags-bit-3", GUEST, {{SET, VMCS_GUEST_RFLAGS, 0xa}}, 0},
	{"guest-rflags-bit-22", GUEST, {{SET, VMCS_GUEST_RFLAGS, BIT(22) | 2}}, 0},
	{"guest-rflags-vm", GUEST, {{SET, VMCS_GUEST_RFLAGS, BIT(17) | 2}}, 0},
	{"guest-inject-with-if-0", GUEST, {{SET, VMCS_ENTRY_INTR_INFO, INTR_VALID | 0x40}}, 0},
	{"guest-inject-with-sti-blocking", GUEST, {{SET, VMCS_ENTRY_INTR_INFO, INTR_VALID | 0x40}, {SET, VMCS_GUEST_RFLAGS, 0x202}, {SET, VMCS_GUEST_INTERRUPTIBILITY, BLOCK_STI}}, 0},

	{"guest-activity-4", GUEST, {{SET, VMCS_GUEST_ACTIVITY_STATE, 4}}, 0},
	{"guest-hlt-with-sti-blocking", GUEST, {{SET, VMCS_GUEST_ACTIVITY_STATE, 1}, {SET, VMCS_GUEST_RFLAGS, 0x202}, {SET, VMCS_GUEST_INTERRUPTIBILITY, BLOCK_STI}}, 0},
	{"guest-wait-for-sipi-with-event", GUEST, {{SET, VMCS_GUEST_ACTIVITY_STATE, 3}, {SET, VMCS_ENTRY_INTR_INFO, INTR_VALID | INTR_NMI | 2}}, 0},
	{"guest-interruptibility-reserved", GUEST, {{SET, VMCS_GUEST_INTERRUPTIBILITY, BIT(5)}}, 0},
	{"guest-sti-and-mov-ss", GUEST, {{SET, VMCS_GUEST_INTERRUPTIBILITY, BLOCK_STI | BLOCK_MOV_SS}, {SET, VMCS_GUEST_RFLAGS, 0x202}}, 0},
	{"guest-sti-with-if-0", GUEST, {{SET, VMCS_GUEST_INTERRUPTIBILITY, BLOCK_STI}}, 0},
	{"guest-smi-blocking", GUEST, {{SET, VMCS_GUEST_INTERRUPTIBILITY, BIT(2)}}, 0},
	{"guest-nmi-with-mov-ss", GUEST, {{SET, VMCS_GUEST_INTERRUPTIBILITY, BLOCK_MOV_SS}, {SET, VMCS_ENTRY_INTR_INFO, INTR_VALID | INTR_NMI | 2}}, 0},
	{"guest-vnmi-blocked-and-injected", GUEST, {{PIN(PIN_NMI | PIN_VNMI)}, {SET, VMCS_GUEST_INTERRUPTIBILITY, BLOCK_NMI}, {SET, VMCS_ENTRY_INTR_INFO, INTR_VALID | INTR_NMI | 2}}, 0},
	{"guest-pending-debug-reserved", GUEST, {{SET, VMCS_GUEST_PENDING_DEBUG, BIT(20)}}, 0},
	{"guest-pending-debug-bs", GUEST, {{SET, VMCS_GUEST_RFLAGS, RFLAGS_TF | RFLAGS_IF | 2}, {SET, VMCS_GUEST_INTERRUPTIBILITY, BLOCK_STI}}, 0},
};
/* clang-format on */

/* A field that does not exist here belongs to a control that is not offered: then the control itself is the
 * error. */
static void apply(const struct change *c)
{
	u64 old = 0;

	if (c->op == OR || c->op == CLEAR)
		vmread_try(c->field, &old);
	vmwrite_try(c->field, c->op == SET ? c->value : c->op == OR ? old | c->value : old & ~c->value);
}

static void l2_leave(void)
{
	l2_call(1);
}

static void ignore(struct regs *r)
{
	(void)r;
}

static struct vm_result attempt(const struct check *c)
{
	l2_prepare(l2_leave);
	vmwrite(VMCS_EXCEPTION_BITMAP, ~0u); /* an entry that should have failed must not hurt L1 */
	for (u32 i = 0; i < ARRAY_SIZE(c->change); i++)
		if (c->change[i].op != NOP)
			apply(&c->change[i]);
	return l2_launch();
}

static void run_table(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(checks); i++) {
		const struct check *c = &checks[i];
		struct vm_result r;

		if (c->want != CTL && !proc2_has(c->proc2)) {
			skip(c->name, "control not offered");
			continue;
		}
		r = attempt(c);
		expect_eq(c->name, l2_outcome(&r), c->want);
		if (c->want == GUEST && r.reason == GUEST && r.qual)
			expect_eq("qualification", r.qual, 0);
	}
}

/* What is not offered must be refused. Each capability bit decides which of the two the row tests. */
static void refused_when_not_offered(void)
{
	static const struct check optional[] = {
		{"not-offered-posted-interrupts", CTL, {{PIN(PIN_POSTED)}}, 0},
		{"not-offered-monitor-trap-flag", CTL, {{PROC(PROC_MTF)}}, 0},
		{"not-offered-mode-based-execute", CTL, {{PROC2(PROC2_MBE)}}, 0},
		{"not-offered-entry-to-smm", CTL, {{ENT(ENTRY_SMM)}}, 0},
	};

	for (u32 i = 0; i < ARRAY_SIZE(optional); i++) {
		const struct check *c = &optional[i];
		struct vm_result r;

		if (ctl_has(c->change[0].field, c->change[0].value)) {
			skip(c->name, "offered");
			continue;
		}
		r = attempt(c);
		expect_eq(c->name, l2_outcome(&r), c->want);
	}
}

/* The rest of each control word, one bit after the other. */
static void each_control_not_offered(void)
{
	static const u32 words[] = {VMCS_PIN_CTL, VMCS_PROC_CTL, VMCS_PROC2_CTL, VMCS_EXIT_CTL,
				    VMCS_ENTRY_CTL};
	u32 wrong = 0;

	for (u32 i = 0; i < 32 * ARRAY_SIZE(words); i++) {
		struct check c = {.change = {{OR, words[i / 32], BIT(i % 32)}}};
		struct vm_result r;

		if (ctl_has(c.change[0].field, c.change[0].value))
			continue;
		r = attempt(&c);
		count_eq(wrong, "control-not-offered", l2_outcome(&r), CTL);
	}
	expect_eq("every-control-not-offered", wrong, 0);
}

static void link_pointer(void)
{
	u64 other = vmcs_alloc();
	struct vm_result r;

	*(u32 *)ptr_to(other) ^= 1;
	for (u32 i = 0; i < 4; i++) {
		static const char *const names[] = {"link-misaligned", "link-wide", "link-is-current",
						    "link-revision"};
		const u64 values[] = {other + 8, WIDE, l2_vmcs(), other};
		char name[48];

		l2_prepare(l2_leave);
		vmwrite(VMCS_LINK_POINTER, values[i]);
		r = l2_launch();
		expect_exit(names[i], r, GUEST);
		format_text(name, sizeof(name), "%s-qualification", names[i]);
		expect_eq(name, r.qual, 4);
	}
}

/* All sixteen combinations of the two timer controls and the two NMI pairs (VirtualBox issue 313). */
static void timer_and_nmi_matrix(void)
{
	u32 wrong = 0;

	for (u32 i = 0; i < 32; i++) {
		bool timer = i & 1, save = i & 2, nmi = i & 4, vnmi = i & 8, window = i & 16;
		bool bad = (save && !timer) || (vnmi && !nmi) || (window && !vnmi);
		struct vm_result r;

		l2_prepare(l2_leave);
		vmwrite(VMCS_PREEMPTION_TIMER, ~0u);
		vmcs_set_bits(VMCS_PIN_CTL,
			      (timer ? PIN_TIMER : 0) | (nmi ? PIN_NMI : 0) | (vnmi ? PIN_VNMI : 0));
		vmcs_set_bits(VMCS_PROC_CTL, window ? PROC_NMI_WINDOW : 0);
		vmcs_set_bits(VMCS_EXIT_CTL, save ? EXIT_SAVE_TIMER : 0);
		r = l2_launch();
		count_eq(wrong, "timer-nmi-matrix-row", l2_outcome(&r),
			 bad      ? CTL
			 : window ? EXIT_NMI_WINDOW
				  : FINE);
	}
	expect_eq("timer-nmi-matrix", wrong, 0);
}

void test_main(void)
{
	if (!vmx_available() || !vmx_start())
		return;
	memset(ptr_to(PAGE_ADDRESS), 0, PAGE_SIZE);
	trap_handle(VEC_NMI, ignore);
	run_table();
	refused_when_not_offered();
	each_control_not_offered();
	link_pointer();
	if (ctl_has(VMCS_PIN_CTL, PIN_TIMER | PIN_VNMI))
		timer_and_nmi_matrix();
}
