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
/* 64-bit addresses, a segment that has no base then: not FS, GS. */
#define INFO_PLAIN_MASK (7u << 7 | BIT32(17))
#define INFO_PLAIN      (2u << 7)

/* Segment access rights. */
#define AR_CODE(ar)        ((ar)&8)
#define AR_WRITABLE(ar)    ((ar)&2) /* data: writable; code: readable */
#define AR_EXPAND_DOWN(ar) (((ar)&0xc) == 4)
#define AR_BIG             BIT32(14)

enum segment { SEG_ES, SEG_CS, SEG_SS, SEG_DS, SEG_FS, SEG_GS };

/* SDM "Exit Qualification": the displacement, with RIP already added where the operand is RIP-relative. Not
 * cut to the address size. */
static inline u64 effective_address(const struct vcpu *v, u32 info)
{
	u64 ea = vmcs_read_sure(VMCS_EXIT_QUAL);

	if (!(info & INFO_NO_BASE))
		ea += operand_register(v, INFO_BASE(info));
	if (!(info & INFO_NO_INDEX))
		ea += operand_register(v, INFO_INDEX(info)) << INFO_SCALE(info);
	return ea;
}

static u64 cut(u64 ea, u32 info)
{
	if (INFO_ADDR_SIZE(info) == 0)
		return ea & 0xffff;
	return INFO_ADDR_SIZE(info) == 1 ? ea & 0xffffffff : ea;
}

static void segment_fault(struct vcpu *v, unsigned seg)
{
	inject_exception_error(v, seg == SEG_SS ? VEC_SS : VEC_GP, 0);
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

/* The linear address of `n` bytes at `ea`. False: the segment does not allow it. */
static bool segment_linear(unsigned seg, u64 ea, size_t n, bool write, u64 *linear)
{
	if (seg > SEG_GS)
		return false;
	if (vcpu_64bit()) {
		if (seg >= SEG_FS)
			ea += vcpu_seg_base(seg);
		*linear = ea;
		return is_canonical(ea) && is_canonical(ea + n - 1);
	}
	*linear = (ea + vcpu_seg_base(seg)) & 0xffffffff;
	return segment_ok(seg, ea, n, write);
}

/* False: the fault is raised. */
static __attribute__((cold)) bool operand_linear(struct vcpu *v, size_t n, bool write, u64 *linear)
{
	u32 info = vmcs_read32(VMCS_EXIT_INSN_INFO);
	unsigned seg = INFO_SEGMENT(info);

	if (segment_linear(seg, cut(effective_address(v, info), info), n, write, linear))
		return true;
	segment_fault(v, seg);
	return false;
}

static inline struct operand_memo *memo_of(const struct vcpu *v, u64 ea)
{
	struct nested *n = v->nested;

	return &n->operands[(ea >> PAGE_SHIFT) % ARRAY_SIZE(n->operands)];
}

/*
 * The page of `ea` for the next operands in it: the entries on the way to it are kept, and serve while they
 * and the registers read the same. False: the long way tells, and nothing is kept.
 */
static bool remember(struct vcpu *v, u64 ea, gpa_t *gpa)
{
	struct operand_memo *memo = memo_of(v, ea);
	const struct l1mem *m = &v->guest->mem;
	struct paging p = {.cr3 = vmcs_read_nw(VMCS_GUEST_CR3),
			   .cr4 = vmcs_read_nw(VMCS_GUEST_CR4),
			   .efer = vmcs_read64(VMCS_GUEST_EFER),
			   .phys_bits = v->nested->facts.phys_bits};
	u64 differs;
	hpa_t hpa;

	memo->page = NO_PAGE;
	if (!is_canonical(ea) || !walk_trail_record(m, p.cr3, ea, &memo->trail, gpa) ||
	    !guest_walk_fast(m, &p, ea, ACCESS_READ, gpa) ||
	    !l1mem_plain(m, GPA(gpa->v & PAGE_MASK), PAGE_SIZE, &hpa))
		return false;
	guest_access_begin();
	differs = walk_trail_differs(&memo->trail);
	guest_access_end();
	if (differs) /* another CPU of L1 has changed an entry meanwhile */
		return false;
	memo->cr3 = p.cr3;
	memo->cr4 = p.cr4;
	memo->efer = p.efer;
	memo->bytes = hpa_ptr(hpa);
	memo->page = ea & PAGE_MASK;
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

static __attribute__((cold, noinline)) bool read_anew(struct vcpu *v, u64 ea, u64 *buf, size_t n)
{
	gpa_t gpa;

	return (remember(v, ea, &gpa) && guest_read(&v->guest->mem, gpa, buf, n)) ||
	       operand_read_any(v, buf, n);
}

/*
 * Where nearly all operands are: 64-bit code, no segment base, inside one page that is known. The words are
 * copied in any case, from what is RAM of this guest, and used only when the way to them is still the same.
 * Of CR4 the fast walk looks only at bits that L1 has in the register itself; CPL is 0.
 */
bool operand_read(struct vcpu *v, u32 info, u64 *buf, unsigned words)
{
	size_t n = words * sizeof(u64);
	const struct operand_memo *memo;
	u64 ea, at, differs;

	if (unlikely(!v->nested->wide || (info & INFO_PLAIN_MASK) != INFO_PLAIN))
		return operand_read_any(v, buf, n);
	ea = effective_address(v, info);
	at = ea & ~PAGE_MASK;
	if (unlikely(at > PAGE_SIZE - n))
		return operand_read_any(v, buf, n);
	memo = memo_of(v, ea);
	differs = (ea - at) ^ memo->page;
	differs |= vmcs_read_sure(VMCS_GUEST_CR3) ^ memo->cr3;
	differs |= vmcs_read_sure(VMCS_GUEST_CR4) ^ memo->cr4;
	differs |= vmcs_read_sure(VMCS_GUEST_EFER) ^ memo->efer;
	if (unlikely(differs))
		return read_anew(v, ea, buf, n);
	guest_access_begin();
	differs = walk_trail_differs(&memo->trail);
	buf[0] = *(const volatile u64 *)(memo->bytes + at);
	if (words > 1)
		buf[1] = *(const volatile u64 *)(memo->bytes + at + sizeof(u64));
	guest_access_end();
	return likely(!differs) ? true : read_anew(v, ea, buf, n);
}

bool operand_pointer(struct vcpu *v, gpa_t *out)
{
	return operand_read(v, (u32)vmcs_read_sure(VMCS_EXIT_INSN_INFO), &out->v, 1);
}
