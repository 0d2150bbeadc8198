/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest's RAM on the host: chunks of calloc'ed memory behind a struct l1mem, and the allocator's stubs.
 * Included by one test file each. On the host an address and a pointer are one number, as in L0.
 */
#ifndef NIDUS_TESTS_UNIT_GUEST_RAM_H
#define NIDUS_TESTS_UNIT_GUEST_RAM_H

#include <stdlib.h>
#include <string.h>
#include "hv/cpu.h"
#include "mm/guest_copy.h"
#include "mm/hostpt.h"
#include "mm/palloc.h"

/* --- L0's allocator: single pages from the host, no guest memory --- */

static int pages_live;    /* allocations not yet given back */
static int pages_failing; /* that many allocations from now on there is no memory; 0: never */

void *pages_alloc(unsigned order)
{
	void *p;

	if (pages_failing && !--pages_failing)
		return NULL;
	p = aligned_alloc(PAGE_SIZE << order, PAGE_SIZE << order);
	memset(p, 0, PAGE_SIZE << order);
	pages_live++;
	return p;
}

void *page_alloc(void)
{
	return pages_alloc(0);
}

void pfree(hpa_t a, unsigned order)
{
	(void)order;
	pages_live--;
	free(hpa_ptr(a));
}

void page_free(void *p)
{
	pfree(ptr_hpa(p), 0);
}

bool palloc(unsigned order, u16 owner, hpa_t *out)
{
	(void)order, (void)owner, (void)out;
	return false;
}

u64 palloc_free_bytes(void)
{
	return 0;
}

void hostpt_set_guest(hpa_t a, u64 size, bool guest)
{
	(void)a, (void)size, (void)guest;
}

/* --- the guest --- */

static inline void *pages_on_host(size_t bytes)
{
	void *p = aligned_alloc(2 * MIB, ALIGN_UP(bytes, 2 * MIB));

	memset(p, 0, bytes);
	return p;
}

/* RAM in 2 MiB chunks whose machine addresses are not in order, so that nothing may rely on that. */
static inline void guest_ram_create(struct l1mem *m, u64 bytes)
{
	unsigned n = (unsigned)(bytes / (2 * MIB));

	*m = (struct l1mem){.count = n, .ram = bytes, .low = bytes};
	for (unsigned i = 0; i < n; i++)
		m->chunk[i] = (struct l1mem_chunk){
			.gpa = i * 2 * MIB, .hpa = ptr_hpa(pages_on_host(2 * MIB)).v, .size = 2 * MIB};
	if (n > 1) {
		u64 first = m->chunk[0].hpa;

		m->chunk[0].hpa = m->chunk[n - 1].hpa;
		m->chunk[n - 1].hpa = first;
	}
}

static inline void guest_ram_destroy(struct l1mem *m)
{
	for (unsigned i = 0; i < m->count; i++)
		free(hpa_ptr(HPA(m->chunk[i].hpa)));
	if (m->page)
		page_free(m->page);
	m->page = NULL;
	m->count = 0;
}

#endif
