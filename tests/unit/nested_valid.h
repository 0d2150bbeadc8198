/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the tests of nested/ start from: hardware as Bochs' Skylake-X model shows it, the capabilities made
 * from it, facts, and a VMCS12 (64-bit guest and host, EPT, VPID) that passes every check. Each test changes
 * one thing.
 */
#ifndef NIDUS_TESTS_UNIT_NESTED_VALID_H
#define NIDUS_TESTS_UNIT_NESTED_VALID_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "hv/x86.h"
#include "mm/ept.h"
#include "nested/caps.h"
#include "nested/checks.h"
#include "nested/vmcs12.h"

#define VALID_PHYS_BITS 40
#define VALID_CR4       0x3727ffull

static const struct vmx_caps valid_hw = {
	.basic = 0x00d810000000002b,
	.pin = 0x0000007f00000016,
	.proc = 0xf7f9fffe0401e172,
	.exit = 0x007fffff00036dff,
	.entry = 0x0000ffff000011ff,
	.misc = 0x00000000600401e0,
	.cr0_fixed0 = 0x80000021,
	.cr0_fixed1 = 0xffffffff,
	.cr4_fixed0 = 0x2000,
	.cr4_fixed1 = VALID_CR4,
	.vmcs_enum = 0x34,
	.sec = 0x02177fff00000000,
	.ept_vpid = 0x00000f0106334141,
	.true_pin = 0x0000007f00000016,
	.true_proc = 0xf7f9fffe04006172,
	.true_exit = 0x007fffff00036dfb,
	.true_entry = 0x0000ffff000011fb,
	.vmfunc = 1,
};

struct valid {
	struct vmx_caps caps;
	struct check_facts f;
	struct vmcs12 v;
};

static inline void valid_controls(struct vmcs12 *v)
{
	v->pin_ctl = 0x16 | PIN_EXT_INTR | PIN_NMI;
	v->proc_ctl = 0x04006172 | PROC_HLT | PROC_MSR_BITMAPS | PROC_SECONDARY;
	v->sec_ctl = SEC_EPT | SEC_VPID | SEC_UNRESTRICTED;
	v->exit_ctl = 0x36dfb | EXIT_HOST_64 | EXIT_SAVE_EFER | EXIT_LOAD_EFER | EXIT_LOAD_PAT;
	v->entry_ctl = 0x11fb | ENTRY_IA32E | ENTRY_LOAD_EFER | ENTRY_LOAD_PAT | ENTRY_LOAD_DEBUG;
	v->vpid = 1;
	v->eptp = 0x100000 | EPTP_WALK4 | MEMTYPE_WB;
	v->msr_bitmap = 0x2000;
}

static inline void valid_host(struct vmcs12 *v)
{
	v->host_cr0 = CR0_PG | CR0_PE | CR0_NE | CR0_WP;
	v->host_cr4 = CR4_PAE | CR4_VMXE;
	v->host_cr3 = 0x3000;
	v->host_efer = EFER_LMA | EFER_LME;
	v->host_pat = 0x0007040600070406;
	v->host_cs_sel = 0x10;
	v->host_ss_sel = 0x18;
	v->host_tr_sel = 0x20;
	v->host_rip = 0xffffffff80000000;
	v->host_rsp = 0xffffffff80001000;
}

static inline void valid_guest(struct vmcs12 *v)
{
	v->guest_cr0 = CR0_PG | CR0_PE | CR0_NE;
	v->guest_cr4 = CR4_PAE | CR4_VMXE;
	v->guest_cr3 = 0x4000;
	v->guest_efer = EFER_LMA | EFER_LME;
	v->guest_pat = 0x0007040600070406;
	v->guest_dr7 = 0x400;
	v->guest_rflags = RFLAGS_FIXED;
	v->guest_rip = 0xffff800000000000;
	v->link_pointer = ~0ull;
	v->guest_cs_sel = 0x10;
	v->guest_cs_ar = 0xa09b;
	v->guest_cs_limit = 0xffffffff;
	v->guest_ss_sel = v->guest_ds_sel = v->guest_es_sel = 0x18;
	v->guest_ss_ar = v->guest_ds_ar = v->guest_es_ar = 0xc093;
	v->guest_ss_limit = v->guest_ds_limit = v->guest_es_limit = 0xffffffff;
	v->guest_fs_ar = v->guest_gs_ar = AR_UNUSABLE;
	v->guest_ldtr_ar = AR_UNUSABLE;
	v->guest_tr_sel = 0x20;
	v->guest_tr_ar = 0x8b;
	v->guest_tr_limit = 0x67;
}

static inline void valid_init(struct valid *t)
{
	*t = (struct valid){0};
	caps_plain(&t->caps, &valid_hw, VALID_CR4);
	caps_without_pmu(&t->caps);
	t->f = (struct check_facts){
		.caps = &t->caps,
		.phys_bits = VALID_PHYS_BITS,
		.linear_bits = 48,
		.ia32e = true,
		.efer_bits = EFER_SCE | EFER_LME | EFER_LMA | EFER_NXE,
		.debugctl_bits = 3,
		.vmcs = GPA(0x5000),
	};
	valid_controls(&t->v);
	valid_host(&t->v);
	valid_guest(&t->v);
}

/* Everything the hardware has, for rules about controls that are not offered yet. */
static inline void valid_offer_all(struct valid *t)
{
	t->caps = valid_hw;
	t->caps.basic = VMCS12_REVISION | VMX_BASIC_TRUE;
	t->caps.true_pin |= (u64)PIN_POSTED << 32;
	t->caps.true_proc |= (u64)PROC_MTF << 32;
	t->caps.sec |= (u64)(SEC_MBE | SEC_VID) << 32;
	t->caps.true_exit |= (u64)EXIT_LOAD_CET << 32;
	t->caps.true_entry |= (u64)(ENTRY_LOAD_CET | ENTRY_LOAD_BNDCFGS) << 32;
}

#endif
