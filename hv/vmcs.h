/* SPDX-License-Identifier: Apache-2.0 */
/* VMCS encodings, control bits, and typed access to the current VMCS. A failing VMREAD/VMWRITE is L0's own
 * bug. */
#ifndef NIDUS_HV_VMCS_H
#define NIDUS_HV_VMCS_H

#include "hv/panic.h"
#include "hv/types.h"
#include "hv/vmcs_fields.def"

enum vmcs_field {
#define X(width, name, enc, member, cap) VMCS_##name = (enc),
	VMCS_FIELDS(X)
#undef X
};

/* SDM "Pin-Based VM-Execution Controls". */
#define PIN_EXT_INTR BIT32(0)
#define PIN_NMI      BIT32(3)
#define PIN_VNMI     BIT32(5)
#define PIN_TIMER    BIT32(6)
#define PIN_POSTED   BIT32(7)

/* SDM "Processor-Based VM-Execution Controls". */
#define PROC_INTR_WINDOW BIT32(2)
#define PROC_TSC_OFFSET  BIT32(3)
#define PROC_HLT         BIT32(7)
#define PROC_INVLPG      BIT32(9)
#define PROC_MWAIT       BIT32(10)
#define PROC_RDPMC       BIT32(11)
#define PROC_RDTSC       BIT32(12)
#define PROC_CR3_LOAD    BIT32(15)
#define PROC_CR3_STORE   BIT32(16)
#define PROC_TERTIARY    BIT32(17)
#define PROC_CR8_LOAD    BIT32(19)
#define PROC_CR8_STORE   BIT32(20)
#define PROC_TPR_SHADOW  BIT32(21)
#define PROC_NMI_WINDOW  BIT32(22)
#define PROC_MOV_DR      BIT32(23)
#define PROC_UNCOND_IO   BIT32(24)
#define PROC_IO_BITMAPS  BIT32(25)
#define PROC_MTF         BIT32(27)
#define PROC_MSR_BITMAPS BIT32(28)
#define PROC_MONITOR     BIT32(29)
#define PROC_PAUSE       BIT32(30)
#define PROC_SECONDARY   BIT32(31)

/* SDM "Secondary Processor-Based VM-Execution Controls". */
#define SEC_APIC_ACCESSES BIT32(0)
#define SEC_EPT           BIT32(1)
#define SEC_DESC_TABLE    BIT32(2)
#define SEC_RDTSCP        BIT32(3)
#define SEC_X2APIC        BIT32(4)
#define SEC_VPID          BIT32(5)
#define SEC_WBINVD        BIT32(6)
#define SEC_UNRESTRICTED  BIT32(7)
#define SEC_APIC_REGS     BIT32(8)
#define SEC_VID           BIT32(9)
#define SEC_PLE           BIT32(10)
#define SEC_RDRAND        BIT32(11)
#define SEC_INVPCID       BIT32(12)
#define SEC_VMFUNC        BIT32(13)
#define SEC_SHADOW_VMCS   BIT32(14)
#define SEC_ENCLS         BIT32(15)
#define SEC_RDSEED        BIT32(16)
#define SEC_PML           BIT32(17)
#define SEC_VE            BIT32(18)
#define SEC_CONCEAL_VMX   BIT32(19)
#define SEC_XSAVES        BIT32(20)
#define SEC_MBE           BIT32(22)
#define SEC_TSC_SCALING   BIT32(25)
#define SEC_WAITPKG       BIT32(26)

/* SDM "VM-Exit Controls". */
#define EXIT_SAVE_DEBUG    BIT32(2)
#define EXIT_HOST_64       BIT32(9)
#define EXIT_LOAD_PERF     BIT32(12)
#define EXIT_ACK_INTR      BIT32(15)
#define EXIT_SAVE_PAT      BIT32(18)
#define EXIT_LOAD_PAT      BIT32(19)
#define EXIT_SAVE_EFER     BIT32(20)
#define EXIT_LOAD_EFER     BIT32(21)
#define EXIT_SAVE_TIMER    BIT32(22)
#define EXIT_CLEAR_BNDCFGS BIT32(23)
#define EXIT_LOAD_CET      BIT32(28)

