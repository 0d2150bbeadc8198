/* SPDX-License-Identifier: Apache-2.0 */
/* Exceptions and interrupts of root mode. No guest's exception ever comes here; one that does is L0's own
 * mistake, or has a fixup. */
#include "hv/cpu.h"
#include "hv/fixup.h"
#include "hv/guest_console.h"
#include "hv/lapic.h"
#include "hv/panic.h"
#include "hv/pmu.h"
#include "hv/trap.h"
#include "hv/x86.h"
#include "mm/guest_access.h"
#include "mm/hostpt.h"

#define GATE_INTERRUPT 0x8e00 /* present, DPL 0, type 14: IF cleared */
#define IST_NMI        1
#define IST_DF         2
#define IST_MC         3
#define STUB_SIZE      8

struct gate {
	u16 offset_low, selector;
	u16 flags; /* IST in bits 2:0 */
	u16 offset_mid;
	u32 offset_high, zero;
};

extern const u8 idt_stubs[];
extern const struct fixup fixup_start[], fixup_end[];

static struct gate idt[256] __attribute__((aligned(4096)));

void idt_init(void)
{
	static const u8 ist[32] = {[VEC_NMI] = IST_NMI, [VEC_DF] = IST_DF, [VEC_MC] = IST_MC};

	for (unsigned i = 0; i < 256; i++) {
		u64 stub = (u64)(uintptr_t)idt_stubs + i * STUB_SIZE;

		idt[i] = (struct gate){
			.offset_low = (u16)stub,
			.selector = SEL_CODE,
			.flags = (u16)(GATE_INTERRUPT | (i < 32 ? ist[i] : 0)),
			.offset_mid = (u16)(stub >> 16),
			.offset_high = (u32)(stub >> 32),
		};
	}
}

u64 idt_base(void)
{
	return (u64)(uintptr_t)idt;
}

void idt_load(void)
{
	struct {
		u16 limit;
		u64 base;
	} __attribute__((packed)) ptr = {sizeof(idt) - 1, idt_base()};

	asm volatile("lidt %0" : : "m"(ptr));
}

static bool fix_up(struct trap_frame *f)
{
	for (const struct fixup *x = fixup_start; x < fixup_end; x++) {
		if (x->rip == f->rip) {
			f->rip = x->landing;
			return true;
		}
	}
	return false;
}

static void take_nmi(void)
{
	this_cpu()->nmis++;
	if (panic_running())
		for (;;)
			asm volatile("cli; hlt");
	host_nmi();
}

static void take_exception(struct trap_frame *f)
{
	if (f->vector == VEC_PF && hostpt_spurious_fault(read_cr2(), f->error))
		return;
	if (f->vector != VEC_DF && f->vector != VEC_MC && fix_up(f))
		return;
	panic_trap(f);
}

/* The interrupted code may stand in a stac window; nothing here reads guest memory. */
void trap(struct trap_frame *f)
{
	guest_access_end();
	if (f->vector == VEC_NMI)
		take_nmi();
	else if (f->vector < 32)
		take_exception(f);
	else
		host_interrupt((u8)f->vector);
}

void host_interrupt(u8 vector)
{
	if (vector == HOST_VEC_SPURIOUS)
		return;
	lapic_eoi();
	if (vector == HOST_VEC_PMI)
		pmu_interrupt();
	else if (vector == HOST_VEC_TIMER)
		timer_run();
	else if (vector == HOST_VEC_CONSOLE)
		guest_console_input();
}
