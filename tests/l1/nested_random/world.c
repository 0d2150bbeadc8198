/* SPDX-License-Identifier: Apache-2.0 */
/* L2's memory and its valid states. L2 reaches ten pages and nothing else, so that whatever it does is the
 * same on every machine and does not hurt L1. */
#include "random.h"

#define AR_CODE64 0xa09b
#define AR_CODE32 0xc09b
#define AR_DATA   0xc093
#define AR_DPL3   0x60
#define AR_TSS    0x008b
#define AR_VM86   0x00f3
#define SEGMENT   (LOW >> 4)
#define TIME      2000000 /* ends an L2 that stays; what an L0 below does in L2's time is far less */

struct pages pages;
u32 world_needs;
static u64 root;
static u64 saved_cr0, saved_cr4, saved_efer, saved_pat;

/* The instruction of a case: all are decoded in every mode, one way or another. */
struct snippet {
	u8 bytes[6];
	u32 proc; /* the controls without which Bochs and a guest's CPUID disagree about the instruction */
};

/* clang-format off */
static const struct snippet snippets[] = {
	{{0x0f, 0x01, 0xc1}, 0},             /* vmcall */
	{{0xf4}, 0},                         /* hlt */
	{{0xf3, 0x90}, 0},                   /* pause */
	{{0x0f, 0xa2}, 0},                   /* cpuid */
	{{0x0f, 0x31}, 0},                   /* rdtsc */
	{{0x0f, 0x01, 0xf9}, 0},             /* rdtscp */
	{{0x0f, 0x33}, PROC_RDPMC},          /* rdpmc */
	{{0x0f, 0x08}, 0},                   /* invd */
	{{0x0f, 0x09}, 0},                   /* wbinvd */
	{{0x0f, 0x01, 0x3f}, 0},             /* invlpg (rdi) */
	{{0x0f, 0x32}, 0},                   /* rdmsr */
	{{0x0f, 0x30}, 0},                   /* wrmsr */
	{{0xe4, 0x80}, 0},                   /* in $0x80, al */
	{{0xec}, 0},                         /* in dx, al */
	{{0xed}, 0},                         /* in dx, eax */
	{{0xee}, 0},                         /* out al, dx */
	{{0x6c}, 0},                         /* insb */
	{{0x6e}, 0},                         /* outsb */
	{{0x0f, 0x20, 0xc0}, 0},             /* mov cr0, eax */
	{{0x0f, 0x22, 0xc0}, 0},             /* mov eax, cr0 */
	{{0x0f, 0x20, 0xd8}, 0},             /* mov cr3, eax */
	{{0x0f, 0x22, 0xd8}, 0},             /* mov eax, cr3 */
	{{0x0f, 0x20, 0xe0}, 0},             /* mov cr4, eax */
	{{0x0f, 0x22, 0xe0}, 0},             /* mov eax, cr4 */
	{{0x0f, 0x06}, 0},                   /* clts */
	{{0x0f, 0x01, 0xf0}, 0},             /* lmsw ax */
	{{0x0f, 0x01, 0xe0}, 0},             /* smsw ax */
	{{0x0f, 0x21, 0xf8}, 0},             /* mov dr7, eax */
	{{0x0f, 0x23, 0xf8}, 0},             /* mov eax, dr7 */
	{{0xcd, 0x20}, 0},                   /* int $0x20 */
	{{0xcc}, 0},                         /* int3 */
	{{0xf1}, 0},                         /* int1 */
	{{0x0f, 0x01, 0x07}, 0},             /* sgdt (rdi) */
	{{0x0f, 0x01, 0x17}, 0},             /* lgdt (rdi) */
	{{0x0f, 0x01, 0x1f}, 0},             /* lidt (rdi) */
	{{0x0f, 0x00, 0xc8}, 0},             /* str ax */
	{{0x0f, 0x00, 0xd0}, 0},             /* lldt ax */
	{{0x0f, 0x01, 0xd0}, 0},             /* xgetbv */
	{{0x0f, 0x01, 0xd1}, 0},             /* xsetbv */
	{{0x0f, 0xc7, 0xf0}, 0},             /* rdrand eax */
	{{0x0f, 0xc7, 0xf8}, 0},             /* rdseed eax */
	{{0x0f, 0x01, 0xc8}, PROC_MONITOR},  /* monitor */
	{{0x0f, 0x01, 0xc9}, PROC_MWAIT},    /* mwait */
	{{0x66, 0x0f, 0x38, 0x82, 0x07}, 0}, /* invpcid (rdi), rax */
	{{0x66, 0x0f, 0x38, 0x80, 0x07}, 0}, /* invept (rdi), rax */
	{{0x66, 0x0f, 0x38, 0x81, 0x07}, 0}, /* invvpid (rdi), rax */
	{{0x0f, 0x78, 0xc1}, 0},             /* vmread eax, ecx */
	{{0x0f, 0x79, 0xc1}, 0},             /* vmwrite ecx, eax */
	{{0x0f, 0x01, 0xc2}, 0},             /* vmlaunch */
	{{0x0f, 0x01, 0xc3}, 0},             /* vmresume */
	{{0x0f, 0x01, 0xc4}, 0},             /* vmxoff */
	{{0xf3, 0x0f, 0xc7, 0x37}, 0},       /* vmxon (rdi) */
	{{0x0f, 0xc7, 0x37}, 0},             /* vmptrld (rdi) */
	{{0x0f, 0xc7, 0x3f}, 0},             /* vmptrst (rdi) */
	{{0x0f, 0x01, 0xd4}, 0},             /* vmfunc */
	{{0x0f, 0x0b}, 0},                   /* ud2 */
	{{0xf7, 0xf1}, 0},                   /* div ecx */
	{{0x9d}, 0},                         /* popf */
	{{0xfa}, 0},                         /* cli */
	{{0xfb}, 0},                         /* sti */
	{{0x8e, 0xd0}, 0},                   /* mov eax, ss */
	{{0xeb, 0xfe}, 0},                   /* jmp . */
	{{0x0f, 0x34}, 0},                   /* sysenter */
	{{0x0f, 0x05}, 0},                   /* syscall */
	{{0xc7, 0x07, 1, 0, 0, 0}, 0},       /* movl $1, (rdi) */
	{{0xf0, 0xff, 0x07}, 0},             /* lock incl (rdi) */
};
/* clang-format on */

