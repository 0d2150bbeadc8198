/* SPDX-License-Identifier: Apache-2.0 */
/* The changes: each row names a field and a few ways to break it, chosen so that about half of them are still
 * valid. */
#include "random.h"

enum way {
	FLIP,    /* one bit out of `bits` */
	SEL,     /* a selector */
	AR,      /* access rights: a bit, or a whole other kind of segment */
	LIMIT,   /* a segment limit */
	BASE,    /* a linear address */
	PAGE_AT, /* the address of a page or list, misplaced or too wide */
	SMALL,   /* a number up to `bits` */
	PAT,
	EVENT, /* event injection with error code and length */
	LINK,
	LIST, /* an entry of the MSR list, and the count of this field */
	RIP,
	DEBUG,  /* pending debug exceptions */
	BITMAP, /* bits of the MSR and I/O bitmaps */
	PDPTE,
};

struct row {
	u32 field;
	u8 way, weight;
	u64 bits;
};

/* Bits that only one of Bochs and Nidus offers: no comparison is possible (VMX_SHADOW, load of
 * IA32_PERF_GLOBAL_CTRL, entry to SMM, which stops Bochs; Q23, Q30). */
#define PROC2_BITS (0xffffffffu & ~(PROC2_SHADOW | PROC2_XSAVES))
#define EXIT_BITS  (0xffffffffu & ~EXIT_LOAD_PERF)
#define ENTRY_BITS (0xffffffffu & ~(ENTRY_LOAD_PERF | ENTRY_SMM))
/* L1 goes on with these registers, and its memory is mapped for user mode: no SMEP, SMAP. */
#define HOST_CR4_BITS (~(CR4_SMEP | CR4_SMAP | CR4_PCIDE))
#define HOST_CR0_BITS (~(CR0_CD | CR0_NW))
/* clang-format off */
static const struct row rows[] = {
	{VMCS_PIN_CTL, FLIP, 4, 0xffffffff},
	{VMCS_PROC_CTL, FLIP, 12, 0xffffffff},
	{VMCS_PROC2_CTL, FLIP, 10, PROC2_BITS},
	{VMCS_EXIT_CTL, FLIP, 5, EXIT_BITS},
	{VMCS_ENTRY_CTL, FLIP, 5, ENTRY_BITS},
	{VMCS_EXCEPTION_BITMAP, FLIP, 3, 0xffffffff},
	{VMCS_PF_MASK, FLIP, 1, 0x1f},
	{VMCS_PF_MATCH, FLIP, 1, 0x1f},
	{VMCS_CR3_TARGET_COUNT, SMALL, 1, 6},
	{VMCS_IO_BITMAP_A, PAGE_AT, 1, 0xfff},
	{VMCS_IO_BITMAP_B, PAGE_AT, 1, 0xfff},
	{VMCS_MSR_BITMAP, PAGE_AT, 1, 0xfff},
	{VMCS_MSR_BITMAP, BITMAP, 3, 0},
	{VMCS_VIRTUAL_APIC, PAGE_AT, 1, 0xfff},
	{VMCS_APIC_ACCESS, PAGE_AT, 1, 0xfff},
	{VMCS_TPR_THRESHOLD, SMALL, 1, 20},
	{VMCS_PML_ADDRESS, PAGE_AT, 1, 0xfff},
	{VMCS_VMFUNC_CTL, FLIP, 1, ~0ul},
	{VMCS_EPTP_LIST, PAGE_AT, 1, 0xfff},
	{VMCS_VE_INFO, PAGE_AT, 1, 0xfff},
	{VMCS_EPTP, FLIP, 2, 0xfff},
	{VMCS_EPTP, PAGE_AT, 1, 0},
	{VMCS_VPID, SMALL, 1, 3},
	{VMCS_TSC_MULTIPLIER, SMALL, 1, 2},
	{VMCS_TSC_OFFSET, BASE, 1, 0},
	{VMCS_EXIT_MSR_STORE_COUNT, SMALL, 2, 4},
	{VMCS_EXIT_MSR_LOAD_COUNT, SMALL, 2, 4},
	{VMCS_ENTRY_MSR_LOAD_COUNT, SMALL, 2, 4},
	{VMCS_ENTRY_MSR_LOAD_COUNT, LIST, 4, 0},
	{VMCS_EXIT_MSR_STORE, PAGE_AT, 1, 0xf},
	{VMCS_EXIT_MSR_LOAD, PAGE_AT, 1, 0xf},
	{VMCS_ENTRY_MSR_LOAD, PAGE_AT, 1, 0xf},
	{VMCS_CR0_GUEST_HOST_MASK, FLIP, 3, 0xe005003f},
	{VMCS_CR4_GUEST_HOST_MASK, FLIP, 3, 0x7fffff},
	{VMCS_CR0_READ_SHADOW, FLIP, 2, 0xe005003f},
	{VMCS_CR4_READ_SHADOW, FLIP, 2, 0x7fffff},
	{VMCS_PREEMPTION_TIMER, SMALL, 1, 0},
	{VMCS_ENTRY_INTR_INFO, EVENT, 14, 0},
	{VMCS_GUEST_CR0, FLIP, 5, ~0ul},
	{VMCS_GUEST_CR0, FLIP, 5, 0xe005003f},
	{VMCS_GUEST_CR3, PAGE_AT, 2, 0xfff},
	{VMCS_GUEST_CR4, FLIP, 6, 0xffffff},
	{VMCS_GUEST_CR4, FLIP, 1, ~0ul},
	{VMCS_GUEST_EFER, FLIP, 6, 0xfff},
	{VMCS_GUEST_EFER, FLIP, 1, ~0ul},
	{VMCS_GUEST_PAT, PAT, 3, 0},
	{VMCS_GUEST_DR7, FLIP, 3, 0xffffffffffff},
	{VMCS_GUEST_SYSENTER_CS, SEL, 1, 0},
	{VMCS_GUEST_SYSENTER_ESP, BASE, 1, 0},
	{VMCS_GUEST_SYSENTER_EIP, BASE, 1, 0},
	{VMCS_GUEST_PDPTE0, PDPTE, 3, 0},
	{VMCS_GUEST_ES_SEL, SEL, 2, 0}, {VMCS_GUEST_CS_SEL, SEL, 4, 0}, {VMCS_GUEST_SS_SEL, SEL, 4, 0},
	{VMCS_GUEST_DS_SEL, SEL, 2, 0}, {VMCS_GUEST_FS_SEL, SEL, 1, 0}, {VMCS_GUEST_GS_SEL, SEL, 1, 0},
	{VMCS_GUEST_LDTR_SEL, SEL, 2, 0}, {VMCS_GUEST_TR_SEL, SEL, 2, 0},
	{VMCS_GUEST_ES_AR, AR, 3, 0}, {VMCS_GUEST_CS_AR, AR, 6, 0}, {VMCS_GUEST_SS_AR, AR, 6, 0},
	{VMCS_GUEST_DS_AR, AR, 3, 0}, {VMCS_GUEST_FS_AR, AR, 2, 0}, {VMCS_GUEST_GS_AR, AR, 2, 0},
	{VMCS_GUEST_LDTR_AR, AR, 4, 0}, {VMCS_GUEST_TR_AR, AR, 4, 0},
	{VMCS_GUEST_ES_LIMIT, LIMIT, 1, 0}, {VMCS_GUEST_CS_LIMIT, LIMIT, 2, 0}, {VMCS_GUEST_SS_LIMIT, LIMIT, 2, 0},
	{VMCS_GUEST_DS_LIMIT, LIMIT, 1, 0}, {VMCS_GUEST_FS_LIMIT, LIMIT, 1, 0}, {VMCS_GUEST_GS_LIMIT, LIMIT, 1, 0},
	{VMCS_GUEST_LDTR_LIMIT, LIMIT, 1, 0}, {VMCS_GUEST_TR_LIMIT, LIMIT, 2, 0},
	{VMCS_GUEST_GDTR_LIMIT, LIMIT, 1, 0}, {VMCS_GUEST_IDTR_LIMIT, LIMIT, 2, 0},
	{VMCS_GUEST_ES_BASE, BASE, 1, 0}, {VMCS_GUEST_CS_BASE, BASE, 2, 0}, {VMCS_GUEST_SS_BASE, BASE, 1, 0},
	{VMCS_GUEST_DS_BASE, BASE, 1, 0}, {VMCS_GUEST_FS_BASE, BASE, 1, 0}, {VMCS_GUEST_GS_BASE, BASE, 1, 0},
	{VMCS_GUEST_LDTR_BASE, BASE, 1, 0}, {VMCS_GUEST_TR_BASE, BASE, 1, 0},
	{VMCS_GUEST_GDTR_BASE, BASE, 1, 0}, {VMCS_GUEST_IDTR_BASE, BASE, 2, 0},
	{VMCS_GUEST_RIP, RIP, 3, 0},
	{VMCS_GUEST_RSP, BASE, 1, 0},
	{VMCS_GUEST_RFLAGS, FLIP, 6, 0xffffff},
	{VMCS_GUEST_RFLAGS, FLIP, 1, ~0ul},
	{VMCS_GUEST_RFLAGS, FLIP, 4, RFLAGS_IF | RFLAGS_TF},
	{VMCS_GUEST_INTERRUPTIBILITY, FLIP, 4, ~(u64)BLOCK_NMI},
	{VMCS_GUEST_INTERRUPTIBILITY, FLIP, 4, BLOCK_STI | BLOCK_MOV_SS | BIT(2)},
	{VMCS_GUEST_ACTIVITY_STATE, SMALL, 3, 5},
	{VMCS_GUEST_PENDING_DEBUG, DEBUG, 4, 0},
	{VMCS_LINK_POINTER, LINK, 4, 0},
	{VMCS_HOST_CR0, FLIP, 3, HOST_CR0_BITS},
	{VMCS_HOST_CR3, PAGE_AT, 1, 0},
	{VMCS_HOST_CR4, FLIP, 3, HOST_CR4_BITS},
	{VMCS_HOST_EFER, FLIP, 3, ~0ul},
	{VMCS_HOST_PAT, PAT, 2, 0},
	{VMCS_HOST_ES_SEL, SMALL, 1, 7}, {VMCS_HOST_CS_SEL, FLIP, 2, 0xf}, {VMCS_HOST_SS_SEL, FLIP, 1, 0x17},
	{VMCS_HOST_DS_SEL, SMALL, 1, 7}, {VMCS_HOST_FS_SEL, SMALL, 1, 7}, {VMCS_HOST_GS_SEL, SMALL, 1, 7},
	{VMCS_HOST_TR_SEL, FLIP, 2, 7},
	{VMCS_HOST_FS_BASE, BASE, 1, 0}, {VMCS_HOST_GS_BASE, BASE, 1, 0},
	{VMCS_HOST_TR_BASE, FLIP, 1, BIT(47) | BIT(60)}, {VMCS_HOST_GDTR_BASE, FLIP, 1, BIT(47) | BIT(63)},
	{VMCS_HOST_IDTR_BASE, FLIP, 1, BIT(47) | BIT(50)}, {VMCS_HOST_RIP, FLIP, 2, BIT(47) | BIT(48)},
	{VMCS_HOST_SYSENTER_ESP, BASE, 1, 0}, {VMCS_HOST_SYSENTER_EIP, BASE, 1, 0},
};
/* clang-format on */