/* SDM "VM-Entry Controls". */
#define ENTRY_LOAD_DEBUG   BIT32(2)
#define ENTRY_IA32E        BIT32(9)
#define ENTRY_SMM          BIT32(10)
#define ENTRY_DUAL_MONITOR BIT32(11)
#define ENTRY_LOAD_PERF    BIT32(13)
#define ENTRY_LOAD_PAT     BIT32(14)
#define ENTRY_LOAD_EFER    BIT32(15)
#define ENTRY_LOAD_BNDCFGS BIT32(16)
#define ENTRY_LOAD_CET     BIT32(20)

/* SDM "VM-Entry Interruption-Information Field"; the same layout in exit and IDT-vectoring information. */
#define INTR_VECTOR(info)   ((u8)(info))
#define INTR_TYPE(info)     (((info) >> 8) & 7)
#define INTR_TYPE_EXT       0u
#define INTR_TYPE_NMI       2u
#define INTR_TYPE_HW_EXC    3u
#define INTR_TYPE_SOFT_INT  4u
#define INTR_TYPE_PRIV_SOFT 5u
#define INTR_TYPE_SOFT_EXC  6u
#define INTR_TYPE_OTHER     7u
#define INTR_ERROR_CODE     BIT32(11)
#define INTR_NMI_UNBLOCK    BIT32(12)
#define INTR_VALID          BIT32(31)

/* SDM "Guest Non-Register State". */
#define INTR_STATE_STI    BIT32(0)
#define INTR_STATE_MOV_SS BIT32(1)
#define INTR_STATE_SMI    BIT32(2)
#define INTR_STATE_NMI    BIT32(3)
enum activity { ACTIVITY_ACTIVE, ACTIVITY_HLT, ACTIVITY_SHUTDOWN, ACTIVITY_WAIT_SIPI };

#define AR_UNUSABLE BIT32(16)

/* SDM "VMX Basic Exit Reasons". */
enum exit_reason {
	EXIT_EXCEPTION_NMI = 0,
	EXIT_EXT_INTR,
	EXIT_TRIPLE_FAULT,
	EXIT_INIT,
	EXIT_SIPI,
	EXIT_INTR_WINDOW = 7,
	EXIT_NMI_WINDOW,
	EXIT_TASK_SWITCH,
	EXIT_CPUID,
	EXIT_GETSEC,
	EXIT_HLT,
	EXIT_INVD,
	EXIT_INVLPG,
	EXIT_RDPMC,
	EXIT_RDTSC,
	EXIT_RSM,
	EXIT_VMCALL,
	EXIT_VMCLEAR,
	EXIT_VMLAUNCH,
	EXIT_VMPTRLD,
	EXIT_VMPTRST,
	EXIT_VMREAD,
	EXIT_VMRESUME,
	EXIT_VMWRITE,
	EXIT_VMXOFF,
	EXIT_VMXON,
	EXIT_CR_ACCESS,
	EXIT_MOV_DR,
	EXIT_IO,
	EXIT_RDMSR,
	EXIT_WRMSR,
	EXIT_BAD_GUEST_STATE,
	EXIT_BAD_MSR_LOAD,
	EXIT_MWAIT = 36,
	EXIT_MTF,
	EXIT_MONITOR = 39,
	EXIT_PAUSE,
	EXIT_MCE_DURING_ENTRY,
	EXIT_TPR_THRESHOLD = 43,
	EXIT_APIC_ACCESS,
	EXIT_VIRTUALIZED_EOI,
	EXIT_GDTR_IDTR,
	EXIT_LDTR_TR,
	EXIT_EPT_VIOLATION,
	EXIT_EPT_MISCONFIG,
	EXIT_INVEPT,
	EXIT_RDTSCP,
	EXIT_TIMER,
	EXIT_INVVPID,
	EXIT_WBINVD,
	EXIT_XSETBV,
	EXIT_APIC_WRITE,
	EXIT_RDRAND,
	EXIT_INVPCID,
	EXIT_VMFUNC,
	EXIT_ENCLS,
	EXIT_RDSEED,
	EXIT_PML_FULL,
	EXIT_XSAVES,
	EXIT_XRSTORS,
	EXIT_REASONS,
};
#define EXIT_REASON_FAILED_ENTRY BIT32(31)

