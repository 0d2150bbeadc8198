/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The enlightened VMCS, version 1: a page of L1's whose fields stand at fixed places. One table says where
 * each field is and which clean field speaks for it; everything else is made from it. Pure: a page is a
 * pointer here, whoever calls opens the window to guest memory. TLFS "Enlightened VMCS".
 */
#ifndef NIDUS_HYPERV_EVMCS_H
#define NIDUS_HYPERV_EVMCS_H

#include "nested/vmcs12.h"

#define EVMCS_VERSION 1u
#define EVMCS_SIZE    1024u /* what is used of the page */

/*
 * X(offset, bytes, field, member of VMCS12, clean group, what an exit changes). LIVE and OTHER have no clean
 * bit: they are read at every entry. RAW: guest state that goes into the page as it is in VMCS02, each store
 * 8 bytes wide, in this order; AREA: other guest state, and what else an exit leaves; INFO: exit information.
 */
/* clang-format off */
#define EVMCS_FIELDS(X) \
	X(8, 2, HOST_ES_SEL, host_es_sel, HOST_GRP1, NONE) \
	X(10, 2, HOST_CS_SEL, host_cs_sel, HOST_GRP1, NONE) \
	X(12, 2, HOST_SS_SEL, host_ss_sel, HOST_GRP1, NONE) \
	X(14, 2, HOST_DS_SEL, host_ds_sel, HOST_GRP1, NONE) \
	X(16, 2, HOST_FS_SEL, host_fs_sel, HOST_GRP1, NONE) \
	X(18, 2, HOST_GS_SEL, host_gs_sel, HOST_GRP1, NONE) \
	X(20, 2, HOST_TR_SEL, host_tr_sel, HOST_GRP1, NONE) \
	X(24, 8, HOST_PAT, host_pat, HOST_GRP1, NONE) \
	X(32, 8, HOST_EFER, host_efer, HOST_GRP1, NONE) \
	X(40, 8, HOST_CR0, host_cr0, HOST_GRP1, NONE) \
	X(48, 8, HOST_CR3, host_cr3, HOST_GRP1, NONE) \
	X(56, 8, HOST_CR4, host_cr4, HOST_GRP1, NONE) \
	X(64, 8, HOST_SYSENTER_ESP, host_sysenter_esp, HOST_GRP1, NONE) \
	X(72, 8, HOST_SYSENTER_EIP, host_sysenter_eip, HOST_GRP1, NONE) \
	X(80, 8, HOST_RIP, host_rip, HOST_GRP1, NONE) \
	X(88, 4, HOST_SYSENTER_CS, host_sysenter_cs, HOST_GRP1, NONE) \
	X(92, 4, PIN_CTL, pin_ctl, CONTROL_GRP1, NONE) \
	X(96, 4, EXIT_CTL, exit_ctl, CONTROL_GRP1, NONE) \
	X(100, 4, SEC_CTL, sec_ctl, CONTROL_GRP1, NONE) \
	X(104, 8, IO_BITMAP_A, io_bitmap_a, IO_BITMAP, NONE) \
	X(112, 8, IO_BITMAP_B, io_bitmap_b, IO_BITMAP, NONE) \
	X(120, 8, MSR_BITMAP, msr_bitmap, MSR_BITMAP, NONE) \
	X(128, 2, GUEST_ES_SEL, guest_es_sel, GUEST_GRP2, RAW) \
	X(130, 2, GUEST_CS_SEL, guest_cs_sel, GUEST_GRP2, RAW) \
	X(132, 2, GUEST_SS_SEL, guest_ss_sel, GUEST_GRP2, RAW) \
	X(134, 2, GUEST_DS_SEL, guest_ds_sel, GUEST_GRP2, RAW) \
	X(136, 2, GUEST_FS_SEL, guest_fs_sel, GUEST_GRP2, RAW) \
	X(138, 2, GUEST_GS_SEL, guest_gs_sel, GUEST_GRP2, RAW) \
	X(140, 2, GUEST_LDTR_SEL, guest_ldtr_sel, GUEST_GRP2, RAW) \
	X(142, 2, GUEST_TR_SEL, guest_tr_sel, GUEST_GRP2, RAW) \
	X(144, 4, GUEST_ES_LIMIT, guest_es_limit, GUEST_GRP2, RAW) \
	X(148, 4, GUEST_CS_LIMIT, guest_cs_limit, GUEST_GRP2, RAW) \
	X(152, 4, GUEST_SS_LIMIT, guest_ss_limit, GUEST_GRP2, RAW) \
	X(156, 4, GUEST_DS_LIMIT, guest_ds_limit, GUEST_GRP2, RAW) \
	X(160, 4, GUEST_FS_LIMIT, guest_fs_limit, GUEST_GRP2, RAW) \
	X(164, 4, GUEST_GS_LIMIT, guest_gs_limit, GUEST_GRP2, RAW) \
	X(168, 4, GUEST_LDTR_LIMIT, guest_ldtr_limit, GUEST_GRP2, RAW) \
	X(172, 4, GUEST_TR_LIMIT, guest_tr_limit, GUEST_GRP2, RAW) \
	X(176, 4, GUEST_GDTR_LIMIT, guest_gdtr_limit, GUEST_GRP2, RAW) \
	X(180, 4, GUEST_IDTR_LIMIT, guest_idtr_limit, GUEST_GRP2, RAW) \
	X(184, 4, GUEST_ES_AR, guest_es_ar, GUEST_GRP2, RAW) \
	X(188, 4, GUEST_CS_AR, guest_cs_ar, GUEST_GRP2, RAW) \
	X(192, 4, GUEST_SS_AR, guest_ss_ar, GUEST_GRP2, RAW) \
	X(196, 4, GUEST_DS_AR, guest_ds_ar, GUEST_GRP2, RAW) \
	X(200, 4, GUEST_FS_AR, guest_fs_ar, GUEST_GRP2, RAW) \
	X(204, 4, GUEST_GS_AR, guest_gs_ar, GUEST_GRP2, RAW) \
	X(208, 4, GUEST_LDTR_AR, guest_ldtr_ar, GUEST_GRP2, RAW) \
	X(212, 4, GUEST_TR_AR, guest_tr_ar, GUEST_GRP2, RAW) \
	X(216, 8, GUEST_ES_BASE, guest_es_base, GUEST_GRP2, RAW) \
	X(224, 8, GUEST_CS_BASE, guest_cs_base, GUEST_GRP2, RAW) \
	X(232, 8, GUEST_SS_BASE, guest_ss_base, GUEST_GRP2, RAW) \
	X(240, 8, GUEST_DS_BASE, guest_ds_base, GUEST_GRP2, RAW) \
	X(248, 8, GUEST_FS_BASE, guest_fs_base, GUEST_GRP2, RAW) \
	X(256, 8, GUEST_GS_BASE, guest_gs_base, GUEST_GRP2, RAW) \
	X(264, 8, GUEST_LDTR_BASE, guest_ldtr_base, GUEST_GRP2, RAW) \
	X(272, 8, GUEST_TR_BASE, guest_tr_base, GUEST_GRP2, RAW) \
	X(280, 8, GUEST_GDTR_BASE, guest_gdtr_base, GUEST_GRP2, RAW) \
	X(288, 8, GUEST_IDTR_BASE, guest_idtr_base, GUEST_GRP2, RAW) \
	X(320, 8, EXIT_MSR_STORE_ADDR, exit_msr_store_addr, OTHER, NONE) \
	X(328, 8, EXIT_MSR_LOAD_ADDR, exit_msr_load_addr, OTHER, NONE) \
	X(336, 8, ENTRY_MSR_LOAD_ADDR, entry_msr_load_addr, OTHER, NONE) \
	X(344, 8, CR3_TARGET0, cr3_target0, OTHER, NONE) \
	X(352, 8, CR3_TARGET1, cr3_target1, OTHER, NONE) \
	X(360, 8, CR3_TARGET2, cr3_target2, OTHER, NONE) \
	X(368, 8, CR3_TARGET3, cr3_target3, OTHER, NONE) \
	X(376, 4, PF_MASK, pf_mask, OTHER, NONE) \
	X(380, 4, PF_MATCH, pf_match, OTHER, NONE) \
	X(384, 4, CR3_TARGET_COUNT, cr3_target_count, OTHER, NONE) \
	X(388, 4, EXIT_MSR_STORE_COUNT, exit_msr_store_count, OTHER, NONE) \
	X(392, 4, EXIT_MSR_LOAD_COUNT, exit_msr_load_count, OTHER, NONE) \
	X(396, 4, ENTRY_MSR_LOAD_COUNT, entry_msr_load_count, OTHER, NONE) \
	X(400, 8, TSC_OFFSET, tsc_offset, CONTROL_GRP2, NONE) \
	X(408, 8, VIRTUAL_APIC, virtual_apic, CONTROL_GRP2, NONE) \
	X(416, 8, LINK_POINTER, link_pointer, GUEST_GRP1, NONE) \
	X(424, 8, GUEST_DEBUGCTL, guest_debugctl, GUEST_GRP1, AREA) \
	X(432, 8, GUEST_PAT, guest_pat, GUEST_GRP1, AREA) \
	X(440, 8, GUEST_EFER, guest_efer, GUEST_GRP1, AREA) \
	X(448, 8, GUEST_PDPTE0, guest_pdpte0, GUEST_GRP1, AREA) \
	X(456, 8, GUEST_PDPTE1, guest_pdpte1, GUEST_GRP1, AREA) \
	X(464, 8, GUEST_PDPTE2, guest_pdpte2, GUEST_GRP1, AREA) \
	X(472, 8, GUEST_PDPTE3, guest_pdpte3, GUEST_GRP1, AREA) \
	X(480, 8, GUEST_PENDING_DBG, guest_pending_dbg, GUEST_GRP1, RAW) \
	X(488, 8, GUEST_SYSENTER_ESP, guest_sysenter_esp, GUEST_GRP1, AREA) \
	X(496, 8, GUEST_SYSENTER_EIP, guest_sysenter_eip, GUEST_GRP1, AREA) \
	X(504, 4, GUEST_ACTIVITY, guest_activity, GUEST_GRP1, AREA) \
	X(508, 4, GUEST_SYSENTER_CS, guest_sysenter_cs, GUEST_GRP1, AREA) \
	X(512, 8, CR0_MASK, cr0_mask, CRDR, NONE) \
	X(520, 8, CR4_MASK, cr4_mask, CRDR, NONE) \
	X(528, 8, CR0_SHADOW, cr0_shadow, CRDR, NONE) \
	X(536, 8, CR4_SHADOW, cr4_shadow, CRDR, NONE) \
	X(544, 8, GUEST_CR0, guest_cr0, CRDR, AREA) \
	X(552, 8, GUEST_CR3, guest_cr3, CRDR, RAW) \
	X(560, 8, GUEST_CR4, guest_cr4, CRDR, AREA) \
	X(568, 8, GUEST_DR7, guest_dr7, CRDR, AREA) \
	X(576, 8, HOST_FS_BASE, host_fs_base, HOST_POINTER, NONE) \
	X(584, 8, HOST_GS_BASE, host_gs_base, HOST_POINTER, NONE) \
	X(592, 8, HOST_TR_BASE, host_tr_base, HOST_POINTER, NONE) \
	X(600, 8, HOST_GDTR_BASE, host_gdtr_base, HOST_POINTER, NONE) \
	X(608, 8, HOST_IDTR_BASE, host_idtr_base, HOST_POINTER, NONE) \
	X(616, 8, HOST_RSP, host_rsp, HOST_POINTER, NONE) \
	X(624, 8, EPTP, eptp, CONTROL_XLAT, NONE) \
	X(632, 2, VPID, vpid, CONTROL_XLAT, NONE) \
	X(680, 8, GUEST_PHYS, guest_phys, INFO, INFO) \
	X(688, 4, INSN_ERROR, insn_error, INFO, INFO) \
	X(692, 4, EXIT_REASON, exit_reason, INFO, INFO) \
	X(696, 4, EXIT_INTR_INFO, exit_intr_info, INFO, INFO) \
	X(700, 4, EXIT_ERROR_CODE, exit_error_code, INFO, INFO) \
	X(704, 4, IDT_VECT_INFO, idt_vect_info, INFO, INFO) \
	X(708, 4, IDT_VECT_ERROR, idt_vect_error, INFO, INFO) \
	X(712, 4, EXIT_INSN_LEN, exit_insn_len, INFO, INFO) \
	X(716, 4, EXIT_INSN_INFO, exit_insn_info, INFO, INFO) \
	X(720, 8, EXIT_QUAL, exit_qual, INFO, INFO) \
	X(728, 8, IO_RCX, io_rcx, INFO, NONE) \
	X(736, 8, IO_RSI, io_rsi, INFO, NONE) \
	X(744, 8, IO_RDI, io_rdi, INFO, NONE) \
	X(752, 8, IO_RIP, io_rip, INFO, NONE) \
	X(760, 8, GUEST_LINEAR, guest_linear, INFO, INFO) \
	X(768, 8, GUEST_RSP, guest_rsp, GUEST_BASIC, AREA) \
	X(776, 8, GUEST_RFLAGS, guest_rflags, GUEST_BASIC, AREA) \
	X(784, 4, GUEST_INTR_STATE, guest_intr_state, GUEST_BASIC, AREA) \
	X(788, 4, PROC_CTL, proc_ctl, CONTROL_PROC, NONE) \
	X(792, 4, EXCEPTION_BITMAP, exception_bitmap, CONTROL_EXCPN, NONE) \
	X(796, 4, ENTRY_CTL, entry_ctl, CONTROL_ENTRY, AREA) \
	X(800, 4, ENTRY_INTR_INFO, entry_intr_info, CONTROL_EVENT, AREA) \
	X(804, 4, ENTRY_ERROR_CODE, entry_error_code, CONTROL_EVENT, NONE) \
	X(808, 4, ENTRY_INSN_LEN, entry_insn_len, CONTROL_EVENT, NONE) \
	X(812, 4, TPR_THRESHOLD, tpr_threshold, LIVE, NONE) \
	X(816, 8, GUEST_RIP, guest_rip, LIVE, AREA) \
	X(896, 8, GUEST_BNDCFGS, guest_bndcfgs, GUEST_GRP1, NONE) \
	X(904, 8, GUEST_PERF_GLOBAL_CTRL, guest_perf_global_ctrl, GUEST_GRP1, NONE) \
	X(912, 8, GUEST_S_CET, guest_s_cet, GUEST_GRP1, NONE) \
	X(920, 8, GUEST_SSP, guest_ssp, GUEST_BASIC, NONE) \
	X(928, 8, GUEST_SSP_TABLE, guest_ssp_table, GUEST_GRP1, NONE) \
	X(960, 8, XSS_EXITING_BITMAP, xss_exiting_bitmap, CONTROL_GRP2, NONE) \
	X(968, 8, ENCLS_EXITING_BITMAP, encls_exiting_bitmap, CONTROL_GRP2, NONE) \
	X(976, 8, HOST_PERF_GLOBAL_CTRL, host_perf_global_ctrl, HOST_GRP1, NONE) \
	X(984, 8, TSC_MULTIPLIER, tsc_multiplier, CONTROL_GRP2, NONE) \
	X(992, 8, HOST_S_CET, host_s_cet, HOST_GRP1, NONE) \
	X(1000, 8, HOST_SSP, host_ssp, HOST_GRP1, NONE) \
	X(1008, 8, HOST_SSP_TABLE, host_ssp_table, HOST_GRP1, NONE) \
	/* end */