#define PICK(list) ((list)[rng_below(ARRAY_SIZE(list))])

static u64 one_bit(u64 bits)
{
	u64 bit;

	do
		bit = BIT(rng_below(64));
	while (!(bit & bits));
	return bit;
}

static u64 linear_address(void)
{
	static const u64 list[] = {0,
				   LOW,
				   L2_DATA,
				   L2_END,
				   0xffffffff,
				   BIT(32),
				   0x00007ffffffff000,
				   0x0000800000000000,
				   0xffff7fffffffffff,
				   0xffff800000000000,
				   ~0ul};

	return PICK(list);
}

static u64 access_rights(u64 old)
{
	static const u32 list[] = {0x10000, 0x93,   0xc093, 0xc097, 0xc09b, 0xa09b, 0x9b,   0xf3,    0xc099,
				   0xa09d,  0xc09f, 0x82,   0x8b,   0x83,   0x89,   0xc0f3, 0x1c09b, 0xe09b};

	return rng_one_in(2) ? PICK(list) : old ^ BIT(rng_below(18));
}

static u64 page_address(u64 old, u64 low)
{
	if (low && rng_one_in(2))
		return old | one_bit(low);
	return old | BIT(40 + rng_below(12));
}

/* Type 7 stops Bochs where it has no monitor trap flag (Q63). */
static void event(void)
{
	static const u8 vectors[] = {0, 1, 2, 3, 4, 6, 8, 10, 13, 14, 17, 18, 20, 21, 31, 32, 0x40, 0xff};
	u8 vector = PICK(vectors);
	u32 type = rng_below(7), info = INTR_VALID | type << 8 | vector;
	u32 with_error = 0x27d00 >> vector & 1 && vector < 32;

	if (type == 3 && with_error != rng_one_in(8))
		info |= INTR_ERROR_CODE;
	if (type == 0 && !rng_one_in(4))
		vmcs_set_bits(VMCS_GUEST_RFLAGS, RFLAGS_IF);
	if (type == 2 && !rng_one_in(4))
		info = (info & ~0xffu) | VEC_NMI;
	if (rng_one_in(8))
		info ^= BIT(8 + rng_below(24)) & ~INTR_VALID;
	if ((info >> 8 & 7) == 7)
		info &= ~0x700u;
	vmwrite(VMCS_ENTRY_INTR_INFO, info);
	vmwrite(VMCS_ENTRY_ERROR_CODE, rng_one_in(8) ? BIT(rng_below(32)) : rng_below(8));
	vmwrite(VMCS_ENTRY_INSN_LEN, rng_below(17));
}

