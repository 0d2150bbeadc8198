/* SPDX-License-Identifier: Apache-2.0 */
/* A ticket lock. L0 runs with interrupts off, so there is no irq variant. Never held while a guest runs. */
#ifndef NIDUS_HV_SPINLOCK_H
#define NIDUS_HV_SPINLOCK_H

#include "hv/types.h"

struct spinlock {
	u16 next, owner;
};

static inline void spin_lock(struct spinlock *l)
{
	u16 ticket = __atomic_fetch_add(&l->next, 1, __ATOMIC_RELAXED);

	while (__atomic_load_n(&l->owner, __ATOMIC_ACQUIRE) != ticket)
		__builtin_ia32_pause();
}

static inline void spin_unlock(struct spinlock *l)
{
	__atomic_store_n(&l->owner, (u16)(l->owner + 1), __ATOMIC_RELEASE);
}

#endif
