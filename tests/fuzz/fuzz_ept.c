/* SPDX-License-Identifier: Apache-2.0 */
/* Any series of map, unmap and protect against a plain array of 4 KiB pages. */
/* SOURCES: mm/ept.c */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "mm/ept.h"

/* The world: 8 MiB that straddle a 1 GiB border, so that all levels take part. */
#define WORLD_PAGES 2048u
#define WORLD_BASE  (GIB - 4 * MIB)

static int live, limit;

static void *page(void *ctx)
{
	void *p;

	(void)ctx;
	if (live >= limit)
		return NULL;
	live++;
	p = aligned_alloc(PAGE_SIZE, PAGE_SIZE);
	memset(p, 0, PAGE_SIZE);
	return p;
}

static void release(void *ctx, void *p)
{
	(void)ctx;
	live--;
	free(p);
}

static const struct ept_source source = {.page = page, .release = release};
static u64 model[WORLD_PAGES]; /* hpa | RWX, 0: absent */

static void step(struct ept *e, const u8 *d)
{
	u32 first = (d[1] | (u32)d[2] << 8) % WORLD_PAGES,
	    count = (d[3] | (u32)d[4] << 8) % (WORLD_PAGES - first) + 1;
	u64 gpa = WORLD_BASE + first * PAGE_SIZE, hpa = (u64)d[5] * (d[0] & 0x80 ? 2 * MIB : PAGE_SIZE);
	u64 flags = (d[0] >> 3 & 7) | EPT_READ;

	switch (d[0] & 3) {
	case 0:
	case 1:
		if (d[0] & 1) /* so that large leaves become possible */
			hpa += gpa % (2 * MIB);
		if (!ept_map(e, gpa, hpa, count * PAGE_SIZE, flags))
			abort();
		for (u32 i = 0; i < count; i++)
			model[first + i] = (hpa + i * PAGE_SIZE) | flags;
		break;
	case 2:
		if (!ept_unmap(e, gpa, count * PAGE_SIZE))
			abort();
		memset(&model[first], 0, count * sizeof(model[0]));
		break;
	case 3:
		assert(ept_protect(e, gpa, EPT_WRITE, EPT_EXEC) == !!model[first]);
		if (model[first])
			model[first] = (model[first] & ~EPT_WRITE) | EPT_EXEC;
		break;
	}
}

static void compare(const struct ept *e)
{
	for (u32 i = 0; i < WORLD_PAGES; i++) {
		struct ept_leaf l = ept_lookup(e, WORLD_BASE + i * PAGE_SIZE + 0x123);

		assert((l.entry & EPT_RWX) == (model[i] & EPT_RWX));
		assert(l.hpa == (model[i] ? (model[i] & PAGE_MASK) + 0x123 : 0));
	}
	assert(!ept_lookup(e, WORLD_BASE - 1).entry &&
	       !ept_lookup(e, WORLD_BASE + WORLD_PAGES * PAGE_SIZE).entry);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct ept e;

	if (!size)
		return 0;
	limit = 1000;
	memset(model, 0, sizeof(model));
	if (!ept_init(&e, &source, 1u + data[0] % 3))
		abort();
	for (data++, size--; size >= 6; data += 6, size -= 6)
		step(&e, data);
	compare(&e);
	ept_destroy(&e);
	assert(!live);
	return 0;
}
