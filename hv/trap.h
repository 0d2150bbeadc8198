/* SPDX-License-Identifier: Apache-2.0 */
/* What hv/idt.S saves when an exception or interrupt hits root mode. Private to hv/idt and hv/panic. */
#ifndef NIDUS_HV_TRAP_H
#define NIDUS_HV_TRAP_H

#include "hv/types.h"

struct trap_frame {
	u64 r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax;
	u64 vector, error; /* pushed by the stub; error is 0 where the CPU pushes none */
	u64 rip, cs, rflags, rsp, ss;
};

/* Called by the stubs. */
void trap(struct trap_frame *f);
/* panic() with the registers of `f` instead of the caller's. */
void panic_trap(const struct trap_frame *f) __attribute__((noreturn));
/* True once some CPU panics: the others stop at their next NMI. */
bool panic_running(void);

#endif
