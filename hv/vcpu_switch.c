/* SPDX-License-Identifier: Apache-2.0 */
/*
 * L0 uses no FPU, debug or SYSCALL register itself, so a guest's values stay in the CPU across exits and are
 * moved only here, when another vCPU gets the CPU.
 */
#include "hv/vcpu_switch.h"
#include "hv/cpu.h"
#include "hv/lib.h"
#include "hv/vcpu.h"
#include "hv/vmcs_init.h"
#include "mm/palloc.h"

#define FPU_ORDER 2 /* 16 KiB: x87 to AVX-512 and PKRU take less than 3 KiB */

/* x87, SSE, AVX, the three AVX-512 parts, PKRU. MPX and AMX are not offered. */
#define XCR0_OFFERED (BIT(0) | BIT(1) | BIT(2) | BIT(5) | BIT(6) | BIT(7) | BIT(9))

u64 xcr0_supported(void)
{
	struct cpuid d = cpuid(0xd, 0);

	if (!(read_cr4() & CR4_OSXSAVE))
		return 1;
	return ((u64)d.edx << 32 | d.eax) & XCR0_OFFERED;
}

void *fpu_alloc(void)
{
	void *area = pages_alloc(FPU_ORDER);

	if (area)
		fpu_reset(area);
	return area;
}

void fpu_free(void *area)
{
	if (area)
		pfree(ptr_hpa(area), FPU_ORDER);
}

/* SDM "Layout of the XSAVE Area": FCW and MXCSR after reset; XSTATE_BV zero gives every component its initial
 * state. */
void fpu_reset(void *area)
{
	memset(area, 0, PAGE_SIZE << FPU_ORDER);
	*(u16 *)area = 0x37f;
	((u32 *)area)[6] = 0x1f80;
}

static void fpu_save(void *area)
{
	if (read_cr4() & CR4_OSXSAVE) {
		xsetbv0(xcr0_supported());
		asm volatile("xsave64 (%0)" : : "r"(area), "a"(~0u), "d"(~0u) : "memory");
	} else {
		asm volatile("fxsave64 (%0)" : : "r"(area) : "memory");
	}
}

static void fpu_restore(const void *area)
{
	if (read_cr4() & CR4_OSXSAVE) {
		xsetbv0(xcr0_supported());
		asm volatile("xrstor64 (%0)" : : "r"(area), "a"(~0u), "d"(~0u) : "memory");
	} else {
		asm volatile("fxrstor64 (%0)" : : "r"(area) : "memory");
	}
}

static void debug_save(struct vcpu *v)
{
	asm volatile("mov %%db0, %0" : "=r"(v->dr[0]));
	asm volatile("mov %%db1, %0" : "=r"(v->dr[1]));
	asm volatile("mov %%db2, %0" : "=r"(v->dr[2]));
	asm volatile("mov %%db3, %0" : "=r"(v->dr[3]));
	asm volatile("mov %%db6, %0" : "=r"(v->dr6));
}

static void debug_restore(const struct vcpu *v)
{
	asm volatile("mov %0, %%db0" : : "r"(v->dr[0]));
	asm volatile("mov %0, %%db1" : : "r"(v->dr[1]));
	asm volatile("mov %0, %%db2" : : "r"(v->dr[2]));
	asm volatile("mov %0, %%db3" : : "r"(v->dr[3]));
	asm volatile("mov %0, %%db6" : : "r"(v->dr6));
}

static void msrs_save(struct vcpu *v)
{
	v->star = rdmsr(MSR_STAR);
	v->lstar = rdmsr(MSR_LSTAR);
	v->cstar = rdmsr(MSR_CSTAR);
	v->fmask = rdmsr(MSR_FMASK);
	v->kernel_gs = rdmsr(MSR_KERNEL_GS_BASE);
	if (l0_controls.sec & SEC_RDTSCP)
		v->tsc_aux = rdmsr(MSR_TSC_AUX);
}

static void msrs_restore(const struct vcpu *v)
{
	wrmsr(MSR_STAR, v->star);
	wrmsr(MSR_LSTAR, v->lstar);
	wrmsr(MSR_CSTAR, v->cstar);
	wrmsr(MSR_FMASK, v->fmask);
	wrmsr(MSR_KERNEL_GS_BASE, v->kernel_gs);
	if (l0_controls.sec & SEC_RDTSCP)
		wrmsr(MSR_TSC_AUX, v->tsc_aux);
}

void vcpu_unload(struct vcpu *v)
{
	struct cpu *c = this_cpu();

	if (c->loaded != v)
		return;
	v->cr2 = read_cr2();
	debug_save(v);
	msrs_save(v);
	fpu_save(v->fpu);
	if (v->pmu)
		pmu_unload(v);
	c->loaded = NULL;
}

void vcpu_load(struct vcpu *v)
{
	struct cpu *c = this_cpu();

	if (c->loaded != v) {
		if (c->loaded)
			vcpu_unload(c->loaded);
		fpu_restore(v->fpu);
		if (read_cr4() & CR4_OSXSAVE)
			xsetbv0(v->xcr0);
		msrs_restore(v);
		debug_restore(v);
		write_cr2(v->cr2);
		if (v->pmu)
			pmu_load(v);
		/* Before v->pending is looked at: hyperv/wait.c looks in the other order. */
		__atomic_store_n(&c->loaded, v, __ATOMIC_SEQ_CST);
	}
	vmcs_load(v->vmcs);
}