#define FIELD_WIDTH(f) (((unsigned)(f) >> 13) & 3) /* 0: 16 bits, 1: 64, 2: 32, 3: natural */

struct cpu;

/* One hardware VMCS region. */
struct vmcs {
	void *page;
	struct cpu *cpu;    /* where it is active (not cleared), NULL: nowhere */
	bool steady_bitmap; /* nothing changes in its MSR bitmap's page while it is active */
	u32 vp_id;          /* with vm_id: which vCPU of that guest */
	u64 vm_id;          /* not 0: the hypervisor below may carry out TLB flush calls of this guest */
};

/* Allocate the region and put the revision id into it. False: no memory. */
bool vmcs_create(struct vmcs *vmcs);
/* What stands in the first word of a region; 0: the revision of VMX_BASIC. */
extern u32 vmcs_format;
/* VMCLEAR; only on the CPU where it is active. */
void vmcs_clear(struct vmcs *vmcs);
/* Make it current on this CPU (VMPTRLD only when it is not). Everything that switches VMCSs goes through
 * here. */
void vmcs_load(struct vmcs *vmcs);
void vmcs_dump(void);
/* Access every field that vmcs_read_sure and its like are used for; a panic tells when one is missing. Once,
 * with some VMCS current, before they are. */
void vmcs_prove(void);

/* A VMREAD, VMWRITE, VMPTRLD or VMCLEAR of L0 failed: a field this CPU lacks, or no current VMCS. Called from
 * the far end of the site's branch. */
void vmcs_access_failed(void) __attribute__((noreturn));

/*
 * Each site, the instruction "1:" and the branch behind it, is listed in section .vmcs_sites, for messages
 * and so that hyperv/client can put another instruction there: the address in the low bits, and in the others
 * which field it is, when the compiler knows. tools/vmx-sites finds instructions that are not listed.
 */
#define VMCS_SITE_SHIFT   22 /* the image ends below 4 MiB (linker.ld) */
#define VMCS_KEY(f)       (((f) >> 13 & 3) << 7 | ((f) >> 10 & 3) << 5 | ((f) >> 1 & 31))
#define VMCS_KEY_FIELD(k) (((k) >> 7 & 3) << 13 | ((k) >> 5 & 3) << 10 | ((k)&31) << 1)
#define VMCS_KEYS         512u
#define VMCS_KEY_ANY      511u /* no field has this number */
#define VMCS_KEY_LOAD     510u /* VMPTRLD of this_cpu()->current */
#define VMCS_KEY_CLEAR    509u /* VMCLEAR of the operand at RDI */

extern const u32 vmcs_sites[], vmcs_sites_end[];

/* A site that cannot fail has no branch, but so many prefixes, which mean nothing there, in front. */
#define VMCS_SURE_PREFIX 0x3e
#define VMCS_BRANCH      6u /* bytes of jbe rel32 */

static inline u8 *vmcs_site_code(u32 record)
{
	return hpa_ptr(HPA(record & MASK(VMCS_SITE_SHIFT)));
}

/* The branch of the site at `code`; NULL: it has none. */
static inline const u8 *vmcs_site_branch(const u8 *code)
{
	const u8 *at = code + 3;

	if (*code == VMCS_SURE_PREFIX)
		return NULL;
	while (at[0] != 0x0f || at[1] != 0x86)
		at++;
	return at;
}

