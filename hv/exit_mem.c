/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EPT violations of L1: its RAM is always mapped, so what arrives here is an access to a device page or to
 * nothing. The instruction is carried out (hv/insn_emul) with each part of its memory going to RAM or to the
 * device that stands there.
 */
#include "hv/exit.h"
#include "hv/insn_emul.h"
#include "hv/insn_len.h"
#include "hv/insn_memo.h"
#include "hv/lib.h"
#include "mm/guest_copy.h"

/* SDM "Exit Qualification for EPT Violations". */
#define QUAL_WRITE  BIT(1)
#define QUAL_FETCH  BIT(2)
#define QUAL_LINEAR BIT(7)
#define QUAL_FINAL  BIT(8)

bool translate_l1(struct vcpu *v, u64 linear, unsigned access, gpa_t *out)
{
	struct page_fault f;
	struct paging p;

	vcpu_paging(v, &p);
	if (guest_walk(&v->guest->mem, &p, linear, access, out, &f))
		return true;
	inject_page_fault(v, f.linear, f.error);
	return false;
}

static void device_access(struct vcpu *v, gpa_t gpa, unsigned n, bool write, u8 *bytes)
{
	u64 value = 0;

	for (unsigned i = 0; i < n; i++)
		value |= (u64)bytes[i] << (8 * i);
	if (write)
		machine_mmio_write(v, gpa, n, value);
	else
		value = machine_mmio_read(v, gpa, n);
	for (unsigned i = 0; !write && i < n; i++)
		bytes[i] = (u8)(value >> (8 * i));
}