static const u8 leave[] = {0x0f, 0x01, 0xc1, 0xeb, 0xfe}; /* vmcall; jmp . */

void world_create(void)
{
	pages.entry_list = addr_of(page_alloc());
	pages.exit_list = addr_of(page_alloc());
	pages.apic = addr_of(page_alloc());
	pages.bitmap = addr_of(pages_alloc(2, PAGE_SIZE));
	pages.other_vmcs = vmcs_alloc();
	pages.log = addr_of(page_alloc());
	pages.eptp_list = addr_of(page_alloc());
	pages.ve = addr_of(page_alloc());
	root = ept_new();
	saved_cr0 = read_cr0();
	saved_cr4 = read_cr4();
	saved_efer = rdmsr(MSR_EFER);
	saved_pat = rdmsr(MSR_PAT);
}

/* --- memory --- */

static void put_idt64(void)
{
	u64 *gate = ptr_to(L2_IDT64), at = L2_HANDLER;

	for (u32 i = 0; i < 256; i++) {
		gate[2 * i] = (at & 0xffff) | 0x08ul << 16 | 0xee00ul << 32 | (at >> 16 & 0xffff) << 48;
		gate[2 * i + 1] = at >> 32;
	}
}

static void put_idt32(void)
{
	u64 *gate = ptr_to(L2_IDT32), at = L2_HANDLER;
	u32 *vector = ptr_to(L2_IVT);

	for (u32 i = 0; i < 256; i++) {
		gate[i] = (at & 0xffff) | 0x18ul << 16 | 0xee00ul << 32 | (at >> 16 & 0xffff) << 48;
		vector[i] = (u32)(SEGMENT << 16 | (L2_HANDLER - LOW));
	}
}

static void put_gdt(void)
{
	static const u64 descriptors[] = {
		0,
		0x00af9b000000ffff, /* 08: 64-bit code */
		0x00cf93000000ffff, /* 10: data */
		0x00cf9b000000ffff, /* 18: 32-bit code */
		0x00cff3000000ffff, /* 20: user data */
		0x00affb000000ffff, /* 28: 64-bit user code */
		0x00009b010000ffff, /* 30: 16-bit code */
	};
	u32 *tss = ptr_to(L2_TSS);

	memcpy(ptr_to(L2_GDT), descriptors, sizeof(descriptors));
	tss[1] = L2_DATA + 0xf00;
	tss[2] = 0x10;
}

