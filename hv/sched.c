/* SPDX-License-Identifier: Apache-2.0 */
/* Round robin per physical CPU; idle in HLT. No vCPU has a stack, so switching is only choosing another one.
 */
#include "hv/sched.h"
#include "hv/cpu.h"
#include "hv/exit.h"
#include "hv/guest_console.h"
#include "hv/guest_life.h"
#include "hv/vcpu_switch.h"
#include "hv/vmcs_init.h"

void vcpu_enter(struct vcpu *v) __attribute__((noreturn));

void sched_add(struct vcpu *v)
{
	struct cpu *c = v->cpu;

	if (!c->run_queue) {
		c->run_queue = v;
		v->next_on_cpu = v;
		return;
	}
	v->next_on_cpu = c->run_queue->next_on_cpu;
	c->run_queue->next_on_cpu = v;
	for (struct vcpu *w = c->run_queue; !w->preempt; w = w->next_on_cpu)
		w->preempt = true;
}

/* A vCPU that starts does so on its own CPU: VMCSs are made and cleared where they are active. */
static void start(struct vcpu *v)
{
	__atomic_store_n(&v->pending, 0, __ATOMIC_SEQ_CST);
	vcpu_reset(v, false);
	if (v->index == 0) {
		vcpu_set_entry(v, &v->guest->entry);
		v->state = VCPU_RUN;
	} else {
		v->state = VCPU_WAIT_SIPI;
	}
}

/* Make it ready to enter. False: it has nothing to run. */
static bool prepare(struct vcpu *v)
{
	if (v->state == VCPU_OFF)
		return false;
	if (v->state == VCPU_START)
		start(v);
	if (v->state != VCPU_RUN && !v->pending)
		return false;
	vcpu_load(v);
	while (v->pending)
		if (v->level->gate(v) == RESCHEDULE && v->state != VCPU_RUN)
			return false;
	return v->state == VCPU_RUN;
}

/* Another CPU's request sets `pending` first and then sends an interrupt, which HLT cannot miss: STI takes
 * effect after HLT began. */
static void idle(struct cpu *c)
{
	guests_reap();
	__atomic_store_n(&c->idle, true, __ATOMIC_SEQ_CST);
	asm volatile("sti; hlt; cli" : : : "memory");
	__atomic_store_n(&c->idle, false, __ATOMIC_SEQ_CST);
	guest_console_input();
}

struct vcpu *sched_next(struct vcpu *v)
{
	struct cpu *c = this_cpu();
	struct vcpu *first = v ? v->next_on_cpu : c->run_queue;

	if (v)
		v->ran += rdtsc() - c->since;
	for (;;) {
		struct vcpu *w = first;

		if (w)
			do {
				if (prepare(w)) {
					c->since = rdtsc();
					return c->running = w;
				}
				w = w->next_on_cpu;
			} while (w != first);
		idle(c);
	}
}

void sched_loop(void)
{
	vcpu_enter(sched_next(NULL));
}

void sched_vcpu_stopped(struct vcpu *v)
{
	if (v->nested)
		nested_reset(v);
	v->level = &level_l1;
	v->vmcs = &v->vmcs01;
	vcpu_unload(v);
	vmcs_clear(&v->vmcs01);
	v->state = VCPU_OFF;
	__atomic_store_n(&v->pending, 0, __ATOMIC_SEQ_CST);
	guest_vcpu_stopped(v->guest);
}
