/* SPDX-License-Identifier: Apache-2.0 */
/* See evmcs.h. TLFS "Enlightened VMCS". */
#include "evmcs.h"
#include "cpu.h"
#include "hyperv.h"

const struct ev_field ev_fields[] = {
	/* clang-format off */
	{ 0x0c00, 8, 2, 14 }, /* host_es_selector */
	{ 0x0c02, 10, 2, 14 }, /* host_cs_selector */
	{ 0x0c04, 12, 2, 14 }, /* host_ss_selector */
	{ 0x0c06, 14, 2, 14 }, /* host_ds_selector */
	{ 0x0c08, 16, 2, 14 }, /* host_fs_selector */
	{ 0x0c0a, 18, 2, 14 }, /* host_gs_selector */
	{ 0x0c0c, 20, 2, 14 }, /* host_tr_selector */
	{ 0x2c00, 24, 8, 14 }, /* host_ia32_pat */
	{ 0x2c02, 32, 8, 14 }, /* host_ia32_efer */
	{ 0x6c00, 40, 8, 14 }, /* host_cr0 */
	{ 0x6c02, 48, 8, 14 }, /* host_cr3 */
	{ 0x6c04, 56, 8, 14 }, /* host_cr4 */
	{ 0x6c10, 64, 8, 14 }, /* host_ia32_sysenter_esp */
	{ 0x6c12, 72, 8, 14 }, /* host_ia32_sysenter_eip */
	{ 0x6c16, 80, 8, 14 }, /* host_rip */
	{ 0x4c00, 88, 4, 14 }, /* host_ia32_sysenter_cs */
	{ 0x4000, 92, 4, 3 }, /* pin_based_vm_exec_control */
	{ 0x400c, 96, 4, 3 }, /* vm_exit_controls */
	{ 0x401e, 100, 4, 3 }, /* secondary_vm_exec_control */
	{ 0x2000, 104, 8, 0 }, /* io_bitmap_a */
	{ 0x2002, 112, 8, 0 }, /* io_bitmap_b */
	{ 0x2004, 120, 8, 1 }, /* msr_bitmap */
	{ 0x0800, 128, 2, 12 }, /* guest_es_selector */
	{ 0x0802, 130, 2, 12 }, /* guest_cs_selector */
	{ 0x0804, 132, 2, 12 }, /* guest_ss_selector */
	{ 0x0806, 134, 2, 12 }, /* guest_ds_selector */
	{ 0x0808, 136, 2, 12 }, /* guest_fs_selector */
	{ 0x080a, 138, 2, 12 }, /* guest_gs_selector */
	{ 0x080c, 140, 2, 12 }, /* guest_ldtr_selector */
	{ 0x080e, 142, 2, 12 }, /* guest_tr_selector */
	{ 0x4800, 144, 4, 12 }, /* guest_es_limit */
	{ 0x4802, 148, 4, 12 }, /* guest_cs_limit */
	{ 0x4804, 152, 4, 12 }, /* guest_ss_limit */
	{ 0x4806, 156, 4, 12 }, /* guest_ds_limit */
	{ 0x4808, 160, 4, 12 }, /* guest_fs_limit */
	{ 0x480a, 164, 4, 12 }, /* guest_gs_limit */
	{ 0x480c, 168, 4, 12 }, /* guest_ldtr_limit */
	{ 0x480e, 172, 4, 12 }, /* guest_tr_limit */
	{ 0x4810, 176, 4, 12 }, /* guest_gdtr_limit */
	{ 0x4812, 180, 4, 12 }, /* guest_idtr_limit */
	{ 0x4814, 184, 4, 12 }, /* guest_es_ar_bytes */
	{ 0x4816, 188, 4, 12 }, /* guest_cs_ar_bytes */
	{ 0x4818, 192, 4, 12 }, /* guest_ss_ar_bytes */
	{ 0x481a, 196, 4, 12 }, /* guest_ds_ar_bytes */
	{ 0x481c, 200, 4, 12 }, /* guest_fs_ar_bytes */
	{ 0x481e, 204, 4, 12 }, /* guest_gs_ar_bytes */
	{ 0x4820, 208, 4, 12 }, /* guest_ldtr_ar_bytes */
	{ 0x4822, 212, 4, 12 }, /* guest_tr_ar_bytes */
	{ 0x6806, 216, 8, 12 }, /* guest_es_base */
	{ 0x6808, 224, 8, 12 }, /* guest_cs_base */
	{ 0x680a, 232, 8, 12 }, /* guest_ss_base */
	{ 0x680c, 240, 8, 12 }, /* guest_ds_base */
	{ 0x680e, 248, 8, 12 }, /* guest_fs_base */
	{ 0x6810, 256, 8, 12 }, /* guest_gs_base */
	{ 0x6812, 264, 8, 12 }, /* guest_ldtr_base */
	{ 0x6814, 272, 8, 12 }, /* guest_tr_base */
	{ 0x6816, 280, 8, 12 }, /* guest_gdtr_base */
	{ 0x6818, 288, 8, 12 }, /* guest_idtr_base */
	{ 0x2006, 320, 8, EV_ALWAYS }, /* vm_exit_msr_store_addr */
	{ 0x2008, 328, 8, EV_ALWAYS }, /* vm_exit_msr_load_addr */
	{ 0x200a, 336, 8, EV_ALWAYS }, /* vm_entry_msr_load_addr */
	{ 0x6008, 344, 8, EV_ALWAYS }, /* cr3_target_value0 */
	{ 0x600a, 352, 8, EV_ALWAYS }, /* cr3_target_value1 */
	{ 0x600c, 360, 8, EV_ALWAYS }, /* cr3_target_value2 */
	{ 0x600e, 368, 8, EV_ALWAYS }, /* cr3_target_value3 */
	{ 0x4006, 376, 4, EV_ALWAYS }, /* page_fault_error_code_mask */
	{ 0x4008, 380, 4, EV_ALWAYS }, /* page_fault_error_code_match */
	{ 0x400a, 384, 4, EV_ALWAYS }, /* cr3_target_count */
	{ 0x400e, 388, 4, EV_ALWAYS }, /* vm_exit_msr_store_count */
	{ 0x4010, 392, 4, EV_ALWAYS }, /* vm_exit_msr_load_count */
	{ 0x4014, 396, 4, EV_ALWAYS }, /* vm_entry_msr_load_count */
	{ 0x2010, 400, 8, 2 }, /* tsc_offset */
	{ 0x2012, 408, 8, 2 }, /* virtual_apic_page_addr */
	{ 0x2800, 416, 8, 11 }, /* vmcs_link_pointer */
	{ 0x2802, 424, 8, 11 }, /* guest_ia32_debugctl */
	{ 0x2804, 432, 8, 11 }, /* guest_ia32_pat */
	{ 0x2806, 440, 8, 11 }, /* guest_ia32_efer */
	{ 0x280a, 448, 8, 11 }, /* guest_pdptr0 */
	{ 0x280c, 456, 8, 11 }, /* guest_pdptr1 */
	{ 0x280e, 464, 8, 11 }, /* guest_pdptr2 */
	{ 0x2810, 472, 8, 11 }, /* guest_pdptr3 */
	{ 0x6822, 480, 8, 11 }, /* guest_pending_dbg_exceptions */
	{ 0x6824, 488, 8, 11 }, /* guest_sysenter_esp */
	{ 0x6826, 496, 8, 11 }, /* guest_sysenter_eip */
	{ 0x4826, 504, 4, 11 }, /* guest_activity_state */
	{ 0x482a, 508, 4, 11 }, /* guest_sysenter_cs */
	{ 0x6000, 512, 8, 8 }, /* cr0_guest_host_mask */
	{ 0x6002, 520, 8, 8 }, /* cr4_guest_host_mask */
	{ 0x6004, 528, 8, 8 }, /* cr0_read_shadow */
	{ 0x6006, 536, 8, 8 }, /* cr4_read_shadow */
	{ 0x6800, 544, 8, 8 }, /* guest_cr0 */
	{ 0x6802, 552, 8, 8 }, /* guest_cr3 */
	{ 0x6804, 560, 8, 8 }, /* guest_cr4 */
	{ 0x681a, 568, 8, 8 }, /* guest_dr7 */
	{ 0x6c06, 576, 8, 13 }, /* host_fs_base */
	{ 0x6c08, 584, 8, 13 }, /* host_gs_base */
	{ 0x6c0a, 592, 8, 13 }, /* host_tr_base */
	{ 0x6c0c, 600, 8, 13 }, /* host_gdtr_base */
	{ 0x6c0e, 608, 8, 13 }, /* host_idtr_base */
	{ 0x6c14, 616, 8, 13 }, /* host_rsp */
	{ 0x201a, 624, 8, 9 }, /* ept_pointer */
	{ 0x0000, 632, 2, 9 }, /* virtual_processor_id */
	{ 0x2400, 680, 8, EV_ALWAYS }, /* guest_physical_address */
	{ 0x4400, 688, 4, EV_ALWAYS }, /* vm_instruction_error */
	{ 0x4402, 692, 4, EV_ALWAYS }, /* vm_exit_reason */
	{ 0x4404, 696, 4, EV_ALWAYS }, /* vm_exit_intr_info */
	{ 0x4406, 700, 4, EV_ALWAYS }, /* vm_exit_intr_error_code */
	{ 0x4408, 704, 4, EV_ALWAYS }, /* idt_vectoring_info_field */
	{ 0x440a, 708, 4, EV_ALWAYS }, /* idt_vectoring_error_code */
	{ 0x440c, 712, 4, EV_ALWAYS }, /* vm_exit_instruction_len */
	{ 0x440e, 716, 4, EV_ALWAYS }, /* vmx_instruction_info */
	{ 0x6400, 720, 8, EV_ALWAYS }, /* exit_qualification */
	{ 0x6402, 728, 8, EV_ALWAYS }, /* exit_io_instruction_ecx */
	{ 0x6404, 736, 8, EV_ALWAYS }, /* exit_io_instruction_esi */
	{ 0x6406, 744, 8, EV_ALWAYS }, /* exit_io_instruction_edi */
	{ 0x6408, 752, 8, EV_ALWAYS }, /* exit_io_instruction_eip */
	{ 0x640a, 760, 8, EV_ALWAYS }, /* guest_linear_address */
	{ 0x681c, 768, 8, 10 }, /* guest_rsp */
	{ 0x6820, 776, 8, 10 }, /* guest_rflags */
	{ 0x4824, 784, 4, 10 }, /* guest_interruptibility_info */
	{ 0x4002, 788, 4, 4 }, /* cpu_based_vm_exec_control */
	{ 0x4004, 792, 4, 7 }, /* exception_bitmap */
	{ 0x4012, 796, 4, 6 }, /* vm_entry_controls */
	{ 0x4016, 800, 4, 5 }, /* vm_entry_intr_info_field */
	{ 0x4018, 804, 4, 5 }, /* vm_entry_exception_error_code */
	{ 0x401a, 808, 4, 5 }, /* vm_entry_instruction_len */
	{ 0x401c, 812, 4, EV_ALWAYS }, /* tpr_threshold */
	{ 0x681e, 816, 8, EV_ALWAYS }, /* guest_rip */
	{ 0x2812, 896, 8, 11 }, /* guest_bndcfgs */
	{ 0x2808, 904, 8, 11 }, /* guest_ia32_perf_global_ctrl */
	{ 0x6828, 912, 8, 11 }, /* guest_ia32_s_cet */
	{ 0x682a, 920, 8, 10 }, /* guest_ssp */
	{ 0x682c, 928, 8, 11 }, /* guest_ia32_int_ssp_table_addr */
	{ 0x2816, 936, 8, 11 }, /* guest_ia32_lbr_ctl */
	{ 0x202c, 960, 8, 2 }, /* xss_exit_bitmap */
	{ 0x202e, 968, 8, 2 }, /* encls_exiting_bitmap */
	{ 0x2c04, 976, 8, 14 }, /* host_ia32_perf_global_ctrl */
	{ 0x2032, 984, 8, 2 }, /* tsc_multiplier */
	{ 0x6c18, 992, 8, 14 }, /* host_ia32_s_cet */
	{ 0x6c1a, 1000, 8, 14 }, /* host_ssp */
	{ 0x6c1c, 1008, 8, 14 }, /* host_ia32_int_ssp_table_addr */
	/* clang-format on */
};
const u32 ev_field_count = ARRAY_SIZE(ev_fields);