static void put_tables(void)
{
	u64 *pdpt = ptr_to(L2_PDPTPAE);

	*(u64 *)ptr_to(L2_PML4) = L2_PDPT | PTE_RAM;
	*(u64 *)ptr_to(L2_PDPT) = L2_PD | PTE_RAM;
	*(u64 *)ptr_to(L2_PD) = PTE_RAM | PTE_PS;
	*(u32 *)ptr_to(L2_PD32) = PTE_RAM | PTE_PS;
	for (u32 i = 0; i < 4; i++)
		pdpt[i] = L2_PD | PTE_P;
}

static void zero(u64 at, u64 bytes)
{
	u64 count = bytes / 8;

	asm volatile("rep stosq" : "+D"(at), "+c"(count) : "a"(0ul) : "memory");
}

/* Harmless MSRs: the one list is for entries, and may be broken by a case, the other for exits. */
static void put_msr_list(u64 at)
{
	static const u32 msrs[] = {0xc0000081, 0xc0000083, 0xc0000084, MSR_KERNEL_GS_BASE};
	u64 *list = ptr_to(at);

	for (u32 i = 0; i < ARRAY_SIZE(msrs); i++) {
		list[2 * i] = msrs[i];
		list[2 * i + 1] = 0;
	}
}

static void reset_memory(void)
{
	zero(LOW, L2_END - LOW);
	put_idt64();
	put_idt32();
	put_gdt();
	put_tables();
	put_msr_list(pages.entry_list);
	put_msr_list(pages.exit_list);
	zero(addr_of(l2_msr_bitmap()), PAGE_SIZE);
	zero(pages.bitmap, 2 * PAGE_SIZE);
	zero(pages.apic, PAGE_SIZE);
	zero(pages.ve, PAGE_SIZE);
	*(u64 *)ptr_to(pages.eptp_list) = ept_pointer(root);
	for (u64 at = LOW; at < L2_END; at += PAGE_SIZE)
		ept_map(root, at, at, PAGE_SIZE, EPT_RWX | EPT_WB);
	invept(1, ept_pointer(root));
}

/* What an exit may have left in L1's registers. */
static void reset_l1(void)
{
	write_cr0(saved_cr0);
	write_cr4(saved_cr4);
	write_cr8(0);
	for (u32 msr = 0xc0000081; msr <= 0xc0000084; msr++) /* STAR to FMASK: SYSCALL goes by them */
		wrmsr(msr, 0);
	wrmsr(MSR_KERNEL_GS_BASE, 0);
	if (rdmsr(MSR_EFER) != saved_efer)
		wrmsr(MSR_EFER, saved_efer);
	if (rdmsr(MSR_PAT) != saved_pat)
		wrmsr(MSR_PAT, saved_pat);
}

/* --- modes --- */

static void set_segments(u16 code, u32 code_ar, u16 data, u32 data_ar, u32 limit, u64 base)
{
	for (u32 i = 0; i < 6; i++) {
		vmwrite(VMCS_GUEST_ES_SEL + 2 * i, i == 1 ? code : data);
		vmwrite(VMCS_GUEST_ES_AR + 2 * i, i == 1 ? code_ar : data_ar);
		vmwrite(VMCS_GUEST_ES_LIMIT + 2 * i, limit);
		vmwrite(VMCS_GUEST_ES_BASE + 2 * i, base);
	}
}

static void set_mode(u64 cr0, u64 cr3, u64 cr4, u64 efer, u64 idt, u32 idt_limit)
{
	vmwrite(VMCS_GUEST_CR0, cr0 | CR0_NE);
	vmwrite(VMCS_GUEST_CR3, cr3);
	vmwrite(VMCS_GUEST_CR4, cr4 | CR4_VMXE);
	vmwrite(VMCS_GUEST_EFER, efer);
	vmwrite(VMCS_GUEST_IDTR_BASE, idt);
	vmwrite(VMCS_GUEST_IDTR_LIMIT, idt_limit);
	if (!(efer & EFER_LMA))
		vmcs_clear_bits(VMCS_ENTRY_CTL, ENTRY_IA32E);
}

#define PROTECTED (CR0_PE | CR0_PG | CR0_WP)