/*
 * One line each, because the compiler takes an asm's lines for its size when it decides what to inline. The
 * prefixes of a sure access make room for what hyperv/client writes (a load or store, with memory a call);
 * the DS segment is that of no override in 64-bit mode.
 */
asm(".macro vmcs_record value:req\n"
    ".pushsection .vmcs_sites, \"a\"\n"
    ".long \\value\n"
    ".popsection\n"
    ".endm\n"
    ".macro vmcs_sure insn:req, from:req, to:req, key:req, padding=6\n"
    "1: .fill \\padding, 1, 0x3e\n"
    "\\insn \\from, \\to\n"
    "vmcs_record 1b+\\key\n"
    ".endm");

/* The failing path stands far away: an access costs the instruction and one branch. */
#define VMCS_SITE                                                                                            \
	"jbe 2f\n\t"                                                                                         \
	".pushsection .text.unlikely, \"ax\"\n"                                                              \
	"2:\tcall vmcs_access_failed\n\t"                                                                    \
	".popsection\n\t"                                                                                    \
	"vmcs_record 1b+%c[key]"
#define VMCS_SITE_KEY(k) [key] "i"((k) << VMCS_SITE_SHIFT)

#define VMCS_READ_SITE(value, field, k)                                                                      \
	asm volatile("1: vmread %[f], %[v]\n\t" VMCS_SITE                                                    \
		     : [v] "=r"(value)                                                                       \
		     : [f] "r"((u64)(field)), VMCS_SITE_KEY(k)                                               \
		     : "cc", "memory")
/* `how`: volatile; with inline too, the compiler takes it for as small as it is. */
#define VMCS_WRITE_SITE(value, field, k) VMCS_WRITE_AS(volatile, value, field, k)
#define VMCS_WRITE_AS(how, value, field, k)                                                                  \
	asm how("1: vmwrite %[v], %[f]\n\t" VMCS_SITE                                                        \
		:                                                                                            \
		: [v] "r"(value), [f] "r"((u64)(field)), VMCS_SITE_KEY(k)                                    \
		: "cc", "memory")

/* Code that is built for size has one copy a file. */
#ifdef __OPTIMIZE_SIZE__
#define VMCS_INLINE inline
#else
#define VMCS_INLINE inline __attribute__((always_inline))
#endif

static VMCS_INLINE u64 vmcs_read_raw(const u32 field)
{
	u64 value;

	if (__builtin_constant_p(field))
		VMCS_READ_SITE(value, field, VMCS_KEY(field));
	else
		VMCS_READ_SITE(value, field, VMCS_KEY_ANY);
	return value;
}

static VMCS_INLINE void vmcs_write_raw(const u32 field, u64 value)
{
	if (__builtin_constant_p(field))
		VMCS_WRITE_SITE(value, field, VMCS_KEY(field));
	else
		VMCS_WRITE_SITE(value, field, VMCS_KEY_ANY);
}

/*
 * Without the failing path, for the hottest places: fields that every processor with VMX has (vmcs_prove has
 * tried them), where a VMCS is current beyond doubt, such as behind an exit. _by: a register has the number
 * already.
 */
static inline __attribute__((always_inline)) u64 vmcs_read_sure_by(u64 in_register, const u32 field)
{
	u64 value;

	asm volatile("vmcs_sure vmread, %[f], %[v], %c[key]"
		     : [v] "=r"(value)
		     : [f] "r"(in_register), VMCS_SITE_KEY(VMCS_KEY(field))
		     : "cc");
	return value;
}

static inline __attribute__((always_inline)) void vmcs_write_sure_by(u64 in_register, const u32 field,
								     u64 value)
{
	asm volatile("vmcs_sure vmwrite, %[v], %[f], %c[key]"
		     :
		     : [v] "r"(value), [f] "r"(in_register), VMCS_SITE_KEY(VMCS_KEY(field))
		     : "cc");
}