const struct ev_field *ev_find(u32 encoding)
{
	for (u32 i = 0; i < ev_field_count; i++)
		if (ev_fields[i].encoding == encoding)
			return &ev_fields[i];
	return NULL;
}

static void copy(void *to, const void *from, u32 n)
{
	for (u32 i = 0; i < n; i++)
		((volatile u8 *)to)[i] = ((const volatile u8 *)from)[i];
}

u64 ev_read(const u8 *page, u32 encoding)
{
	const struct ev_field *f = ev_find(encoding);
	u64 value = 0;

	copy(&value, page + f->offset, f->bytes);
	return value;
}

void ev_write_quietly(u8 *page, u32 encoding, u64 value)
{
	const struct ev_field *f = ev_find(encoding);

	copy(page + f->offset, &value, f->bytes);
}

void ev_write(u8 *page, u32 encoding, u64 value)
{
	const struct ev_field *f = ev_find(encoding);

	ev_write_quietly(page, encoding, value);
	if (f->clean != EV_ALWAYS)
		*ev_clean(page) &= ~(1u << f->clean);
}

volatile u32 *ev_clean(u8 *page)
{
	return (volatile u32 *)(void *)(page + EV_CLEAN);
}

volatile u32 *ev_word(u8 *page, u32 offset)
{
	return (volatile u32 *)(void *)(page + offset);
}

