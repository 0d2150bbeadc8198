/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MSR and I/O bitmaps of an L2: L0's OR L1's, so that nothing L0 intercepts is ever given away. L0 intercepts
 * nearly everything; only the few words of the bitmaps in which it lets something through are read from L1 at
 * an entry, the others are all ones for good. Whether L1 wants an access that exited is read from its bitmap
 * at that moment, as the processor does. SDM "I/O-Bitmap Addresses", "MSR-Bitmap Address".
 */
#include "hv/bitmap.h"
#include "hv/lib.h"
#include "mm/guest_access.h"
#include "mm/guest_copy.h"
#include "nested/internal.h"

/* Every access exits: L1 uses no bitmap. */
static u8 all_ones[IO_BITMAP_SIZE] __attribute__((aligned(4096)));

#define WORD_BITS  64u
#define PAGE_WORDS (PAGE_SIZE / sizeof(u64))

/* Words of a page of L0's bitmaps that are not all ones. */
struct open_words {
	u16 count;
	u16 word[PAGE_WORDS];
};
static struct open_words msr_open, io_open[2];

/* SDM "MSR-Bitmap Address": two ranges of MSRs. */
#define MSR_BITMAP_HIGH  0xc0000000u
#define MSR_BITMAP_COUNT 0x2000u

#define X2APIC_TPR      0x808u
#define X2APIC_EOI      0x80bu
#define X2APIC_SELF_IPI 0x83fu
#define X2APIC_READS    (0x800u / WORD_BITS)               /* first of the four words for reads */
#define X2APIC_WRITES   ((2048u * 8 + 0x800u) / WORD_BITS) /* and for writes */
#define X2APIC_WORDS    4u

static void find_open(struct open_words *o, const u8 *page)
{
	const u64 *w = (const u64 *)(const void *)page;

	o->count = 0;
	for (size_t i = 0; i < PAGE_WORDS; i++)
		if (w[i] != ~0ull)
			o->word[o->count++] = (u16)i;
}

void bitmaps_init(void)
{
	memset(all_ones, 0xff, sizeof(all_ones));
	find_open(&msr_open, l1_msr_bitmap);
	find_open(&io_open[0], l1_io_bitmap);
	find_open(&io_open[1], l1_io_bitmap + PAGE_SIZE);
}

/* `to` = L0's OR L1's, in the open words. A page outside of L1's RAM reads as all ones: everything exits to
 * L1. */
static void merge_page(struct vcpu *v, u8 *to, const u8 *l0, u64 gpa, const struct open_words *o)
{
	const u64 *mine = (const u64 *)(const void *)l0;
	const volatile u64 *theirs;
	u64 *out = (u64 *)(void *)to;
	hpa_t hpa;

	if (!o->count)
		return;
	if (!l1mem_translate(&v->guest->mem, GPA(gpa), &hpa, NULL)) {
		memset(to, 0xff, PAGE_SIZE);
		return;
	}
	theirs = hpa_ptr(hpa);
	guest_access_begin();
	for (u16 i = 0; i < o->count; i++)
		out[o->word[i]] = mine[o->word[i]] | theirs[o->word[i]];
	guest_access_end();
}

/*
 * x2APIC registers that the processor virtualizes need no exit of L0's; the other bits of these words stay
 * set, hardware would reach the real APIC. SDM "Virtualizing MSR-Based APIC Accesses".
 */
static void merge_x2apic(struct vcpu *v, struct vmcs02 *e)
{
	u64 *out = (u64 *)(void *)e->bitmaps->msr, theirs[X2APIC_WORDS];
	u64 reads = e->m.sec & SEC_APIC_REGS ? ~0ull : 0, base = e->v12.msr_bitmap;
	u64 tpr = BIT(X2APIC_TPR % WORD_BITS), writes = tpr;

	if (e->m.sec & SEC_VID)
		writes |= BIT(X2APIC_EOI % WORD_BITS) | BIT(X2APIC_SELF_IPI % WORD_BITS);

	if (!guest_read(&v->guest->mem, GPA(base + X2APIC_READS * sizeof(u64)), theirs, sizeof(theirs)))
		memset(theirs, 0xff, sizeof(theirs));
	for (unsigned i = 0; i < X2APIC_WORDS; i++)
		out[X2APIC_READS + i] = theirs[i] | ~(i ? reads : reads | tpr);
	if (!guest_read(&v->guest->mem, GPA(base + X2APIC_WRITES * sizeof(u64)), theirs, sizeof(u64)))
		theirs[0] = ~0ull;
	out[X2APIC_WRITES] = theirs[0] | ~writes;
}

