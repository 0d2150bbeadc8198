/* SPDX-License-Identifier: Apache-2.0 */
/* See hyperv.h. */
#include "hyperv.h"
#include "cpu.h"
#include "page.h"
#include "report.h"
#include "trap.h"

static u8 *call_page;
static volatile struct hv_assist *assist[MAX_CPUS];

bool hv_available(void)
{
	struct cpuid r = cpuid(0x40000000, 0);

	if (cpuid(1, 0).ecx & BIT(31) && r.ebx == 0x7263694d && r.ecx == 0x666f736f && r.edx == 0x76482074)
		return true;
	skip("hyperv", "no Hyper-V below");
	return false;
}

void hv_start(void)
{
	if (!call_page)
		call_page = page_alloc();
	wrmsr(HV_MSR_GUEST_OS_ID, HV_OS_ID);
	wrmsr(HV_MSR_HYPERCALL, addr_of(call_page) | 1);
}

u8 *hv_hypercall_page(void)
{
	return call_page;
}

u64 hv_call(u64 control, u64 input, u64 output)
{
	register u64 r8 asm("r8") = output;
	u64 result;

	asm volatile("call *%[page]"
		     : "=a"(result), "+c"(control), "+d"(input), "+r"(r8)
		     : [page] "r"(call_page), "a"(0ull)
		     : "r9", "r10", "r11", "memory", "cc");
	return result;
}

volatile struct hv_assist *hv_assist(void)
{
	u32 cpu = cpu_index();

	if (!assist[cpu]) {
		assist[cpu] = page_alloc();
		wrmsr(HV_MSR_ASSIST, addr_of((const void *)(uintptr_t)assist[cpu]) | 1);
	}
	return assist[cpu];
}
