/* SPDX-License-Identifier: Apache-2.0 */
/* The end and the restart of a guest: between the event gate, which stops vCPUs one by one, and hv/guest.c.
 */
#ifndef NIDUS_HV_GUEST_LIFE_H
#define NIDUS_HV_GUEST_LIFE_H

struct guest;

/* One more vCPU of `g` has stopped; the last one ends or restarts the guest. Any CPU. */
void guest_vcpu_stopped(struct guest *g);
/* When no guest runs any more: do what when-done= says (boot CPU; a no-op elsewhere and before). */
void guests_reap(void);

#endif
