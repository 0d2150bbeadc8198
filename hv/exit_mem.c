/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EPT violations of L1: its RAM is always mapped, so what arrives here is an access to a device page or to
 * nothing. The instruction is carried out (hv/insn_emul) with each part of its memory going to RAM or to the
 * device that stands there.
 */
#include "hv/exit.h"
#include "hv/insn_emul.h"
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

/* SDM "Segmentation in 64-bit mode": only FS and GS have a base there; else addresses wrap at 4 GiB. */
static u64 linear_address(enum insn_seg seg, u64 offset)
{
	if (vcpu_64bit())
		return seg >= SEG_FS ? offset + vcpu_seg_base(seg) : offset;
	return (u32)(offset + vcpu_seg_base(seg));
}

static bool env_access(void *ctx, enum insn_seg seg, u64 offset, unsigned size, enum insn_access a,
		       u64 *value)
{
	u8 bytes[8];

	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (u8)(*value >> (8 * i));
	if (!linear_access(ctx, linear_address(seg, offset), size, a, bytes))
		return false;
	if (a == INSN_WRITE)
		return true;
	*value = 0;
	for (unsigned i = 0; i < size; i++)
		*value |= (u64)bytes[i] << (8 * i);
	return true;
}

static u64 env_reg(void *ctx, unsigned reg)
{
	return vcpu_reg(ctx, reg);
}

static void env_set_reg(void *ctx, unsigned reg, u64 value)
{
	vcpu_set_reg(ctx, reg, value);
}

static unsigned code_bits(void)
{
	if (vcpu_64bit())
		return 64;
	return vmcs_read32(VMCS_GUEST_CS_AR) & BIT32(14) ? 32 : 16;
}

static bool fetch(struct vcpu *v, u64 linear, unsigned n, u8 *bytes)
{
	gpa_t gpa;

	if (!v->level->translate(v, linear, ACCESS_FETCH, &gpa))
		return false;
	if (!guest_read(&v->guest->mem, gpa, bytes, n))
		for (unsigned i = 0; i < n; i++)
			bytes[i] = 0xff;
	return true;
}

/* The second page is read only when the instruction reaches into it: it need not be there. */
static bool decode(struct vcpu *v, u64 rip, struct insn *i, enum insn_result *result)
{
	u64 linear = linear_address(SEG_CS, rip);
	unsigned first = (unsigned)MIN((u64)INSN_LENGTH_MAX, PAGE_SIZE - (linear & ~PAGE_MASK));
	u8 bytes[INSN_LENGTH_MAX];

	if (!fetch(v, linear, first, bytes))
		return false;
	*result = insn_decode(bytes, first, code_bits(), i);
	if (*result != INSN_SHORT || first == INSN_LENGTH_MAX)
		return true;
	if (!fetch(v, linear + first, INSN_LENGTH_MAX - first, bytes + first))
		return false;
	*result = insn_decode(bytes, INSN_LENGTH_MAX, code_bits(), i);
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

enum exit_action mmio_emulate(struct vcpu *v, gpa_t gpa)
{
	struct insn_env env = {.ctx = v,
			       .reg = env_reg,
			       .set_reg = env_set_reg,
			       .access = env_access,
			       .rip = vmcs_read_nw(VMCS_GUEST_RIP),
			       .rflags = vmcs_read_nw(VMCS_GUEST_RFLAGS)};
	u64 flags = env.rflags;
	enum insn_result result;
	enum emul_result done;
	struct insn i;

	if (!decode(v, env.rip, &i, &result))
		return RESUME;
	if (result != INSN_OK)
		return not_decoded(v, gpa, result);
	done = insn_emulate(&i, &env);
	if (done == EMUL_FAULT)
		return RESUME;
	if (env.rflags != flags)
		vmcs_write_nw(VMCS_GUEST_RFLAGS, env.rflags);
	if (done == EMUL_DONE)
		insn_advance_by(v, i.length);
	return RESUME;
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
	return mmio_emulate(v, gpa);
}

/* EPT01 is L0's own work. */
enum exit_action exit_ept_misconfig(struct vcpu *v)
{
	return exit_unexpected(v, EXIT_EPT_MISCONFIG);
}
