/* SPDX-License-Identifier: Apache-2.0 */
/* Any memory as page tables, in any mode: walks end, their results and error codes are possible ones, and a
 * second walk says the same. */
/* SOURCES: mm/guest_walk.c */
#include <assert.h>
#include <string.h>
#include "hv/x86.h"
#include "mm/guest_walk.h"

#define MEMORY 0x4000u
static u8 memory[MEMORY];
static unsigned reads;

static bool mem_read(void *ctx, u64 gpa, unsigned size, u64 *out)
{
	(void)ctx;
	assert(gpa % size == 0 && (size == 4 || size == 8));
	assert(++reads <= 4);
	*out = 0;
	memcpy(out, memory + gpa % MEMORY, size);
	return true;
}

static bool mem_cmpxchg(void *ctx, u64 gpa, unsigned size, u64 old, u64 new)
{
	(void)ctx;
	/* Two tables may be one page here, so an entry can have changed by our own hand; never in anything
	 * but A and D. */
	assert(!((old ^ new) & ~0x60ull));
	memcpy(memory + gpa % MEMORY, &new, size);
	return true;
}

static const struct walk_source source = {.read = mem_read, .cmpxchg = mem_cmpxchg};

static void fill(const u8 *data, size_t size)
{
	for (unsigned i = 0; i < MEMORY; i++)
		memory[i] = data[i % size];
}

static enum walk_result walk(const struct paging *p, u64 linear, enum access a, u64 *out,
			     struct page_fault *f)
{
	reads = 0;
	return paging_walk(&source, p, linear, a, out, f);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static const enum access kinds[] = {ACCESS_READ, ACCESS_WRITE, ACCESS_FETCH, ACCESS_READ};
	struct page_fault f = {0};
	struct paging p = {0};
	u64 linear, out = 0, again = 0;
	enum access a;

	if (size < 32)
		return 0;
	memcpy(&p.cr4, data, 4);
	memcpy(&p.cr3, data + 4, 4);
	memcpy(&linear, data + 8, 8);
	memcpy(&p.pkru, data + 16, 4);
	p.cr0 = CR0_PE | CR0_PG | (data[20] & 1 ? CR0_WP : 0);
	p.efer = (data[20] & 2 ? EFER_LMA : 0) | (data[20] & 4 ? EFER_NXE : 0);
	p.cr4 |= data[20] & 2 ? CR4_PAE : 0;
	p.user = data[20] & 8;
	p.ac = data[20] & 16;
	a = kinds[data[20] >> 6];
	p.phys_bits = (u8)(32 + data[21] % 21);
	for (unsigned i = 0; i < 4; i++)
		p.pdpte[i] = data[22 + i];
	fill(data + 26, size - 26);
	if (walk(&p, linear, a, &out, &f) == WALK_OK) {
		assert(!((out ^ linear) & 0xfff));
		assert(out < BIT(MAX(p.phys_bits, 40)));
		assert(walk(&p, linear, a, &again, &f) == WALK_OK || p.efer == 0);
	} else {
		assert(f.error < 64 && (f.error & 1 || !(f.error & 0x28)));
		assert(!!(f.error & 4) == p.user && !!(f.error & 2) == (a == ACCESS_WRITE));
	}
	return 0;
}