/* clang-format on */

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a type takes no parentheses */
#define EVMCS_AT(type, page, at) (*(volatile type *)((uintptr_t)(page) + (at)))

enum put { PUT_NONE, PUT_RAW, PUT_AREA, PUT_INFO };

enum evmcs_place {
#define X(at, bytes, name, member, group, out) EVMCS_AT_##name = (at),
	EVMCS_FIELDS(X)
#undef X
};

struct vmcs02;

/* What is no VMCS field. */
enum evmcs_special {
	EVMCS_REVISION = 0,
	EVMCS_ABORT = 4,
	EVMCS_CLEAN_FIELDS = 824,
	EVMCS_CONTROL = 836,
	EVMCS_VP_ID = 840,
	EVMCS_VM_ID = 848,
	EVMCS_PARTITION_ASSIST = 856,
};

/* Groups that have a clean bit, by TLFS number. */
#define EVMCS_CLEAN_ALL MASK(16)
/* Read whatever the clean fields say. */
#define EVMCS_ALWAYS (BIT32(GROUP_LIVE) | BIT32(GROUP_OTHER))

/* Fields of the `groups` into VMCS12, each read once. Returns the groups in which something differs from
 * before. */
u32 evmcs_copy_in(struct vmcs12 *to, const void *page, u32 groups);
/* Without MSR lists, CR3 targets or a page-fault filter on either side the addresses in OTHER mean nothing.
 */
