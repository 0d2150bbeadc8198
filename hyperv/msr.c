/* SPDX-License-Identifier: Apache-2.0 */
/* The synthetic MSRs: one table in numeric order that names each and who answers. What is not here does not
 * exist (#GP). TLFS "Hypervisor Synthetic MSRs". */
#include "hv/lib.h"
#include "hyperv/internal.h"
#include "hyperv/stimer.h"
#include "hyperv/synic.h"

static bool read_os_id(struct vcpu *v, u32 msr, u64 *value)
{
	(void)msr;
	*value = hv_partition(v)->os_id;
	return true;
}

static bool read_hypercall(struct vcpu *v, u32 msr, u64 *value)
{
	(void)msr;
	*value = hv_partition(v)->hypercall;
	return true;
}

static bool read_vp_index(struct vcpu *v, u32 msr, u64 *value)
{
	(void)msr;
	*value = v->index;
	return true;
}

static bool read_zero(struct vcpu *v, u32 msr, u64 *value)
{
	(void)v, (void)msr;
	*value = 0;
	return true;
}

static bool write_reset(struct vcpu *v, u32 msr, u64 value)
{
	(void)msr;
	if (value & 1)
		guest_reset(v->guest);
	return true;
}

static bool read_time(struct vcpu *v, u32 msr, u64 *value)
{
	(void)msr;
	*value = reference_time(v->guest);
	return true;
}

static bool read_runtime(struct vcpu *v, u32 msr, u64 *value)
{
	(void)msr;
	*value = vp_runtime(v);
	return true;
}

static bool read_reference_tsc(struct vcpu *v, u32 msr, u64 *value)
{
	(void)msr;
	*value = hv_partition(v)->reference_tsc;
	return true;
}

/* The local APIC's timer counts at the TSC's rate (hv/dev/vlapic_timer.c). */
static bool read_frequency(struct vcpu *v, u32 msr, u64 *value)
{
	(void)v, (void)msr;
	*value = tsc_hz;
	return true;
}

/* --- the local APIC by MSR. TLFS "APIC EOI, ICR and TPR access by MSR" --- */

#define X2APIC_ICR 0x830u
#define APIC_ICR   0x300u
#define APIC_ICR2  0x310u
#define APIC_X2    BIT(10) /* IA32_APIC_BASE.EXTD */

static bool write_eoi(struct vcpu *v, u32 msr, u64 value)
{
	(void)msr;
	if (value >> 32)
		return false;
	vlapic_eoi(v);
	return true;
}

static bool read_icr(struct vcpu *v, u32 msr, u64 *value)
{
	(void)msr;
	if (vlapic_base(v) & APIC_X2)
		return vlapic_msr_read(v, X2APIC_ICR, value);
	*value = (u64)vlapic_mmio_read(v, APIC_ICR2) << 32 | vlapic_mmio_read(v, APIC_ICR);
	return true;
}

static bool write_icr(struct vcpu *v, u32 msr, u64 value)
{
	(void)msr;
	if (vlapic_base(v) & APIC_X2)
		return vlapic_msr_write(v, X2APIC_ICR, value);
	vlapic_mmio_write(v, APIC_ICR2, (u32)(value >> 32));
	vlapic_mmio_write(v, APIC_ICR, (u32)value);
	return true;
}

static bool read_tpr(struct vcpu *v, u32 msr, u64 *value)
{
	(void)msr;
	*value = vlapic_tpr(v);
	return true;
}

static bool write_tpr(struct vcpu *v, u32 msr, u64 value)
{
	(void)msr;
	if (value >> 8)
		return false;
	vlapic_set_tpr(v, (u8)value);
	return true;
}

static const struct rule {
	u32 first, last;
	bool (*read)(struct vcpu *v, u32 msr, u64 *value); /* NULL: #GP */
	bool (*write)(struct vcpu *v, u32 msr, u64 value);
} rules[] = {
	/* clang-format off */
	{ HV_MSR_GUEST_OS_ID, HV_MSR_GUEST_OS_ID, read_os_id, os_id_write },
	{ HV_MSR_HYPERCALL, HV_MSR_HYPERCALL, read_hypercall, hypercall_page_write },
	{ HV_MSR_VP_INDEX, HV_MSR_VP_INDEX, read_vp_index, NULL },
	{ HV_MSR_RESET, HV_MSR_RESET, read_zero, write_reset },
	{ HV_MSR_VP_RUNTIME, HV_MSR_VP_RUNTIME, read_runtime, NULL },
	{ HV_MSR_TIME_REF_COUNT, HV_MSR_TIME_REF_COUNT, read_time, NULL },
	{ HV_MSR_REFERENCE_TSC, HV_MSR_REFERENCE_TSC, read_reference_tsc, reference_tsc_write },
	{ HV_MSR_TSC_FREQUENCY, HV_MSR_APIC_FREQUENCY, read_frequency, NULL },
	{ HV_MSR_EOI, HV_MSR_EOI, NULL, write_eoi },
	{ HV_MSR_ICR, HV_MSR_ICR, read_icr, write_icr },
	{ HV_MSR_TPR, HV_MSR_TPR, read_tpr, write_tpr },
	{ HV_MSR_VP_ASSIST_PAGE, HV_MSR_VP_ASSIST_PAGE, assist_read, assist_write },
	{ HV_MSR_SCONTROL, HV_MSR_EOM, synic_read, synic_write },
	{ HV_MSR_SINT0, HV_MSR_SINT15, synic_read, synic_write },
	{ HV_MSR_STIMER0_CONFIG, HV_MSR_STIMER3_COUNT, stimer_read, stimer_write },
	{ HV_MSR_CRASH_P0, HV_MSR_CRASH_CTL, crash_read, crash_write },
	/* clang-format on */
};

static const struct rule *find(u32 msr)
{
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (msr >= rules[i].first && msr <= rules[i].last)
			return &rules[i];
	return NULL;
}

bool hv_msr_read(struct vcpu *v, u32 msr, u64 *value)
{
	const struct rule *r = find(msr);

	return r && r->read && r->read(v, msr, value);
}

bool hv_msr_write(struct vcpu *v, u32 msr, u64 value)
{
	const struct rule *r = find(msr);

	return r && r->write && r->write(v, msr, value);
}
