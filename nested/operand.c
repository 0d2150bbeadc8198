/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory operands of VMX instructions: from the instruction information to a linear address, with the faults
 * of an ordinary data access. Decides nothing about the instruction itself. SDM "Instruction-Information
 * Field", "Limit Checking", "Type Checking".
 */
#include "hv/lib.h"
#include "mm/guest_access.h"
#include "mm/guest_walk.h"
#include "nested/internal.h"

/* Exit instruction information: the fields common to all formats with a memory operand. */
#define INFO_SCALE(i)     ((i)&3)
#define INFO_ADDR_SIZE(i) ((i) >> 7 & 7) /* 0: 16 bits, 1: 32, 2: 64 */
#define INFO_SEGMENT(i)   ((i) >> 15 & 7)
#define INFO_INDEX(i)     ((i) >> 18 & 15)
#define INFO_NO_INDEX     BIT32(22)
#define INFO_BASE(i)      ((i) >> 23 & 15)
#define INFO_NO_BASE      BIT32(27)

/* Segment access rights. */
#define AR_CODE(ar)        ((ar)&8)
#define AR_WRITABLE(ar)    ((ar)&2) /* data: writable; code: readable */
#define AR_EXPAND_DOWN(ar) (((ar)&0xc) == 4)
#define AR_BIG             BIT32(14)

enum segment { SEG_ES, SEG_CS, SEG_SS, SEG_DS, SEG_FS, SEG_GS };

static inline u64 reg(const struct vcpu *v, unsigned number)
{
	return unlikely(number == RSP) ? vcpu_reg(v, RSP) : v->regs[number];
}

/* SDM "Exit Qualification": the displacement, with RIP already added where the operand is RIP-relative. Not
 * cut to the address size. */
static inline u64 effective_address(const struct vcpu *v, u32 info)
{
	u64 ea = vmcs_read_nw(VMCS_EXIT_QUAL);

	if (!(info & INFO_NO_BASE))
		ea += reg(v, INFO_BASE(info));
	if (!(info & INFO_NO_INDEX))
		ea += reg(v, INFO_INDEX(info)) << INFO_SCALE(info);
	return ea;
}

static u64 cut(u64 ea, u32 info)
{
	if (INFO_ADDR_SIZE(info) == 0)
		return ea & 0xffff;
	return INFO_ADDR_SIZE(info) == 1 ? ea & 0xffffffff : ea;
}

static bool segment_fault(struct vcpu *v, unsigned seg)
{
	inject_exception_error(v, seg == SEG_SS ? VEC_SS : VEC_GP, 0);
	return false;
}

static bool in_limit(u32 ar, u32 limit, u64 ea, size_t n)
{
	u64 last = ea + n - 1;

	if (!AR_CODE(ar) && AR_EXPAND_DOWN(ar))
		return ea > limit && last <= (ar & AR_BIG ? 0xffffffffull : 0xffffull);
	return last <= limit;
}

/* Outside of 64-bit mode: the segment must be usable, of a fitting type, and long enough. */
static bool segment_ok(unsigned seg, u64 ea, size_t n, bool write)
{
	u32 ar = (u32)vmcs_read_raw(VMCS_GUEST_ES_AR + 2 * seg);
	u32 limit = (u32)vmcs_read_raw(VMCS_GUEST_ES_LIMIT + 2 * seg);

	if (ar & AR_UNUSABLE)
		return false;
	if (write && (AR_CODE(ar) || !AR_WRITABLE(ar)))
		return false;
	if (!write && AR_CODE(ar) && !AR_WRITABLE(ar))
		return false;
	return in_limit(ar, limit, ea, n);
}

/* False: the fault is raised. */
static __attribute__((cold)) bool operand_linear(struct vcpu *v, size_t n, bool write, u64 *linear)
{
	u32 info = vmcs_read32(VMCS_EXIT_INSN_INFO);
	unsigned seg = INFO_SEGMENT(info);
	u64 ea = cut(effective_address(v, info), info);

	if (seg > SEG_GS)
		return segment_fault(v, seg);
	if (vcpu_64bit()) {
		if (seg >= SEG_FS)
			ea += vcpu_seg_base(seg);
		*linear = ea;
		return (is_canonical(ea) && is_canonical(ea + n - 1)) || segment_fault(v, seg);
	}
	*linear = (ea + vcpu_seg_base(seg)) & 0xffffffff;
	return segment_ok(seg, ea, n, write) || segment_fault(v, seg);
}

/* The walk, and its entries kept so that the next operand in this page costs only a look whether they still
 * are the same. */