static u64 link(void)
{
	u32 *word = ptr_to(pages.other_vmcs);
	u32 revision = (u32)rdmsr(MSR_VMX_BASIC) & 0x7fffffff;
	const u64 list[] = {pages.other_vmcs, pages.other_vmcs, pages.other_vmcs | 8,
			    pages.other_vmcs | BIT(45), l2_vmcs()};

	*word = rng_one_in(2) ? revision : revision ^ (u32)BIT(rng_below(32));
	return PICK(list);
}

/* The unknown MSRs and those of SMM and microcode are missing: Bochs takes them (Q28). */
static void list_entry(void)
{
	static const u32 msrs[] = {MSR_FS_BASE, MSR_GS_BASE, 0x800,   0x808, 0x8ff, 0xc0000081,
				   0xc0000082,  0xc0000083,  MSR_PAT, 0x175, 0x176, MSR_KERNEL_GS_BASE};
	static const u64 values[] = {0, 1, 0x0000800000000000, 0x0007040600070406, 0x0207040600070406, ~0ul};
	u32 *entry = ptr_to(pages.entry_list + 16 * rng_below(4));

	entry[0] = PICK(msrs);
	entry[1] = rng_one_in(6) ? 1 : 0;
	*(u64 *)(void *)(entry + 2) = PICK(values);
	vmwrite(VMCS_ENTRY_MSR_LOAD_COUNT, 1 + rng_below(4));
}

