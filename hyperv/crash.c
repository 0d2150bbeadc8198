/* SPDX-License-Identifier: Apache-2.0 */
/* Crash MSRs: L1 tells that and why it died. Nothing happens to it by that. TLFS "Guest Crash Enlightenment
 * Interface". */
#include "hv/print.h"
#include "hyperv/internal.h"
#include "mm/guest_copy.h"

#define CRASH_MESSAGE BIT(62) /* P3 is the address of a text, P4 its length */
#define CRASH_NOTIFY  BIT(63)
#define MESSAGE_MAX   240u

bool crash_read(struct vcpu *v, u32 msr, u64 *value)
{
	const struct hv_partition *p = hv_partition(v);

	*value = msr == HV_MSR_CRASH_CTL
			 ? CRASH_NOTIFY | CRASH_MESSAGE
			 : __atomic_load_n(&p->crash[msr - HV_MSR_CRASH_P0], __ATOMIC_RELAXED);
	return true;
}

/* Letters only: what L1 wrote must not command a terminal. One line, whatever it contains. */
static void print_message(const struct guest *g, u64 at, u64 length)
{
	char text[MESSAGE_MAX + 1];
	size_t n = MIN(length, MESSAGE_MAX);

	if (!guest_read(&g->mem, GPA(at), text, n))
		return;
	for (size_t i = 0; i < n; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = ' ';
	text[n] = 0;
	log_info("guest %s: crash message: %s", g->name, text);
}

/* Once a life of the guest: the console is not its to fill. */
static void report(const struct guest *g, struct hv_partition *p, u64 value)
{
	if (__atomic_exchange_n(&p->crash_reported, true, __ATOMIC_RELAXED))
		return;
	log_info("guest %s crashed: %#llx %#llx %#llx %#llx %#llx", g->name, (unsigned long long)p->crash[0],
		 (unsigned long long)p->crash[1], (unsigned long long)p->crash[2],
		 (unsigned long long)p->crash[3], (unsigned long long)p->crash[4]);
	if (value & CRASH_MESSAGE)
		print_message(g, p->crash[3], p->crash[4]);
}

bool crash_write(struct vcpu *v, u32 msr, u64 value)
{
	struct hv_partition *p = hv_partition(v);

	if (msr != HV_MSR_CRASH_CTL)
		__atomic_store_n(&p->crash[msr - HV_MSR_CRASH_P0], value, __ATOMIC_RELAXED);
	else if (value & CRASH_NOTIFY)
		report(v->guest, p, value);
	return true;
}
