/* SPDX-License-Identifier: Apache-2.0 */
/* IDT, exception fix-up, interrupt handlers, ring 3. */
#include "trap.h"
#include "cpu.h"
#include "lapic.h"
#include "print.h"
#include "report.h"

#define GATE_INTERRUPT 0x8e
#define GATE_USER      0xee
#define VEC_USER_EXIT  0x81
#define IST_DF         1

struct gate {
	u16 offset_low, selector;
	u8 ist, type;
	u16 offset_mid;
	u32 offset_high, reserved;
};

struct fixup {
	u64 from, to;
};

_Static_assert(sizeof(struct gate) == 16, "SDM: 64-Bit IDT Gate Descriptors");

extern const u8 trap_stubs[];
extern const struct fixup fixups_start[], fixups_end[];
void trap_entry(struct regs *r);
void user_enter(void (*fn)(void), u64 user_stack, u64 *kernel_rsp);
void user_leave(u64 kernel_rsp) __attribute__((noreturn));

static struct gate idt[256] __attribute__((aligned(16)));
static trap_fn *handlers[256];
static u8 user_stack[MAX_CPUS][4096] __attribute__((aligned(16)));

volatile u32 trap_spurious;

static void spurious(struct regs *r)
{
	(void)r;
	trap_spurious++;
}

static void user_exit(struct regs *r)
{
	(void)r;
	user_leave(this_cpu()->user_rsp);
}

void trap_init(void)
{
	for (u32 v = 0; v < 256; v++) {
		u64 stub = addr_of(trap_stubs) + v * 16;

		idt[v] = (struct gate){
			.offset_low = (u16)stub,
			.selector = SEL_CODE64,
			.ist = v == VEC_DF ? IST_DF : 0,
			.type = v == VEC_USER_EXIT || v == VEC_BP || v == VEC_OF ? GATE_USER : GATE_INTERRUPT,
			.offset_mid = (u16)(stub >> 16),
			.offset_high = (u32)(stub >> 32),
		};
	}
	trap_handle(VEC_USER_EXIT, user_exit);
	trap_handle(VEC_SPURIOUS, spurious);
	trap_load();
}

void trap_load(void)
{
	lidt((struct desc_ptr){sizeof(idt) - 1, addr_of(idt)});
}

void trap_handle(u32 vector, trap_fn *fn)
{
	handlers[vector] = fn;
	barrier();
}

void trap_forget(void)
{
	this_cpu()->trap = 0;
	barrier();
}

u32 trap_last(void)
{
	barrier();
	return this_cpu()->trap;
}

u64 trap_cr2(void)
{
	return this_cpu()->trap_cr2;
}

static bool fix_up(struct regs *r)
{
	for (const struct fixup *f = fixups_start; f < fixups_end; f++) {
		if (f->from != r->rip)
			continue;
		this_cpu()->trap = FAULT(r->vector, r->error);
		this_cpu()->trap_cr2 = r->vector == VEC_PF ? read_cr2() : 0;
		r->rip = f->to;
		return true;
	}
	return false;
}

/* A data breakpoint or a single step stops behind the instruction, so it never reaches a fix-up: it needs a
 * handler. */
void trap_entry(struct regs *r)
{
	if (handlers[r->vector]) {
		handlers[r->vector](r);
		return;
	}
	if (r->vector < 32 && fix_up(r))
		return;
	print("FAIL unexpected-trap cpu %u vector %lu error %lx rip %lx cs %lx rsp %lx rflags %lx cr2 %lx\n",
	      cpu_index(), r->vector, r->error, r->rip, r->cs, r->rsp, r->rflags, read_cr2());
	print("DONE 1 checks, 1 failed\n");
	machine_exit(2);
}

void user_run(void (*fn)(void))
{
	user_enter(fn, addr_of(user_stack[cpu_index()]) + sizeof(user_stack[0]), &this_cpu()->user_rsp);
}

u32 try_rdmsr(u32 msr, u64 *value)
{
	u32 lo = 0, hi = 0;

	trap_forget();
	asm volatile(TRY("rdmsr") : "+a"(lo), "+d"(hi) : "c"(msr) : "memory");
	if (value)
		*value = (u64)hi << 32 | lo;
	return trap_last();
}

u32 try_wrmsr(u32 msr, u64 value)
{
	trap_forget();
	asm volatile(TRY("wrmsr") : : "c"(msr), "a"((u32)value), "d"((u32)(value >> 32)) : "memory");
	return trap_last();
}

u32 try_write_cr0(u64 v)
{
	trap_forget();
	asm volatile(TRY("mov %0, %%cr0") : : "r"(v) : "memory");
	return trap_last();
}

u32 try_write_cr3(u64 v)
{
	trap_forget();
	asm volatile(TRY("mov %0, %%cr3") : : "r"(v) : "memory");
	return trap_last();
}

u32 try_write_cr4(u64 v)
{
	trap_forget();
	asm volatile(TRY("mov %0, %%cr4") : : "r"(v) : "memory");
	return trap_last();
}

u32 try_xsetbv(u64 index, u64 value)
{
	trap_forget();
	asm volatile(TRY("xsetbv") : : "c"(index), "a"((u32)value), "d"((u32)(value >> 32)) : "memory");
	return trap_last();
}

u32 try_read64(u64 addr, u64 *value)
{
	u64 v = 0;

	trap_forget();
	asm volatile(TRY("mov (%1), %0") : "+r"(v) : "r"(addr) : "memory");
	if (value)
		*value = v;
	return trap_last();
}

u32 try_write64(u64 addr, u64 value)
{
	trap_forget();
	asm volatile(TRY("mov %0, (%1)") : : "r"(value), "r"(addr) : "memory");
	return trap_last();
}

const void *trap_stub(u32 vector)
{
	return trap_stubs + vector * 16;
}