static void bitmap(void)
{
	memset(l2_msr_bitmap() + rng_below(4) * 1024, 0xff, 1024);
	memset(ptr_to(pages.bitmap + rng_below(2) * PAGE_SIZE), rng_one_in(2) ? 0xff : 1, PAGE_SIZE);
	vmcs_set_bits(VMCS_PROC_CTL, rng_one_in(2) ? PROC_IO_BITMAPS : 0);
}

static u64 apply(const struct row *r, u64 old)
{
	static const u16 selectors[] = {0,    1,    3,    4,    7,    0x08, 0x0b,   0x10,   0x13,
					0x14, 0x18, 0x1b, 0x23, 0x2b, 0x40, 0x1000, 0xfffc, 0xffff};
	static const u32 limits[] = {0,       0x66,     0x67,     0xfff,      0xffff,    0x10000,
				     0xfffff, 0x100000, 0x1fffff, 0xfffff000, 0xffffffff};
	static const u64 pats[] = {
		0x0007040600070406, 0x0101010101010101, 0x0007040600070402, 0x0807040600070406, ~0ul, 0};

	switch ((enum way)r->way) {
	case FLIP:
		return old ^ one_bit(r->bits);
	case SEL:
		return PICK(selectors);
	case AR:
		return access_rights(old);
	case LIMIT:
		return PICK(limits);
	case BASE:
		return linear_address();
	case PAGE_AT:
		return page_address(old, r->bits);
	case SMALL:
		return rng_below((u32)r->bits + 1);
	case PAT:
		return PICK(pats);
	case LINK:
		return link();
	case RIP:
		return rng_one_in(2) ? linear_address() : old + rng_below(4);
	case DEBUG:
		return BIT(rng_below(20)) | (rng_one_in(2) ? BIT(12) : 0);
	case PDPTE:
		return old ^ BIT(rng_below(52));
	case EVENT:
		event();
		return vmread(VMCS_ENTRY_INTR_INFO);
	case LIST:
		list_entry();
		return vmread(VMCS_ENTRY_MSR_LOAD_COUNT);
	case BITMAP:
		bitmap();
		return old;
	}
	return old;
}

static const struct row *choose(void)
{
	u32 total = 0, at;

	for (u32 i = 0; i < ARRAY_SIZE(rows); i++)
		total += rows[i].weight;
	at = rng_below(total);
	for (u32 i = 0;; i++) {
		if (at < rows[i].weight)
			return &rows[i];
		at -= rows[i].weight;
	}
}

void mutate(bool show)
{
	for (u32 n = rng_one_in(16) ? 0 : 1 + rng_below(4); n; n--) {
		const struct row *r = choose();
		u64 old = vmread(r->field), value = apply(r, old);

		vmwrite(r->field, value);
		if (show)
			print("change %x from %lx to %lx\n", r->field, old, value);
	}
}