static void enter_mode(enum mode mode)
{
	const u64 long_efer = EFER_LME | EFER_LMA;

	switch (mode) {
	case LONG:
		set_mode(PROTECTED, L2_PML4, CR4_PAE, long_efer, L2_IDT64, 0xfff);
		set_segments(0x08, AR_CODE64, 0x10, AR_DATA, ~0u, 0);
		break;
	case LONG_USER:
		set_mode(PROTECTED, L2_PML4, CR4_PAE, long_efer, L2_IDT64, 0xfff);
		set_segments(0x2b, AR_CODE64 | AR_DPL3, 0x23, AR_DATA | AR_DPL3, ~0u, 0);
		break;
	case COMPAT:
		set_mode(PROTECTED, L2_PML4, CR4_PAE, long_efer, L2_IDT64, 0xfff);
		set_segments(0x18, AR_CODE32, 0x10, AR_DATA, ~0u, 0);
		break;
	case PAGING:
		set_mode(PROTECTED, L2_PD32, CR4_PSE, 0, L2_IDT32, 0x7ff);
		set_segments(0x18, AR_CODE32, 0x10, AR_DATA, ~0u, 0);
		break;
	case PAE:
		set_mode(PROTECTED, L2_PDPTPAE, CR4_PAE, 0, L2_IDT32, 0x7ff);
		set_segments(0x18, AR_CODE32, 0x10, AR_DATA, ~0u, 0);
		for (u32 i = 0; i < 4; i++)
			vmwrite(VMCS_GUEST_PDPTE0 + 2 * i, L2_PD | PTE_P);
		break;
	case FLAT:
		set_mode(CR0_PE, 0, 0, 0, L2_IDT32, 0x7ff);
		set_segments(0x18, AR_CODE32, 0x10, AR_DATA, ~0u, 0);
		break;
	case REAL:
		set_mode(0, 0, 0, 0, L2_IVT, 0x3ff);
		set_segments(SEGMENT, 0x93, SEGMENT, 0x93, 0xffff, LOW);
		break;
	default:
		set_mode(PROTECTED, L2_PD32, CR4_PSE, 0, L2_IDT32, 0x7ff);
		set_segments(SEGMENT, AR_VM86, SEGMENT, AR_VM86, 0xffff, LOW);
		vmwrite(VMCS_GUEST_RFLAGS, BIT(17) | 2);
	}
}

/* --- the case --- */

static void set_registers(u64 offset)
{
	static const u32 msrs[] = {MSR_EFER, 0xc0000081,      0xc0000082,       MSR_FS_BASE,
				   MSR_PAT,  MSR_SYSENTER_CS, MSR_SYSENTER_ESP, 0xc0000084};
	static const u64 values[] = {
		0,   1, 0x11, 0x80000011, 0x80000031, 0x0007040600070406, 0x20, 0x500, 0x0000800000000000,
		~0ul};
	static const u16 ports[] = {0x80, 0x81, 0xed, 0xffff, 0x7fff, 0x8000};
	struct l2_regs *r = l2_regs();
	u64 value = values[rng_below(ARRAY_SIZE(values))];

	*r = (struct l2_regs){
		.rax = (u32)value,
		.rbx = L2_DATA - offset + 0x100,
		.rcx = msrs[rng_below(ARRAY_SIZE(msrs))],
		.rdx = rng_one_in(2) ? value >> 32 : ports[rng_below(ARRAY_SIZE(ports))],
		.rsi = L2_DATA - offset + 0x200,
		.rdi = rng_one_in(8) ? L2_END - offset : L2_DATA - offset + 0x100,
	};
}

static void put_code(bool show)
{
	const struct snippet *s = &snippets[rng_below(ARRAY_SIZE(snippets))];
	u8 *code = ptr_to(L2_CODE);
	u32 length = sizeof(s->bytes);

	while (length > 1 && !s->bytes[length - 1])
		length--;
	if (s->bytes[0] == 0xc7)
		length = sizeof(s->bytes);
	memcpy(code, s->bytes, length);
	memcpy(code + length, leave, sizeof(leave));
	memcpy(ptr_to(L2_HANDLER), leave, sizeof(leave));
	world_needs = s->proc;
	if (s->bytes[1] != 0x30 && s->bytes[1] != 0x32 && rng_one_in(3))
		l2_regs()->rcx =
			rng_below(3); /* XCR0 and divisions; as MSRs Bochs takes what no guest has (Q14) */
	if (show)
		print("code %02x %02x %02x %02x rcx %lx\n", code[0], code[1], code[2], code[3],
		      l2_regs()->rcx);
}

