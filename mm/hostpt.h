/* SPDX-License-Identifier: Apache-2.0 */
/*
 * L0's own page tables: all physical memory at its own address, W^X for the image, guard pages below stacks,
 * page 0 absent, guest RAM as user pages (SMEP, SMAP). 2 MiB pages, split where needed.
 */
#ifndef NIDUS_MM_HOSTPT_H
#define NIDUS_MM_HOSTPT_H

#include "hv/types.h"
#include "mm/memmap.h"

/* Build and load the tables for [0, max(4 GiB, top of RAM and `fb_end`)), W^X on. Once, on the boot CPU. */
void hostpt_init(const struct memmap *map, u64 top);
/* Load them on this CPU, switch SMEP/SMAP/NXE/WP on as far as the CPU has them. */
void hostpt_load(void);
/* Hand [a, a + size) (2 MiB multiples) to a guest (user pages) or back. Before other CPUs use the range. */
void hostpt_set_guest(hpa_t a, u64 size, bool guest);
/* Make one 4 KiB page absent: a guard. */
void hostpt_guard(const void *page);
/* Device memory at its machine address, uncached: maps it when it lies above what hostpt_init mapped. */
void *hostpt_map_device(hpa_t a, u64 size);
/* Make [a, a + size) readable if it lies above what is mapped (firmware tables); what is mapped already stays
 * as it is. */
void hostpt_need(hpa_t a, u64 size);
/* Pages of L0's data become code: to be run, not to be written. Boot CPU only. */
void hostpt_make_code(const void *start, size_t size);
/* The entry that maps this page, for hostpt_window_set; then map another page there, on this CPU alone. */
u64 *hostpt_window(const void *page);
void hostpt_window_set(u64 *entry, const void *page, hpa_t to);
/* As hostpt_map_device, but write-combining: a framebuffer. */
void *hostpt_map_framebuffer(hpa_t a, u64 size);
/* A #PF of root mode whose translation was stale: the tables allow the access by now. `error` as pushed by
 * the CPU. */
bool hostpt_spurious_fault(u64 va, u64 error);
hpa_t hostpt_root(void);

#endif
