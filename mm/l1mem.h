/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What physical memory an L1 guest owns: gpa -> hpa, fixed while the guest runs. RAM lies below the 3 GiB
 * hole and, when there is more, from 4 GiB on. Everything else is devices or nothing.
 */
#ifndef NIDUS_MM_L1MEM_H
#define NIDUS_MM_L1MEM_H

#include "hv/types.h"
#include "mm/ept.h"
#include "mm/memmap.h"

#define L1MEM_CHUNKS_MAX 512
#define L1MEM_LOW_MAX    (3 * GIB) /* RAM below 4 GiB ends here at most */
#define L1MEM_HIGH       (4 * GIB)

/* Where a PC has its video memory: no RAM, whatever size the guest has. */
#define L1MEM_HOLE_START 0xa0000ull
#define L1MEM_HOLE_END   0xc0000ull

struct l1mem_chunk {
	u64 gpa, hpa, size; /* 2 MiB multiples */
};

/*
 * How a page of RAM is written past EPT01, which does not get to know of it. One word, so that both are set
 * at once.
 */
struct l1page {
	u8 wrote;   /* L0 wrote to it, or `exposed` was set */
	u8 exposed; /* L2 or hardware may write to it at any time */
} __attribute__((aligned(2)));

struct l1mem {
	unsigned count; /* sorted by gpa */
	struct l1mem_chunk chunk[L1MEM_CHUNKS_MAX];
	u64 ram;             /* bytes in all */
	u64 low;             /* bytes of RAM from 0 on */
	u64 high;            /* bytes of RAM from 4 GiB on */
	struct l1page *page; /* by page number; NULL: nobody wants to know */
};

/* Take `bytes` of RAM (rounded up to 2 MiB) from the page allocator for guest `id`, in the largest chunks to
 * be had, zeroed, made user pages. False: not enough memory, nothing kept. */
bool l1mem_create(struct l1mem *m, u64 bytes, u16 id);
/* Keep account of writes past EPT01 (`page`) from now on, when there is memory for it. */
void l1mem_account(struct l1mem *m);
void l1mem_destroy(struct l1mem *m);
/* *hpa and how many bytes from there on are contiguous (*run may be NULL). False: not RAM of this guest. */
bool l1mem_translate(const struct l1mem *m, gpa_t gpa, hpa_t *hpa, u64 *run);
/* The same for what is nearly always asked: inside the first chunk, above the video hole. False: ask
 * l1mem_translate. */
static inline bool l1mem_plain(const struct l1mem *m, gpa_t gpa, size_t n, hpa_t *hpa)
{
	u64 end = m->chunk[0].size;

	*hpa = HPA(m->chunk[0].hpa + gpa.v);
	return likely(gpa.v < end && n <= end - gpa.v && gpa.v >= L1MEM_HOLE_END);
}
/* NULL: no RAM, or no account is kept. */
struct l1page *l1mem_page(const struct l1mem *m, gpa_t gpa);
/* EPT01: RAM as RWX WB, accessed and dirty, in the largest pages (not [0xA0000, 0xC0000)); device pages stay
 * absent. */
bool l1mem_map(const struct l1mem *m, struct ept *ept01);
/* The map an L1 is shown (e820 order): low RAM with its holes, ACPI tables, ROM area, high RAM. */
void l1mem_memmap(const struct l1mem *m, struct memmap *out);

/* Writes to the page by hardware or through a kept address begin, for good. */
void l1mem_expose(const struct l1mem *m, gpa_t gpa);

static inline void l1page_expose(struct l1page *p)
{
	__atomic_store_n((u16 *)(void *)p, (u16)0x0101, __ATOMIC_SEQ_CST);
}

/* Where the platform's tables stand in guest-physical memory. */
#define L1_EBDA      0x9fc00u
#define L1_ACPI_RSDP 0xf5000u /* found by the BIOS-area scan */
#define L1_ACPI_BASE 0xe0000u /* tables in [0xe0000, 0xf5000), type MEM_RESERVED in the map */
#define L1_LAPIC     0xfee00000u
#define L1_IOAPIC    0xfec00000u

#endif