static __attribute__((cold, noinline)) bool walk(const struct vcpu *v, struct operand_memo *memo,
						 const struct operand_memo *key, u64 ea, gpa_t *out)
{
	const struct l1mem *m = &v->guest->mem;
	struct paging p = {
		.cr3 = key->cr3, .cr4 = key->cr4, .efer = key->efer, .phys_bits = v->nested->facts.phys_bits};
	u64 differs;
	bool ok;

	*memo = *key;
	ok = walk_trail_record(m, key->cr3, ea, &memo->trail, out);
	if (!guest_walk_fast(m, &p, ea, key->access, out)) {
		memo->page = NO_PAGE;
		return false;
	}
	guest_access_begin();
	differs = ok ? walk_trail_differs(&memo->trail) : 1;
	guest_access_end();
	if (differs) /* another CPU of L1 has changed an entry meanwhile */
		memo->page = NO_PAGE;
	memo->gpa = out->v & PAGE_MASK;
	return true;
}

/*
 * Where nearly all operands are: 64-bit code, no segment base, inside one page that the fast walk finds. Of
 * CR4 that walk looks only at bits that L1 has in the register itself; CPL is 0. False: the long way tells.
 */
static inline bool plain_place(const struct vcpu *v, size_t n, enum access a, gpa_t *out)
{
	struct nested *nested = v->nested;
	u32 info = (u32)vmcs_read_sure(VMCS_EXIT_INSN_INFO);
	struct operand_memo key, *memo;
	u64 ea, differs;

	if (!nested->wide || INFO_SEGMENT(info) >= SEG_FS || INFO_ADDR_SIZE(info) != 2)
		return false;
	ea = effective_address(v, info);
	if (!is_canonical(ea) || (ea & ~PAGE_MASK) > PAGE_SIZE - n)
		return false;
	key.page = ea >> PAGE_SHIFT;
	key.access = a;
	key.cr3 = vmcs_read_sure(VMCS_GUEST_CR3);
	key.cr4 = vmcs_read_sure(VMCS_GUEST_CR4);
	key.efer = vmcs_read64(VMCS_GUEST_EFER);
	memo = &nested->operands[key.page % ARRAY_SIZE(nested->operands)];
	if (memo->page != key.page || memo->cr3 != key.cr3 || memo->cr4 != key.cr4 ||
	    memo->efer != key.efer || memo->access != key.access)
		return walk(v, memo, &key, ea, out);
	guest_access_begin();
	differs = walk_trail_differs(&memo->trail);
	guest_access_end();
	if (unlikely(differs))
		return walk(v, memo, &key, ea, out);
	*out = GPA(memo->gpa | (ea & ~PAGE_MASK));
	return true;
}

/* Where the operand's bytes stand: at most two pages, both translated before either is touched. `first` bytes
 * are in the first. */
static bool pieces(struct vcpu *v, size_t n, enum access a, gpa_t at[2], size_t *first)
{
	u64 linear;

	if (!operand_linear(v, n, a == ACCESS_WRITE, &linear))
		return false;
	*first = MIN(n, PAGE_SIZE - (linear & ~PAGE_MASK));
	return v->level->translate(v, linear, a, &at[0]) &&
	       (*first == n || v->level->translate(v, linear + *first, a, &at[1]));
}

/* Device space reads like an absent bus target, and takes writes like one. */
__attribute__((cold)) bool operand_read_any(struct vcpu *v, void *buf, size_t n)
{
	size_t first;
	gpa_t at[2];

	if (!pieces(v, n, ACCESS_READ, at, &first))
		return false;
	memset(buf, 0xff, n);
	guest_read(&v->guest->mem, at[0], buf, first);
	if (first < n)
		guest_read(&v->guest->mem, at[1], (char *)buf + first, n - first);
	return true;
}

__attribute__((cold)) bool operand_write_any(struct vcpu *v, const void *buf, size_t n)
{
	size_t first;
	gpa_t at[2];

	if (!pieces(v, n, ACCESS_WRITE, at, &first))
		return false;
	guest_write(&v->guest->mem, at[0], buf, first);
	if (first < n)
		guest_write(&v->guest->mem, at[1], (const char *)buf + first, n - first);
	return true;
}

bool operand_read(struct vcpu *v, void *buf, size_t n)
{
	gpa_t gpa;

	return (likely(plain_place(v, n, ACCESS_READ, &gpa)) && guest_read(&v->guest->mem, gpa, buf, n)) ||
	       operand_read_any(v, buf, n);
}

bool operand_write(struct vcpu *v, const void *buf, size_t n)
{
	gpa_t gpa;

	return (likely(plain_place(v, n, ACCESS_WRITE, &gpa)) && guest_write(&v->guest->mem, gpa, buf, n)) ||
	       operand_write_any(v, buf, n);
}

bool operand_pointer(struct vcpu *v, gpa_t *out)
{
	return operand_read(v, &out->v, sizeof(out->v));
}