static inline bool evmcs_other_unused(const struct vmcs12 *v12, const void *page)
{
	u64 theirs = EVMCS_AT(u64, page, EVMCS_AT_PF_MASK) | EVMCS_AT(u64, page, EVMCS_AT_CR3_TARGET_COUNT) |
		     EVMCS_AT(u64, page, EVMCS_AT_EXIT_MSR_LOAD_COUNT);
	u32 ours = v12->pf_mask | v12->pf_match | v12->cr3_target_count | v12->exit_msr_store_count |
		   v12->exit_msr_load_count | v12->entry_msr_load_count;

	_Static_assert(EVMCS_AT_PF_MATCH == EVMCS_AT_PF_MASK + 4 &&
			       EVMCS_AT_EXIT_MSR_STORE_COUNT == EVMCS_AT_CR3_TARGET_COUNT + 4 &&
			       EVMCS_AT_ENTRY_MSR_LOAD_COUNT == EVMCS_AT_EXIT_MSR_LOAD_COUNT + 4,
		       "read in pairs");
	return !(theirs | ours);
}

/* The fields without a clean bit into VMCS12 (LIVE, OTHER), as evmcs_copy_in does it. */
static inline u32 evmcs_copy_live(struct vmcs12 *to, const void *page)
{
	u64 rip = EVMCS_AT(u64, page, EVMCS_AT_GUEST_RIP);
	u32 threshold = EVMCS_AT(u32, page, EVMCS_AT_TPR_THRESHOLD);
	u32 changed = rip != to->guest_rip || threshold != to->tpr_threshold ? BIT32(GROUP_LIVE) : 0;

	to->guest_rip = rip;
	to->tpr_threshold = threshold;
	return likely(evmcs_other_unused(to, page)) ? changed
						    : changed | evmcs_copy_in(to, page, BIT32(GROUP_OTHER));
}

/* Exit information that L0 made, and the results of a failed entry or VMX instruction, into the page. */
void evmcs_put_info(void *page, const struct vmcs12 *from);
void evmcs_put_failed(void *page, const struct vmcs12 *from);
void evmcs_put_error(void *page, const struct vmcs12 *from);
/* evmcs_save.c: an exit of L2 into e->page. VMCS02 current. See struct enlightened. */
void evmcs_save(struct vmcs02 *e, bool rare);
void evmcs_save_exit(struct vmcs02 *e, u32 reason, bool rare);
/* Where the field of a VMREAD stands, and its bytes. False: nowhere. */
bool evmcs_find(const struct vmcs12_field *f, u16 *offset, u8 *bytes);

#endif
