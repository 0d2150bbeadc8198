/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets an interrupt message, and what it does there. Takes no lock and looks only at vCPUs that exist,
 * whatever the destination says. SDM "Issuing Interprocessor Interrupts", "Determining IPI Destination", "ICR
 * Operation in x2APIC Mode".
 */
#include "hv/dev/internal.h"
#include "hv/guest.h"
#include "hv/vcpu.h"

#define ICR_LOGICAL      BIT32(11)
#define ICR_ASSERT       BIT32(14)
#define ICR_LEVEL        BIT32(15)
#define ICR_SHORTHAND(x) ((x) >> 18 & 3)
enum shorthand { TO_DEST, TO_SELF, TO_ALL, TO_OTHERS };

#define DFR_CLUSTER(dfr) ((dfr) >> 28 == 0)

static struct vlapic *lapic_of(const struct guest *g, unsigned i)
{
	return g->vcpu[i] ? g->vcpu[i]->lapic : NULL;
}

/* SDM "Logical Destination Mode": flat, cluster, x2APIC cluster. */
static bool matches_logical(const struct vlapic *l, u32 dest)
{
	u32 ldr = apic_get(l, APIC_LDR);

	if (vlapic_is_x2apic(l))
		return ldr >> 16 == dest >> 16 && (ldr & dest & 0xffff);
	if (dest > 0xff)
		return false;
	ldr >>= 24;
	if (!DFR_CLUSTER(apic_get(l, APIC_DFR)))
		return ldr & dest;
	return (dest >> 4 == 0xf || dest >> 4 == ldr >> 4) && (ldr & dest & 0xf);
}

static bool matches(const struct vlapic *l, const struct apic_message *msg)
{
	if (!l || !vlapic_enabled(l))
		return false;
	if (msg->dest == APIC_BROADCAST)
		return true;
	return msg->logical ? matches_logical(l, msg->dest) : msg->dest == l->vcpu->index;
}

static void receive(struct vlapic *l, const struct apic_message *msg)
{
	struct vcpu *v = l->vcpu;

	switch (msg->mode) {
	case MODE_FIXED:
	case MODE_LOWEST:
		if (apic_get(l, APIC_SVR) & SVR_ENABLE)
			vlapic_accept(l, msg->vector, msg->level);
		break;
	case MODE_NMI:
		vcpu_nmi(v);
		break;
	case MODE_INIT:
		vcpu_request(v, PEND_INIT);
		break;
	case MODE_SIPI:
		__atomic_store_n(&v->sipi_vector, msg->vector, __ATOMIC_RELEASE);
		vcpu_request(v, PEND_SIPI);
		break;
	case MODE_EXTINT:
		vcpu_request(v, PEND_INTR);
		break;
	}
}

/* The matching APIC of lowest task priority; equal ones take turns. */
static void deliver_lowest(struct guest *g, const struct apic_message *msg)
{
	unsigned first = g->machine ? __atomic_fetch_add(&g->machine->rotor, 1, __ATOMIC_RELAXED) : 0;
	struct vlapic *best = NULL;
	u32 best_priority = 0;

	for (unsigned n = 0; n < g->nr_vcpus; n++) {
		struct vlapic *l = lapic_of(g, (first + n) % g->nr_vcpus);
		u32 priority;

		if (!matches(l, msg) || !(apic_get(l, APIC_SVR) & SVR_ENABLE))
			continue;
		priority = apic_get(l, APIC_TPR) >> 4;
		if (!best || priority < best_priority) {
			best = l;
			best_priority = priority;
		}
	}
	if (best)
		receive(best, msg);
}

void apic_deliver(struct guest *g, const struct apic_message *msg)
{
	struct vlapic *l;

	if (msg->mode == MODE_LOWEST && !msg->lowest_priority_done) {
		deliver_lowest(g, msg);
		return;
	}
	if (!msg->logical && msg->dest != APIC_BROADCAST) {
		l = msg->dest < g->nr_vcpus ? lapic_of(g, msg->dest) : NULL;
		if (matches(l, msg))
			receive(l, msg);
		return;
	}
	for (unsigned i = 0; i < g->nr_vcpus; i++) {
		l = lapic_of(g, i);
		if (matches(l, msg))
			receive(l, msg);
	}
}

static void deliver_others(struct guest *g, const struct vlapic *self, const struct apic_message *msg)
{
	for (unsigned i = 0; i < g->nr_vcpus; i++) {
		struct vlapic *l = lapic_of(g, i);

		if (l != self && matches(l, msg))
			receive(l, msg);
	}
}

void vlapic_icr(struct vlapic *l, u32 low, u32 dest)
{
	struct apic_message msg = {
		.dest = dest,
		.logical = low & ICR_LOGICAL,
		.vector = (u8)low,
		.mode = low >> 8 & 7,
	};

	/* INIT level de-assert: "not supported in the Pentium 4 and later", without effect. IPIs are
	 * edge-triggered whatever bit 15 says. */
	if (msg.mode == MODE_INIT && (low & (ICR_LEVEL | ICR_ASSERT)) == ICR_LEVEL)
		return;
	if (msg.mode == MODE_SMI || msg.mode == 3 || msg.mode == MODE_EXTINT)
		return;
	if (msg.mode <= MODE_LOWEST && msg.vector < 16)
		vlapic_error(l, ESR_SEND_VECTOR);
	/* The 8-bit broadcast; in x2APIC mode 255 is an id like any other. */
	if (!vlapic_is_x2apic(l) && !msg.logical && dest == 0xff)
		msg.dest = APIC_BROADCAST;
	switch ((enum shorthand)ICR_SHORTHAND(low)) {
	case TO_DEST:
		apic_deliver(l->vcpu->guest, &msg);
		break;
	case TO_SELF:
		receive(l, &msg);
		break;
	case TO_ALL:
		msg.dest = APIC_BROADCAST;
		apic_deliver(l->vcpu->guest, &msg);
		break;
	case TO_OTHERS:
		msg.dest = APIC_BROADCAST;
		deliver_others(l->vcpu->guest, l, &msg);
		break;
	}
}
