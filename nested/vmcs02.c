/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache of a vCPU's VMCSs: which VMCS of L1 has an entry, and how VMCS12 moves between L1's page and L0's
 * copy. The page is in L1's hands: only a page of exactly this layout is taken over, and nothing in it is
 * trusted but as field values, which every entry checks anyway.
 */
#include "hv/cpu.h"
#include "hv/lib.h"
#include "hv/tlb.h"
#include "mm/guest_copy.h"
#include "mm/palloc.h"
#include "nested/internal.h"

#define BITMAPS_ORDER 2
_Static_assert(sizeof(struct bitmaps02) <= PAGE_SIZE << BITMAPS_ORDER, "bitmaps fit their pages");

#define PAGE_MAGIC 0x323153434d562e4eull /* "N.VMCS12" */

/* A VMCS region of L1. SDM "Format of the VMCS Region": revision, abort indicator, then as the implementation
 * likes. */
struct vmcs12_page {
	u32 revision;
	u32 abort;
	u64 magic; /* VMCS12 was written here at least once */
	u32 launched;
	u32 size;
	struct vmcs12 v12;
};
_Static_assert(sizeof(struct vmcs12_page) <= PAGE_SIZE, "VMCS region size offered in VMX_BASIC");

const u32 mirror_encoding[MIRRORS] = {
#define X(name) [MIRROR_##name] = VMCS_##name,
	MIRROR_FIELDS(X)
#undef X
};

struct vmcs02 *vmcs02_find(struct vcpu *v, u64 ptr)
{
	for (unsigned i = 0; i < NESTED_CACHE; i++) {
		struct vmcs02 *e = v->nested->cache[i];

		if (e && e->ptr == ptr)
			return e;
	}
	return NULL;
}

static void write_back(struct vcpu *v, const struct vmcs02 *e)
{
	const struct l1mem *mem = &v->guest->mem;
	const u64 magic = PAGE_MAGIC;
	const u32 state[2] = {e->launched, sizeof(e->v12)};

	/* A pointer that named RAM at VMPTRLD still does; the revision stays as L1 wrote it. */
	guest_write(mem, GPA(e->ptr + offsetof(struct vmcs12_page, magic)), &magic, sizeof(magic));
	guest_write(mem, GPA(e->ptr + offsetof(struct vmcs12_page, launched)), state, sizeof(state));
	guest_write(mem, GPA(e->ptr + offsetof(struct vmcs12_page, v12)), &e->v12, sizeof(e->v12));
}

static void read_in(struct vcpu *v, struct vmcs02 *e, u64 ptr)
{
	struct {
		u64 magic;
		u32 launched, size;
	} head;
	const struct l1mem *mem = &v->guest->mem;
	bool ok = guest_read(mem, GPA(ptr + offsetof(struct vmcs12_page, magic)), &head, sizeof(head)) &&
		  head.magic == PAGE_MAGIC && head.size == sizeof(e->v12) &&
		  guest_read(mem, GPA(ptr + offsetof(struct vmcs12_page, v12)), &e->v12, sizeof(e->v12));

	if (!ok)
		memset(&e->v12, 0, sizeof(e->v12));
	e->launched = ok && head.launched;
	e->ptr = ptr;
	e->dirty = GROUPS_ALL;
	e->stale = e->eager = 0;
	e->checked = false;
	e->vpid12 = 0; /* the tag held another VMCS's translations */
}

/* Memory stays with the entry when its VMCS goes. */
static struct vmcs02 *create(bool shadowing)
{
	struct vmcs02 *e = page_alloc();

	if (!e)
		return NULL;
	e->ptr = NO_VMCS;
	e->bitmaps = pages_alloc(BITMAPS_ORDER);
	e->vpid = vpid_alloc();
	if (e->bitmaps && e->vpid && vmcs_create(&e->hw) && (!shadowing || shadow_create(&e->shadow))) {
		bitmaps_reset(e->bitmaps);
		bitmap_watch_init(&e->bitmap_watch);
		return e;
	}
	if (e->hw.page)
		page_free(e->hw.page);
	if (e->bitmaps)
		pfree(ptr_hpa(e->bitmaps), BITMAPS_ORDER);
	vpid_free(e->vpid);
	page_free(e);
	return NULL;
}

/* A free entry, a new one, or the one not used for the longest time. The current one is in use and must stay.
 */
static struct vmcs02 **choose(struct nested *n)
{
	struct vmcs02 **best = NULL;

	for (unsigned i = 0; i < NESTED_CACHE; i++) {
		struct vmcs02 **slot = &n->cache[i];

		if (*slot && (*slot)->ptr == NO_VMCS)
			return slot;
		if (*slot && *slot == n->current)
			continue;
		if (!best || (*best && (!*slot || (*slot)->used < (*best)->used)))
			best = slot;
	}
	return best;
}

static __attribute__((cold, noinline)) struct vmcs02 *bring_in(struct vcpu *v, u64 ptr)
{
	struct nested *n = v->nested;
	struct vmcs02 **slot = choose(n), *e;

	if (!*slot)
		*slot = create(n->shadowing);
	e = *slot;
	if (!e)
		return NULL;
	if (e->ptr != NO_VMCS)
		vmcs02_release(v, e);
	read_in(v, e, ptr);
	return e;
}

struct vmcs02 *vmcs02_get(struct vcpu *v, u64 ptr)
{
	struct vmcs02 *e = vmcs02_find(v, ptr);

	if (unlikely(!e))
		e = bring_in(v, ptr);
	if (likely(e))
		e->used = ++v->nested->clock;
	return e;
}

void vmcs02_release(struct vcpu *v, struct vmcs02 *e)
{
	if (!e->enlightened) {
		shadow_settle(v, e);
		guest_area_fetch(v, e, e->stale);
		write_back(v, e);
	}
	e->enlightened = e->shadow.live = false;
	e->ptr = NO_VMCS;
}

/* One that was never written back has no launch state, and may be something else altogether. */
void vmcs02_clear_page(struct vcpu *v, u64 ptr)
{
	const u32 launched = 0;
	u64 magic;

	if (!guest_read(&v->guest->mem, GPA(ptr + offsetof(struct vmcs12_page, magic)), &magic,
			sizeof(magic)) ||
	    magic != PAGE_MAGIC)
		return;
	guest_write(&v->guest->mem, GPA(ptr + offsetof(struct vmcs12_page, launched)), &launched,
		    sizeof(launched));
}

void vmcs02_write_abort(struct vcpu *v, const struct vmcs02 *e, u32 code)
{
	guest_write(&v->guest->mem, GPA(e->ptr + offsetof(struct vmcs12_page, abort)), &code, sizeof(code));
}

void vmcs02_free_all(struct vcpu *v)
{
	for (unsigned i = 0; i < NESTED_CACHE; i++) {
		struct vmcs02 *e = v->nested->cache[i];

		if (!e)
			continue;
		v->nested->cache[i] = NULL;
		bitmap_watch_end(v, &e->bitmap_watch);
		if (e->hw.cpu)
			vmcs_clear(&e->hw);
		invvpid_single(e->vpid); /* the number may go to another guest */
		vpid_free(e->vpid);
		shadow_free(&e->shadow);
		page_free(e->hw.page);
		pfree(ptr_hpa(e->bitmaps), BITMAPS_ORDER);
		page_free(e);
	}
}