static void close_x2apic(struct vmcs02 *e)
{
	u64 *out = (u64 *)(void *)e->bitmaps->msr;

	for (unsigned i = 0; i < X2APIC_WORDS; i++)
		out[X2APIC_READS + i] = out[X2APIC_WRITES + i] = ~0ull;
}

static const u8 *load_msr(struct vcpu *v, struct vmcs02 *e)
{
	const u32 decides = BIT32(GROUP_CONTROL_PROC) | BIT32(GROUP_CONTROL_GRP1) | BIT32(GROUP_MSR_BITMAP);

	if (!v12_proc(e, PROC_MSR_BITMAPS))
		return all_ones;
	if (bitmap_is_known(e) && !(e->dirty & decides))
		return e->bitmaps->msr;
	bitmap_watch_merge(v, e);
	merge_page(v, e->bitmaps->msr, l1_msr_bitmap, e->v12.msr_bitmap, &msr_open);
	if (e->m.sec & SEC_X2APIC)
		merge_x2apic(v, e);
	else if (e->dirty)
		close_x2apic(e);
	return e->bitmaps->msr;
}

static const u8 *load_io(struct vcpu *v, struct vmcs02 *e)
{
	u8 *io = e->bitmaps->io;

	if (!v12_proc(e, PROC_IO_BITMAPS))
		return v12_proc(e, PROC_UNCOND_IO) ? all_ones : l1_io_bitmap;
	merge_page(v, io, l1_io_bitmap, e->v12.io_bitmap_a, &io_open[0]);
	merge_page(v, io + PAGE_SIZE, l1_io_bitmap + PAGE_SIZE, e->v12.io_bitmap_b, &io_open[1]);
	return io;
}

void bitmaps_reset(struct bitmaps02 *b)
{
	memset(b, 0xff, sizeof(*b));
}

void bitmaps_load(struct vcpu *v, struct vmcs02 *e)
{
	const u8 *msr = load_msr(v, e), *io = load_io(v, e);

	vmcs02_put(e, MIRROR_MSR_BITMAP, ptr_hpa(msr).v);
	vmcs02_put(e, MIRROR_IO_BITMAP_A, ptr_hpa(io).v);
	vmcs02_put(e, MIRROR_IO_BITMAP_B, ptr_hpa(io + PAGE_SIZE).v);
}

/* Pre: the controls are those of the last bitmaps_load. */
void bitmaps_refresh(struct vcpu *v, struct vmcs02 *e)
{
	load_msr(v, e);
	load_io(v, e);
}

/* One bit of a bitmap in L1's memory. */
static bool bit_of_l1(const struct vcpu *v, u64 bitmap, u32 bit)
{
	u8 byte;

	return !guest_read(&v->guest->mem, GPA(bitmap + bit / 8), &byte, 1) || byte >> (bit % 8) & 1;
}

bool l1_wants_msr(const struct vcpu *v, const struct vmcs02 *e, u32 msr, bool write)
{
	u32 bit = write ? 2048 * 8 : 0;

	if (!v12_proc(e, PROC_MSR_BITMAPS))
		return true;
	if (msr - MSR_BITMAP_HIGH < MSR_BITMAP_COUNT)
		bit += 1024 * 8 + msr - MSR_BITMAP_HIGH;
	else if (msr < MSR_BITMAP_COUNT)
		bit += msr;
	else
		return true;
	return bit_of_l1(v, e->v12.msr_bitmap, bit);
}

/* Any byte's bit, or an access that wraps around the 16-bit port space. */
bool l1_wants_io(const struct vcpu *v, const struct vmcs02 *e, u16 port, unsigned size)
{
	if (!v12_proc(e, PROC_IO_BITMAPS))
		return v12_proc(e, PROC_UNCOND_IO);
	if (port + size > 0x10000u)
		return true;
	for (u32 p = port; p < port + size; p++)
		if (bit_of_l1(v, p < 0x8000 ? e->v12.io_bitmap_a : e->v12.io_bitmap_b, p & 0x7fff))
			return true;
	return false;
}
