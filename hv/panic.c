/* SPDX-License-Identifier: Apache-2.0 */
/* The last words of L0. Uses no lock, allocates nothing, and survives a second fault by stopping. */
#include "hv/panic.h"
#include "hv/console.h"
#include "hv/cpu.h"
#include "hv/lapic.h"
#include "hv/poweroff.h"
#include "hv/print.h"
#include "hv/symbols.h"
#include "hv/trap.h"
#include "hv/vmcs.h"
#include "hv/x86.h"

#define FRAMES_MAX 24

static enum ending ending = END_HALT;
static u32 depth; /* panics begun, on any CPU */

void panic_init(unsigned on_panic)
{
	ending = (enum ending)on_panic;
}

bool panic_running(void)
{
	return __atomic_load_n(&depth, __ATOMIC_RELAXED) != 0;
}

static void halt(void)
{
	for (;;)
		asm volatile("cli; hlt");
}

/* First panic goes on; a second one on the same CPU ends, one on another CPU stops there. */
static void begin(void)
{
	static u32 owner;
	u32 me = nr_cpus ? this_cpu()->index : 0;

	switch (__atomic_fetch_add(&depth, 1, __ATOMIC_ACQ_REL)) {
	case 0:
		owner = me;
		break;
	case 1:
		if (owner == me) {
			log_error("panic inside panic");
			machine_end(ending, 1);
		}
		/* fall through */
	default:
		halt();
	}
	for (unsigned i = 0; i < nr_cpus; i++)
		if (i != me && cpus[i]->online)
			lapic_nmi(cpus[i]->apic_id);
	console_break_lock();
}

static void print_control_registers(void)
{
	log_error("cr0 %016lx cr2 %016lx cr3 %016lx cr4 %016lx", read_cr0(), read_cr2(), read_cr3(),
		  read_cr4());
	if (nr_cpus)
		log_error("cpu %u apic %u loaded vcpu %p", this_cpu()->index, this_cpu()->apic_id,
			  (void *)this_cpu()->loaded);
}

/* A frame pointer must stand in a main or IST stack of a CPU, or in the image (boot stack). */
static bool plausible_frame(u64 bp)
{
	extern char data_start[], image_end[];

	if (bp & 7)
		return false;
	if (bp >= (uintptr_t)data_start && bp + 16 <= (uintptr_t)image_end)
		return true;
	for (unsigned i = 0; i < nr_cpus; i++)
		if (bp >= (uintptr_t)cpus[i]->stacks && bp + 16 <= cpus[i]->stack_top)
			return true;
	return false;
}

static void print_address(u64 a)
{
	char name[SYMBOL_MAX];
	u64 offset;

	if (symbol_at(a, name, &offset))
		log_error("  %016lx %s+%#lx", a, name, offset);
	else
		log_error("  %016lx", a);
}

static void back_trace(u64 bp)
{
	log_error("back-trace:");
	for (unsigned i = 0; i < FRAMES_MAX && plausible_frame(bp); i++) {
		const u64 *frame = hpa_ptr(HPA(bp));

		if (!frame[1])
			break;
		print_address(frame[1] - 1);
		if (frame[0] <= bp)
			break;
		bp = frame[0];
	}
}

static void finish(void)
{
	vmcs_dump();
	log_error("stopped");
	machine_end(ending, 1);
}

void panic(const char *fmt, ...)
{
	char text[256];
	va_list ap;

	begin();
	va_start(ap, fmt);
	vformat(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_error("panic: %s", text);
	print_control_registers();
	back_trace((u64)(uintptr_t)__builtin_frame_address(0));
	finish();
	__builtin_unreachable();
}

void panic_trap(const struct trap_frame *f)
{
	begin();
	log_error("panic: exception %lu error %lx in L0", f->vector, f->error);
	log_error("rip %016lx cs %04lx rflags %08lx rsp %016lx ss %04lx", f->rip, f->cs, f->rflags, f->rsp,
		  f->ss);
	log_error("rax %016lx rbx %016lx rcx %016lx rdx %016lx", f->rax, f->rbx, f->rcx, f->rdx);
	log_error("rsi %016lx rdi %016lx rbp %016lx r8  %016lx", f->rsi, f->rdi, f->rbp, f->r8);
	log_error("r9  %016lx r10 %016lx r11 %016lx r12 %016lx", f->r9, f->r10, f->r11, f->r12);
	log_error("r13 %016lx r14 %016lx r15 %016lx", f->r13, f->r14, f->r15);
	print_control_registers();
	print_address(f->rip);
	back_trace(f->rbp);
	finish();
	__builtin_unreachable();
}
