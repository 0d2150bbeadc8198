/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exit qualification and instruction information of instructions with operands: displacement, scale, base,
 * index, segment, registers. L1 decodes its L2's operands from these alone. SDM "Information for VM Exits Due
 * to Instruction Execution".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: instruction information";

#define ADDR64   (2u << 7)
#define REGISTER (1u << 10)
#define SEG(n)   ((u32)(n) << 15)
#define NO_INDEX (1u << 22)
#define INDEX(r) ((u32)(r) << 18)
#define BASE(r)  ((u32)(r) << 23)
#define NO_BASE  (1u << 27)
#define REG1(r)  ((u32)(r) << 3)
#define REG2(r)  ((u32)(r) << 28)
#define KIND(n)  ((u32)(n) << 28)

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12 };
enum { ES, CS, SS, DS, FS, GS };

extern u64 l2_operand[4]; /* named by the assembly */
u64 l2_operand[4];

/* One instruction each; it never gets past it. */
#define L2(name, insn)                                                                                       \
	extern void l2_##name(void);                                                                         \
	asm(".pushsection .text\nl2_" #name ":\n\t" insn "\n\tud2\n.popsection");

L2(base_disp8, "vmptrld 0x10(%rax)")
L2(base_index, "vmptrld -8(%rbx,%rcx,4)")
L2(base_disp32, "vmclear 0x12345(%r12)")
L2(stack, "vmptrst 0x20(%rsp)")
L2(frame, "vmptrst (%rbp)")
L2(absolute_gs, "vmptrld %gs:0x1000")
L2(index_only, "vmptrld 0x40(,%rsi,8)")
L2(rip_relative, "vmptrld l2_operand+8(%rip)")
L2(address_32, "vmptrld 0x10(%ebx)")
L2(vmread_reg, "vmread %rdx, %rcx")
L2(vmread_mem, "vmread %r9, 8(%rsi)")
L2(vmwrite_reg, "vmwrite %r12, %rdi")
L2(invept, "invept 0x18(%rax), %rbx")
L2(invvpid, "invvpid (%rdx), %r8")
L2(vmxon, "vmxon 4(%rdi)")
L2(rdrand64, "rdrand %r12")
L2(rdrand32, "rdrand %ecx")
L2(rdseed16, "rdseed %dx")
L2(sgdt, "sgdt 0x30(%rbx)")
L2(sidt, "sidt 0x30(%rsi)")
L2(lgdt, "lgdt (%rdi)")
L2(lidt, "lidt (%r8)")
L2(str_reg, "str %r9d")
L2(sldt_mem, "sldt 2(%rax)")
L2(ltr_reg, "ltr %cx")
L2(lldt_reg, "lldt %dx")

struct row {
	const char *name;
	l2_fn *fn;
	u32 reason;
	u64 qual;
	u32 info, mask; /* mask: the bits that are defined for this form */
	u64 proc2;
};

#define M_MEM (3u | 7u << 7 | REGISTER | SEG(7) | NO_INDEX | BASE(15) | NO_BASE)
#define M_IDX (M_MEM | INDEX(15))
#define M_NOB (M_MEM & ~BASE(15))
#define PLAIN (ADDR64 | SEG(DS) | NO_INDEX)

/* clang-format off */
static const struct row rows[] = {
	{"base-disp8", l2_base_disp8, EXIT_VMPTRLD, 0x10, PLAIN | BASE(RAX), M_MEM & ~3u, 0},
	{"base-index-scale", l2_base_index, EXIT_VMPTRLD, -8ul, 2 | ADDR64 | SEG(DS) | INDEX(RCX) | BASE(RBX), M_IDX, 0},
	{"base-disp32", l2_base_disp32, EXIT_VMCLEAR, 0x12345, PLAIN | BASE(R12), M_MEM & ~3u, 0},
	{"stack-base", l2_stack, EXIT_VMPTRST, 0x20, ADDR64 | SEG(SS) | NO_INDEX | BASE(RSP), M_MEM & ~3u, 0},
	{"frame-base", l2_frame, EXIT_VMPTRST, 0, ADDR64 | SEG(SS) | NO_INDEX | BASE(RBP), M_MEM & ~3u, 0},
	{"absolute-gs", l2_absolute_gs, EXIT_VMPTRLD, 0x1000, ADDR64 | SEG(GS) | NO_INDEX | NO_BASE, M_NOB & ~3u, 0},
	{"index-only", l2_index_only, EXIT_VMPTRLD, 0x40, 3 | ADDR64 | SEG(DS) | INDEX(RSI) | NO_BASE, (M_NOB | INDEX(15)), 0},
	{"address-size-32", l2_address_32, EXIT_VMPTRLD, 0x10, 1u << 7 | SEG(DS) | NO_INDEX | BASE(RBX), M_MEM & ~3u, 0},
	{"vmread-register", l2_vmread_reg, EXIT_VMREAD, 0, REGISTER | REG1(RCX) | REG2(RDX), REGISTER | REG1(15) | REG2(15), 0},
	{"vmread-memory", l2_vmread_mem, EXIT_VMREAD, 8, PLAIN | BASE(RSI) | REG2(R9), (M_MEM & ~3u) | REG2(15), 0},
	{"vmwrite-register", l2_vmwrite_reg, EXIT_VMWRITE, 0, REGISTER | REG1(R12) | REG2(RDI), REGISTER | REG1(15) | REG2(15), 0},
	{"invept", l2_invept, EXIT_INVEPT, 0x18, PLAIN | BASE(RAX) | REG2(RBX), (M_MEM & ~3u) | REG2(15), 0},
	{"invvpid", l2_invvpid, EXIT_INVVPID, 0, PLAIN | BASE(RDX) | REG2(R8), (M_MEM & ~3u) | REG2(15), 0},
	{"vmxon", l2_vmxon, EXIT_VMXON, 4, PLAIN | BASE(RDI), M_MEM & ~3u, 0},
	{"rdrand-64", l2_rdrand64, EXIT_RDRAND, 0, REG1(R12) | 2u << 11, REG1(15) | 3u << 11, PROC2_RDRAND},
	{"rdrand-32", l2_rdrand32, EXIT_RDRAND, 0, REG1(RCX) | 1u << 11, REG1(15) | 3u << 11, PROC2_RDRAND},
	{"rdseed-16", l2_rdseed16, EXIT_RDSEED, 0, REG1(RDX), REG1(15), PROC2_RDSEED}, /* Bochs: wrong size (Q48) */
	{"sgdt", l2_sgdt, EXIT_GDTR_IDTR, 0x30, PLAIN | BASE(RBX) | KIND(0), (M_MEM & ~3u) | KIND(3), PROC2_DESC_TABLE},
	{"sidt", l2_sidt, EXIT_GDTR_IDTR, 0x30, PLAIN | BASE(RSI) | KIND(1), (M_MEM & ~3u) | KIND(3), PROC2_DESC_TABLE},
	{"lgdt", l2_lgdt, EXIT_GDTR_IDTR, 0, PLAIN | BASE(RDI) | KIND(2), (M_MEM & ~3u) | KIND(3), PROC2_DESC_TABLE},
	{"lidt", l2_lidt, EXIT_GDTR_IDTR, 0, PLAIN | BASE(R8) | KIND(3), (M_MEM & ~3u) | KIND(3), PROC2_DESC_TABLE},
	{"str-register", l2_str_reg, EXIT_LDTR_TR, 0, REGISTER | REG1(R9) | KIND(1), REGISTER | REG1(15) | KIND(3), PROC2_DESC_TABLE},
	{"sldt-memory", l2_sldt_mem, EXIT_LDTR_TR, 2, PLAIN | BASE(RAX) | KIND(0), (M_MEM & ~3u) | KIND(3), PROC2_DESC_TABLE},
	{"ltr-register", l2_ltr_reg, EXIT_LDTR_TR, 0, REGISTER | REG1(RCX) | KIND(3), REGISTER | REG1(15) | KIND(3), PROC2_DESC_TABLE},
	{"lldt-register", l2_lldt_reg, EXIT_LDTR_TR, 0, REGISTER | REG1(RDX) | KIND(2), REGISTER | REG1(15) | KIND(3), PROC2_DESC_TABLE},
};
/* clang-format on */

static void check(const struct row *row)
{
	struct vm_result r;
	char name[48];

	l2_prepare(row->fn);
	vmcs_set_bits(VMCS_PROC2_CTL, row->proc2);
	r = l2_launch();
	expect_exit(row->name, r, row->reason);
	format_text(name, sizeof(name), "%s-qualification", row->name);
	expect_eq(name, r.qual, row->qual);
	format_text(name, sizeof(name), "%s-information", row->name);
	expect_eq(name, r.insn_info & row->mask, row->info);
}

/* RIP-relative: the qualification is displacement plus the next RIP, that is the address itself. */
static void rip_relative(void)
{
	struct vm_result r;

	l2_prepare(l2_rip_relative);
	r = l2_launch();
	expect_exit("rip-relative", r, EXIT_VMPTRLD);
	expect_eq("rip-relative-qualification", r.qual, addr_of(&l2_operand[1]));
	expect_eq("rip-relative-information", r.insn_info & M_NOB & ~3u,
		  ADDR64 | SEG(DS) | NO_INDEX | NO_BASE);
}

void test_main(void)
{
	if (!vmx_available() || !vmx_start())
		return;
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		if (proc2_has(rows[i].proc2))
			check(&rows[i]);
		else
			skip(rows[i].name, "control not offered");
	}
	rip_relative();
}