void ev_fill(u8 *page)
{
	u64 value;

	memset(page, 0, PAGE_SIZE);
	*ev_word(page, EV_VERSION) = 1;
	for (u32 i = 0; i < ev_field_count; i++)
		if (vmread_try(ev_fields[i].encoding, &value) == VM_OK)
			copy(page + ev_fields[i].offset, &value, ev_fields[i].bytes);
}

void ev_activate(u8 *page)
{
	volatile struct hv_assist *a = hv_assist();

	a->current_nested_vmcs = addr_of(page);
	a->enlighten_vmentry = 1;
}

void ev_off(void)
{
	volatile struct hv_assist *a = hv_assist();

	a->enlighten_vmentry = 0;
	a->current_nested_vmcs = 0;
}

struct vm_result ev_enter(u8 *page, bool resume)
{
	struct vm_result r = {0};
	u64 flags;

	ev_activate(page);
	trap_forget();
	flags = l2_enter_raw(resume);
	if (flags) {
		r.kind = VM_FAIL;
		r.fail = trap_last()         ? trap_last()
			 : flags & RFLAGS_CF ? VMFAIL_INVALID
					     : VMFAIL_VALID(ev_read(page, VMCS_INSN_ERROR));
		return r;
	}
	r.reason = (u32)ev_read(page, VMCS_EXIT_REASON);
	r.qual = ev_read(page, VMCS_EXIT_QUAL);
	r.rip = ev_read(page, VMCS_GUEST_RIP);
	r.insn_len = (u32)ev_read(page, VMCS_EXIT_INSN_LEN);
	r.intr_info = (u32)ev_read(page, VMCS_EXIT_INTR_INFO);
	r.gpa = ev_read(page, VMCS_GUEST_PHYSICAL);
	return r;
}

struct vm_result ev_resume_past(u8 *page, const struct vm_result *r)
{
	ev_write(page, VMCS_GUEST_RIP, r->rip + r->insn_len);
	return ev_enter(page, true);
}
