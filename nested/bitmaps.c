/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MSR and I/O bitmaps of an L2. L1's pages are copied at each entry (its other CPUs may write them at any
 * time) and ORed with L0's: nothing that L0 intercepts is ever given away. SDM "I/O-Bitmap Addresses",
 * "MSR-Bitmap Address".
 */
#include "hv/bitmap.h"
#include "hv/lib.h"
#include "mm/guest_copy.h"
#include "nested/internal.h"

/* Every access exits: L1 uses no bitmap. */
static u8 all_ones[IO_BITMAP_SIZE] __attribute__((aligned(4096)));

#define X2APIC_FIRST    0x800u
#define X2APIC_TPR      0x808u
#define X2APIC_EOI      0x80bu
#define X2APIC_SELF_IPI 0x83fu
#define X2APIC_LAST     0x8ffu

void bitmaps_init(void)
{
	memset(all_ones, 0xff, sizeof(all_ones));
}

/* A page outside of L1's RAM reads as all ones: everything exits to L1. */
static void copy_in(struct vcpu *v, u8 *to, u64 gpa)
{
	if (!guest_read(&v->guest->mem, GPA(gpa), to, PAGE_SIZE))
		memset(to, 0xff, PAGE_SIZE);
}

/* Only L1 decides about this access. */
static void leave_to_l1(struct bitmaps02 *b, u32 msr, enum msr_access a)
{
	msr_bitmap_set(b->msr, msr, a, msr_bitmap_test(b->l1_msr, msr, a));
}

/*
 * x2APIC registers that the processor serves from L2's virtual-APIC page need no exit of L0's. SDM
 * "Virtualizing MSR-Based APIC Accesses". All others stay intercepted: hardware would reach the real APIC.
 */
static void give_x2apic(struct bitmaps02 *b, u32 sec)
{
	if (sec & SEC_APIC_REGS)
		for (u32 msr = X2APIC_FIRST; msr <= X2APIC_LAST; msr++)
			leave_to_l1(b, msr, MSR_ACCESS_READ);
	leave_to_l1(b, X2APIC_TPR, MSR_ACCESS_READ);
	leave_to_l1(b, X2APIC_TPR, MSR_ACCESS_WRITE);
	if (sec & SEC_VID) {
		leave_to_l1(b, X2APIC_EOI, MSR_ACCESS_WRITE);
		leave_to_l1(b, X2APIC_SELF_IPI, MSR_ACCESS_WRITE);
	}
}

static const u8 *load_msr(struct vcpu *v, struct vmcs02 *e)
{
	struct bitmaps02 *b = e->bitmaps;

	if (!v12_proc(e, PROC_MSR_BITMAPS))
		return all_ones;
	copy_in(v, b->l1_msr, e->v12.msr_bitmap);
	bitmap_merge(b->msr, l1_msr_bitmap, b->l1_msr, sizeof(b->msr));
	if (e->m.sec & SEC_X2APIC)
		give_x2apic(b, e->m.sec);
	return b->msr;
}

static const u8 *load_io(struct vcpu *v, struct vmcs02 *e)
{
	struct bitmaps02 *b = e->bitmaps;

	if (!v12_proc(e, PROC_IO_BITMAPS))
		return v12_proc(e, PROC_UNCOND_IO) ? all_ones : l1_io_bitmap;
	copy_in(v, b->l1_io, e->v12.io_bitmap_a);
	copy_in(v, b->l1_io + PAGE_SIZE, e->v12.io_bitmap_b);
	bitmap_merge(b->io, l1_io_bitmap, b->l1_io, sizeof(b->io));
	return b->io;
}

void bitmaps_load(struct vcpu *v, struct vmcs02 *e)
{
	const u8 *msr = load_msr(v, e), *io = load_io(v, e);

	vmcs02_put(e, MIRROR_MSR_BITMAP, ptr_hpa(msr).v);
	vmcs02_put(e, MIRROR_IO_BITMAP_A, ptr_hpa(io).v);
	vmcs02_put(e, MIRROR_IO_BITMAP_B, ptr_hpa(io + PAGE_SIZE).v);
}
