/* SPDX-License-Identifier: Apache-2.0 */
/* SDM "MP Initialization Protocol Algorithm for MP Systems": INIT, 10 ms, SIPI, 200 us, SIPI; all CPUs at
 * once. */
#include "boot/smp.h"
#include "boot/ap_slot.h"
#include "hv/cpu.h"
#include "hv/lapic.h"
#include "hv/lib.h"
#include "hv/print.h"
#include "hv/sched.h"
#include "hv/tsc.h"
#include "hv/vmx_on.h"
#include "hv/x86.h"
#include "hyperv/client.h"
#include "mm/palloc.h"

#define INIT_WAIT_US   10000
#define SIPI_WAIT_US   200
#define ANSWER_WAIT_US 500000

extern const u8 ap_blob[], ap_blob_end[];

/* Read by ap_entry.S. Slot i belongs to cpus[i + 1]. */
struct ap_slot ap_slots[CPUS_MAX];
u32 ap_slots_used;

static bool released;
static struct cpu *slot_cpu[CPUS_MAX];
static const char *slot_refusal[CPUS_MAX];
static bool slot_done[CPUS_MAX]; /* written last by the CPU itself */

void ap_main(u32 slot) __attribute__((noreturn));

/* First C function of another CPU, on its own stack. */
void ap_main(u32 slot)
{
	struct cpu *c = slot_cpu[slot];

	cpu_init(c);
	lapic_init(false);
	slot_refusal[slot] = vmx_refusal();
	if (!slot_refusal[slot] && !hv_client_cpu())
		slot_refusal[slot] = "no memory";
	if (!slot_refusal[slot] && !vmx_on())
		slot_refusal[slot] = "VMXON failed";
	__atomic_store_n(&slot_done[slot], true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&released, __ATOMIC_ACQUIRE))
		cpu_relax();
	while (!c->online)
		asm volatile("cli; hlt");
	sched_loop();
	__builtin_unreachable();
}

static void add_slot(u32 apic_id)
{
	struct cpu *c = cpu_create(apic_id);

	if (!c) {
		log_warn("CPU with APIC id %u left out: more than %u CPUs, or no memory", apic_id, CPUS_MAX);
		return;
	}
	slot_cpu[ap_slots_used] = c;
	ap_slots[ap_slots_used] = (struct ap_slot){apic_id, AP_WAITED_FOR, c->stack_top};
	ap_slots_used++;
}

static void send_to_all(void (*send)(u32 apic_id, hpa_t page), hpa_t page)
{
	for (u32 i = 0; i < ap_slots_used; i++)
		if (__atomic_load_n(&ap_slots[i].state, __ATOMIC_ACQUIRE) == AP_WAITED_FOR)
			send(ap_slots[i].apic_id, page);
}

static void send_init(u32 apic_id, hpa_t page)
{
	(void)page;
	lapic_send_init(apic_id);
}

static bool all_done(void)
{
	for (u32 i = 0; i < ap_slots_used; i++)
		if (!__atomic_load_n(&slot_done[i], __ATOMIC_ACQUIRE))
			return false;
	return true;
}

static void wake_all(hpa_t page)
{
	u64 end;

	memcpy(hpa_ptr(page), ap_blob, (size_t)(ap_blob_end - ap_blob));
	send_to_all(send_init, page);
	tsc_delay_us(INIT_WAIT_US);
	send_to_all(lapic_send_startup, page);
	tsc_delay_us(SIPI_WAIT_US);
	send_to_all(lapic_send_startup, page);
	end = rdtsc() + tsc_from_us(ANSWER_WAIT_US);
	while (!all_done() && rdtsc() < end)
		cpu_relax();
}

/* A CPU that has not begun loses its chance here; one that has begun but not finished is as good as lost,
 * too. */
static bool usable(u32 slot)
{
	u32 waited = AP_WAITED_FOR;

	if (__atomic_compare_exchange_n(&ap_slots[slot].state, &waited, AP_GIVEN_UP, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE) ||
	    !__atomic_load_n(&slot_done[slot], __ATOMIC_ACQUIRE)) {
		log_warn("CPU with APIC id %u did not answer; going on without it", ap_slots[slot].apic_id);
		return false;
	}
	if (slot_refusal[slot]) {
		log_warn("CPU with APIC id %u left out: %s", ap_slots[slot].apic_id, slot_refusal[slot]);
		return false;
	}
	return true;
}

/* Indexes stay dense: CPUs that are left out disappear from cpus[]. */
static void collect(void)
{
	unsigned n = 1;

	for (u32 i = 0; i < ap_slots_used; i++) {
		struct cpu *c = slot_cpu[i];

		if (!usable(i))
			continue;
		c->index = n;
		cpus[n++] = c;
		c->online = true;
	}
	for (unsigned i = n; i < nr_cpus; i++)
		cpus[i] = NULL;
	nr_cpus = n;
}

void smp_start(const u32 *ids, unsigned count)
{
	hpa_t page;

	if (!palloc_low_page(&page)) {
		log_warn("no memory below 640 KiB to start other CPUs from");
		return;
	}
	for (unsigned i = 0; i < count; i++)
		if (ids[i] != this_cpu()->apic_id)
			add_slot(ids[i]);
	if (ap_slots_used)
		wake_all(page);
	collect();
}

void smp_release(void)
{
	__atomic_store_n(&released, true, __ATOMIC_RELEASE);
}