/* `n` bytes inside one page: RAM, else a device; an odd number goes to a device byte by byte. */
static void physical_access(struct vcpu *v, gpa_t gpa, unsigned n, bool write, u8 *bytes)
{
	const struct l1mem *m = &v->guest->mem;

	if (write ? guest_write(m, gpa, bytes, n) : guest_read(m, gpa, bytes, n))
		return;
	if (n == 1 || n == 2 || n == 4 || n == 8) {
		device_access(v, gpa, n, write, bytes);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		device_access(v, GPA(gpa.v + i), 1, write, bytes + i);
}

/* At most two pages. Both are translated before either is touched: a fault leaves nothing half done. */
static bool linear_access(struct vcpu *v, u64 linear, unsigned n, enum insn_access a, u8 *bytes)
{
	unsigned first = (unsigned)MIN((u64)n, PAGE_SIZE - (linear & ~PAGE_MASK));
	enum access how = a == INSN_READ ? ACCESS_READ : ACCESS_WRITE;
	gpa_t low, high = GPA(0);

	if (!v->level->translate(v, linear, how, &low))
		return false;
	if (first < n && !v->level->translate(v, linear + first, how, &high))
		return false;
	physical_access(v, low, first, a == INSN_WRITE, bytes);
	if (first < n)
		physical_access(v, high, n - first, a == INSN_WRITE, bytes + first);
	return true;
}

/*
 * One instruction being carried out. The processor has translated the address it stopped at, by what its TLB
 * says: that access needs no walk, and goes to no RAM.
 */
struct mmio {
	struct vcpu *v;
	bool l1;       /* it is L1's: hv/insn_memo may be used */
	bool bits64;   /* 64-bit mode */
	bool writable; /* `linear` may be written */
	u64 linear;    /* what `gpa` was reached by; NOWHERE: not known */
	gpa_t gpa;
};
#define NOWHERE (~0ull)

/* SDM "Segmentation in 64-bit mode": only FS and GS have a base there; else addresses wrap at 4 GiB. */
static u64 linear_address(const struct mmio *x, enum insn_seg seg, u64 offset)
{
	if (likely(x->bits64))
		return seg >= SEG_FS ? offset + vcpu_seg_base(seg) : offset;
	return (u32)(offset + vcpu_seg_base(seg));
}

static bool env_access(void *ctx, enum insn_seg seg, u64 offset, unsigned size, enum insn_access a,
		       u64 *value)
{
	const struct mmio *x = ctx;
	u64 linear = linear_address(x, seg, offset);
	u8 bytes[8];

	if (likely(linear == x->linear && (a == INSN_READ || x->writable) &&
		   (linear & ~PAGE_MASK) + size <= PAGE_SIZE)) {
		if (a == INSN_WRITE)
			machine_mmio_write(x->v, x->gpa, size, *value);
		else
			*value = machine_mmio_read(x->v, x->gpa, size);
		return true;
	}
	memcpy(bytes, value, sizeof(bytes));
	if (!linear_access(x->v, linear, size, a, bytes))
		return false;
	if (a != INSN_WRITE) {
		*value = 0;
		memcpy(value, bytes, size);
	}
	return true;
}

static u64 env_reg(void *ctx, unsigned reg)
{
	return vcpu_reg(((struct mmio *)ctx)->v, reg);
}

static void env_set_reg(void *ctx, unsigned reg, u64 value)
{
	vcpu_set_reg(((struct mmio *)ctx)->v, reg, value);
}

static inline __attribute__((always_inline)) unsigned code_bits(const struct mmio *x)
{
	if (x->bits64)
		return 64;
	return vmcs_read32(VMCS_GUEST_CS_AR) & BIT32(14) ? 32 : 16;
}

static bool fetch(struct vcpu *v, u64 linear, unsigned n, u8 *bytes)
{
	gpa_t gpa;

	if (!v->level->translate(v, linear, ACCESS_FETCH, &gpa))
		return false;
	if (!guest_read(&v->guest->mem, gpa, bytes, n))
		memset(bytes, 0xff, n);
	return true;
}

/* The second page is read only when the instruction reaches into it: it need not be there. */
static bool decode(const struct mmio *x, u64 rip, struct insn *i, u8 bytes[INSN_MEMO_BYTES],
		   enum insn_result *result)
{
	u64 linear = linear_address(x, SEG_CS, rip);
	unsigned first = (unsigned)MIN((u64)INSN_MEMO_BYTES, PAGE_SIZE - (linear & ~PAGE_MASK));

	if (!fetch(x->v, linear, first, bytes))
		return false;
	*result = insn_decode(bytes, first, code_bits(x), i);
	if (*result != INSN_SHORT || first >= INSN_LENGTH_MAX)
		return true;
	if (!fetch(x->v, linear + first, INSN_LENGTH_MAX - first, bytes + first))
		return false;
	*result = insn_decode(bytes, INSN_LENGTH_MAX, code_bits(x), i);
	return true;
}

static enum exit_action not_decoded(struct vcpu *v, gpa_t gpa, enum insn_result result)
{
	if (result == INSN_UD)
		return fault_ud(v);
	if (result == INSN_TOO_LONG)
		return fault_gp(v);
	guest_end(v->guest, "killed: unknown instruction on device memory %#llx", (unsigned long long)gpa.v);
	return RESUME;
}

static void carry_out(struct mmio *x, const struct insn *i, u64 rip)
{
	u64 flags = vmcs_read_nw(VMCS_GUEST_RFLAGS);
	struct insn_env env = {.ctx = x,
			       .reg = env_reg,
			       .set_reg = env_set_reg,
			       .access = env_access,
			       .rip = rip,
			       .rflags = flags};
	enum emul_result done = insn_emulate(i, &env);

	if (done == EMUL_FAULT)
		return;
	if (env.rflags != flags)
		vmcs_write_nw(VMCS_GUEST_RFLAGS, env.rflags);
	if (done == EMUL_DONE)
		insn_advance_by(x->v, i->length);
}

static __attribute__((noinline)) enum exit_action decode_and_carry_out(struct mmio *x,
								       const struct insn_key *k)
{
	struct insn_memo *memo = x->l1 ? insn_memo_begin(x->v->memos, k, &x->v->guest->mem) : NULL;
	u8 bytes[INSN_MEMO_BYTES];
	enum insn_result result;
	struct insn i;

	if (!decode(x, k->rip, &i, bytes, &result))
		return RESUME;
	if (result != INSN_OK)
		return not_decoded(x->v, x->gpa, result);
	if (memo)
		insn_memo_end(memo, k, bytes, &i);
	carry_out(x, &i, k->rip);
	return RESUME;
}

static enum exit_action emulate(struct mmio *x)
{
	u64 cs = vmcs_read_sure(VMCS_GUEST_CS_AR);
	struct insn_key k = {.rip = vmcs_read_sure(VMCS_GUEST_RIP),
			     .cr3 = vmcs_read_sure(VMCS_GUEST_CR3),
			     .cr4 = vmcs_read_sure(VMCS_GUEST_CR4),
			     .efer = vmcs_read_sure(VMCS_GUEST_EFER),
			     .rights = vmcs_read_sure(VMCS_GUEST_SS_AR) << 32 | cs};
	const struct insn *i = x->l1 ? insn_memo_find(x->v->memos, &k) : NULL;

	x->bits64 = k.efer & EFER_LMA && cs & BIT32(13);
	if (unlikely(!i))
		return decode_and_carry_out(x, &k);
	carry_out(x, i, k.rip);
	return RESUME;
}

enum exit_action mmio_emulate(struct vcpu *v, gpa_t gpa)
{
	return emulate(&(struct mmio){.v = v, .gpa = gpa, .linear = NOWHERE});
}

enum exit_action mmio_emulate_l1(struct vcpu *v, gpa_t gpa)
{
	return emulate(&(struct mmio){.v = v, .gpa = gpa, .linear = NOWHERE, .l1 = true});
}

/* A page-table walk that leads out of RAM reads all ones: present, with reserved bits set. */
static void fault_walk(struct vcpu *v, u64 qual)
{
	u32 error = BIT32(0) | BIT32(3);

	if (qual & QUAL_WRITE)
		error |= ACCESS_WRITE;
	if (vcpu_cpl() == 3)
		error |= BIT32(2);
	inject_page_fault(v, vmcs_read_nw(VMCS_GUEST_LINEAR), error);
}

enum exit_action exit_ept_violation(struct vcpu *v)
{
	u64 qual = vmcs_read_nw(VMCS_EXIT_QUAL);
	gpa_t gpa = GPA(vmcs_read64(VMCS_GUEST_PHYS));

	event_requeue(v);
	if (!(qual & EPT_RWX & ~ept_lookup(&v->guest->ept01, gpa.v).entry))
		return RESUME; /* a stale translation; the exit has dropped it */
	if (v->pending & PEND_INJECT) {
		guest_end(v->guest, "killed: event delivery through device memory %#llx",
			  (unsigned long long)gpa.v);
		return RESUME;
	}
	if (qual & QUAL_LINEAR && !(qual & QUAL_FINAL)) {
		fault_walk(v, qual);
		return RESUME;
	}
	if (qual & QUAL_FETCH)
		return fault_ud(v); /* code read as all ones */
	return emulate(
		&(struct mmio){.v = v,
			       .l1 = true,
			       .writable = qual & QUAL_WRITE,
			       .linear = qual & QUAL_LINEAR ? vmcs_read_sure(VMCS_GUEST_LINEAR) : NOWHERE,
			       .gpa = gpa});
}

/* EPT01 is L0's own work. */
enum exit_action exit_ept_misconfig(struct vcpu *v)
{
	return exit_unexpected(v, EXIT_EPT_MISCONFIG);
}