static inline __attribute__((always_inline)) u64 vmcs_read_sure(const u32 field)
{
	return vmcs_read_sure_by(field, field);
}

static inline __attribute__((always_inline)) void vmcs_write_sure(const u32 field, u64 value)
{
	vmcs_write_sure_by(field, field, value);
}

/* The same to and from memory (not on the stack, see hyperv/patch.c), which is written and read 8 bytes wide
 * whatever the field's width: a narrower field takes the low ones and reads as zero-extended. */
static inline __attribute__((always_inline)) void vmcs_read_to(const u32 f, void *to)
{
	asm volatile("vmcs_sure vmread, %[f], \"%[v]\", %c[key], 2"
		     : [v] "=m"(*(u64 *)to)
		     : [f] "r"((u64)f), VMCS_SITE_KEY(VMCS_KEY(f))
		     : "cc");
}

static inline __attribute__((always_inline)) void vmcs_write_from(const u32 f, const void *from)
{
	asm volatile("vmcs_sure vmwrite, \"%[v]\", %[f], %c[key], 2"
		     :
		     : [f] "r"((u64)f), [v] "m"(*(const u64 *)from), VMCS_SITE_KEY(VMCS_KEY(f))
		     : "cc");
}

#define VMCS_ACCESS(bits, w)                                                                                 \
	static inline __attribute__((always_inline)) u##bits vmcs_read##w(const enum vmcs_field f)           \
	{                                                                                                    \
		return (u##bits)vmcs_read_raw(f);                                                            \
	}                                                                                                    \
	static inline __attribute__((always_inline)) void vmcs_write##w(const enum vmcs_field f, u##bits v)  \
	{                                                                                                    \
		vmcs_write_raw(f, v);                                                                        \
	}
VMCS_ACCESS(16, 16)
VMCS_ACCESS(32, 32)
VMCS_ACCESS(64, 64)
VMCS_ACCESS(64, _nw)
#undef VMCS_ACCESS

/* The accessor must fit the field: checked by the compiler. */
#define CHECK_WIDTH(f, w) _Static_assert(FIELD_WIDTH(f) == (w), "width of VMCS field")
#define vmcs_read16(f)                                                                                       \
	({                                                                                                   \
		CHECK_WIDTH(f, 0);                                                                           \
		vmcs_read16(f);                                                                              \
	})
#define vmcs_read64(f)                                                                                       \
	({                                                                                                   \
		CHECK_WIDTH(f, 1);                                                                           \
		vmcs_read64(f);                                                                              \
	})
#define vmcs_read32(f)                                                                                       \
	({                                                                                                   \
		CHECK_WIDTH(f, 2);                                                                           \
		vmcs_read32(f);                                                                              \
	})
#define vmcs_read_nw(f)                                                                                      \
	({                                                                                                   \
		CHECK_WIDTH(f, 3);                                                                           \
		vmcs_read_nw(f);                                                                             \
	})
#define vmcs_write16(f, v)                                                                                   \
	({                                                                                                   \
		CHECK_WIDTH(f, 0);                                                                           \
		vmcs_write16(f, v);                                                                          \
	})
#define vmcs_write64(f, v)                                                                                   \
	({                                                                                                   \
		CHECK_WIDTH(f, 1);                                                                           \
		vmcs_write64(f, v);                                                                          \
	})
#define vmcs_write32(f, v)                                                                                   \
	({                                                                                                   \
		CHECK_WIDTH(f, 2);                                                                           \
		vmcs_write32(f, v);                                                                          \
	})
#define vmcs_write_nw(f, v)                                                                                  \
	({                                                                                                   \
		CHECK_WIDTH(f, 3);                                                                           \
		vmcs_write_nw(f, v);                                                                         \
	})

#endif