/* A quarter of the bits. */
static u64 few_bits(void)
{
	u64 half = rng();

	return half & rng();
}

/* Some of what makes instructions exit or exist. */
static void random_exits(void)
{
	const u64 proc = PROC_INVLPG | PROC_MWAIT | PROC_RDPMC | PROC_RDTSC | PROC_CR3_LOAD | PROC_CR3_STORE |
			 PROC_CR8_LOAD | PROC_CR8_STORE | PROC_MOV_DR | PROC_IO | PROC_MONITOR | PROC_PAUSE;
	const u64 proc2 = PROC2_DESC_TABLE | PROC2_WBINVD | PROC2_RDRAND | PROC2_RDSEED | PROC2_INVPCID |
			  PROC2_VMFUNC | PROC2_VE;

	vmcs_set_bits(VMCS_PROC_CTL, proc & rng() & ctl_may(VMCS_PROC_CTL));
	vmcs_set_bits(VMCS_PROC2_CTL, proc2 & rng() & ctl_may(VMCS_PROC2_CTL));
	if (rng_one_in(4))
		vmwrite(VMCS_CR0_GUEST_HOST_MASK, few_bits());
	if (rng_one_in(4))
		vmwrite(VMCS_CR4_GUEST_HOST_MASK, few_bits());
}

void world_reset(enum mode mode, bool show)
{
	u64 offset = mode == REAL || mode == VM86 ? LOW : 0;

	reset_l1();
	reset_memory();
	l2_prepare(NULL);
	enter_mode(mode);
	vmwrite(VMCS_GUEST_RIP, L2_CODE - offset);
	vmwrite(VMCS_GUEST_RSP, L2_DATA - offset + 0x800);
	vmwrite(VMCS_GUEST_GDTR_BASE, L2_GDT);
	vmwrite(VMCS_GUEST_GDTR_LIMIT, 0x37);
	vmwrite(VMCS_GUEST_TR_SEL, 0x40);
	vmwrite(VMCS_GUEST_TR_BASE, L2_TSS);
	vmwrite(VMCS_EPTP, ept_pointer(root));
	vmwrite(VMCS_EXCEPTION_BITMAP, ~0u);
	vmwrite(VMCS_IO_BITMAP_A, pages.bitmap);
	vmwrite(VMCS_IO_BITMAP_B, pages.bitmap + PAGE_SIZE);
	vmwrite(VMCS_VIRTUAL_APIC, pages.apic);
	vmwrite(VMCS_APIC_ACCESS, pages.apic);
	vmwrite(VMCS_TPR_THRESHOLD, 0);
	vmwrite(VMCS_VPID, 1);
	vmwrite(VMCS_TSC_MULTIPLIER, BIT(48));
	vmwrite(VMCS_EXIT_MSR_STORE, pages.exit_list);
	vmwrite(VMCS_EXIT_MSR_LOAD, pages.exit_list);
	vmwrite(VMCS_ENTRY_MSR_LOAD, pages.entry_list);
	vmwrite(VMCS_GUEST_PAT, saved_pat);
	vmwrite(VMCS_HOST_PAT, saved_pat);
	vmwrite(VMCS_XSS_BITMAP, 0);
	vmwrite(VMCS_PML_ADDRESS, pages.log);
	vmwrite(VMCS_PML_INDEX, 511); /* Q47: Bochs exits for every access once it is used up */
	vmwrite(VMCS_VMFUNC_CTL, 1);
	vmwrite(VMCS_EPTP_LIST, pages.eptp_list);
	vmwrite(VMCS_VE_INFO, pages.ve);
	vmwrite(VMCS_EPTP_INDEX, 0);
	vmwrite(VMCS_GUEST_INTR_STATUS, 0);
	for (u32 i = 0; i < 4; i++)
		vmwrite(VMCS_EOI_EXIT_BITMAP_0 + 2 * i, 0);
	vmwrite(VMCS_PLE_GAP, ~0u);
	vmwrite(VMCS_PLE_WINDOW, ~0u);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_TIMER);
	vmwrite(VMCS_PREEMPTION_TIMER, TIME);
	set_registers(offset);
	random_exits();
	put_code(show);
}
