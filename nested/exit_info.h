/* SPDX-License-Identifier: Apache-2.0 */
/* Which exit-information fields an exit of L2 defines, by its reason. Pure. SDM "Information for VM Exits".
 */
#ifndef NIDUS_NESTED_EXIT_INFO_H
#define NIDUS_NESTED_EXIT_INFO_H

#include "hv/vmcs.h"

/*
 * Unconditional or simple instructions: reason and length are all there is to tell. Qualification,
 * interruption and IDT-vectoring information read 0, instruction information is undefined.
 */
static inline bool exit_is_simple(u32 reason)
{
	const u64 simple = BIT(EXIT_CPUID) | BIT(EXIT_HLT) | BIT(EXIT_RDPMC) | BIT(EXIT_RDTSC) |
			   BIT(EXIT_VMCALL) | BIT(EXIT_RDMSR) | BIT(EXIT_WRMSR) | BIT(EXIT_PAUSE) |
			   BIT(EXIT_RDTSCP) | BIT(EXIT_WBINVD) | BIT(EXIT_XSETBV);

	return reason < 64 && simple >> reason & 1;
}

static inline bool exit_has_linear(u32 reason)
{
	return reason == EXIT_EPT_VIOLATION || reason == EXIT_IO || reason == EXIT_CR_ACCESS;
}

static inline bool exit_has_phys(u32 reason)
{
	return reason == EXIT_EPT_VIOLATION || reason == EXIT_EPT_MISCONFIG;
}

#endif
