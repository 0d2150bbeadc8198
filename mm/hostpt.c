/* SPDX-License-Identifier: Apache-2.0 */
/*
 * L0's page tables: one for all CPUs. Tables stand in ordinary L0 memory; entries above the leaves allow
 * everything and the leaves decide. SDM "4-Level Paging and 5-Level Paging".
 */
#include "mm/hostpt.h"
#include "hv/cpu.h"
#include "hv/lib.h"
#include "hv/panic.h"
#include "hv/spinlock.h"
#include "hv/x86.h"
#include "mm/palloc.h"
#include "mm/pte.h"

#define PT_PAT_4K BIT(7)
#define PT_PAT_2M BIT(12)
#define PT_ADDR   0x000ffffffffff000ull
#define PT_TABLE  (PTE_P | PTE_RW | PTE_US)
#define PT_UC     (PTE_PCD | PTE_PWT)   /* PAT entry 3 */
#define PT_WC_4K  (PT_PAT_4K | PTE_PWT) /* PAT entry 5, see hv/cpu.c */

#define SIZE_2M (2 * MIB)

extern char image_start[], rodata_start[], data_start[], image_end[], boot_stack_guard[];

static u64 *root;
static u64 nx; /* PTE_XD, or 0 where the CPU (or firmware) has it off */
static u64 top_mapped;
static struct spinlock lock;

static u64 *table_of(u64 entry)
{
	return hpa_ptr(HPA(entry & PT_ADDR));
}

static u64 *new_table(void)
{
	hpa_t a;

	if (!palloc(0, PAGE_TABLE, &a))
		panic("no memory for L0's page tables");
	return memset(hpa_ptr(a), 0, PAGE_SIZE);
}

static unsigned index_of(u64 va, unsigned level)
{
	return (unsigned)(va >> (PAGE_SHIFT + 9 * (level - 1))) & 511;
}

/* A 2 MiB leaf becomes 512 leaves of the same rights. */
static void split(u64 *entry)
{
	u64 *t = new_table();
	u64 flags = *entry & ~(PT_ADDR | PTE_PS);
	u64 base = *entry & PT_ADDR & ~(SIZE_2M - 1);

	if (*entry & PT_PAT_2M)
		flags |= PT_PAT_4K;
	for (u64 i = 0; i < 512; i++)
		t[i] = base + i * PAGE_SIZE + flags;
	*entry = ptr_hpa(t).v | PT_TABLE;
}

/* The entry of `va` at `level` (1: 4 KiB, 2: 2 MiB); tables on the way are made, a large page on the way is
 * split. */
static u64 *entry_of(u64 va, unsigned level)
{
	u64 *t = root;

	for (unsigned l = 4; l > level; l--) {
		u64 *e = &t[index_of(va, l)];

		if (!(*e & PTE_P))
			*e = ptr_hpa(new_table()).v | PT_TABLE;
		else if (l == 2 && (*e & PTE_PS))
			split(e);
		t = table_of(*e);
	}
	return &t[index_of(va, level)];
}

static void set_page(u64 va, u64 flags)
{
	*entry_of(va, 1) = va | flags;
	asm volatile("invlpg (%0)" : : "r"(va) : "memory");
}

static void map_large(u64 start, u64 end)
{
	for (u64 a = start; a < end; a += SIZE_2M)
		*entry_of(a, 2) = a | PTE_P | PTE_RW | PTE_A | PTE_D | PTE_PS | nx;
}

static void protect(const char *start, const char *end, u64 flags)
{
	for (u64 a = (uintptr_t)start; a < (uintptr_t)end; a += PAGE_SIZE)
		set_page(a, flags | PTE_P | PTE_A | PTE_D);
}

void hostpt_init(const struct memmap *map, u64 top)
{
	top = MAX(MAX(top, memmap_ram_top(map)), 4 * GIB);
	nx = cpuid(0x80000000, 0).eax > 0x80000000 && cpuid(0x80000001, 0).edx & BIT32(20) ? PTE_XD : 0;
	root = new_table();
	top_mapped = ALIGN_UP(top, SIZE_2M);
	map_large(0, top_mapped);
	protect(image_start, rodata_start, 0);
	protect(rodata_start, data_start, nx);
	protect(data_start, image_end, PTE_RW | nx);
	set_page(0, 0);
	set_page((uintptr_t)boot_stack_guard, 0);
	hostpt_load();
}

void hostpt_load(void)
{
	u32 features = cpuid(0, 0).eax >= 7 ? cpuid(7, 0).ebx : 0;
	u64 cr4 = read_cr4();

	if (nx)
		wrmsr(MSR_EFER, rdmsr(MSR_EFER) | EFER_NXE);
	write_cr0(read_cr0() | CR0_WP);
	write_cr3(ptr_hpa(root).v);
	if (features & BIT32(7))
		cr4 |= CR4_SMEP;
	if (features & BIT32(20))
		cr4 |= CR4_SMAP;
	write_cr4(cr4);
}

/* Guest ranges never share 2 MiB with guards or the image, so one flag in each large leaf is all. */
void hostpt_set_guest(hpa_t a, u64 size, bool guest)
{
	BUG_ON((a.v | size) & (SIZE_2M - 1));
	spin_lock(&lock);
	for (u64 va = a.v; va < a.v + size; va += SIZE_2M) {
		u64 *e = entry_of(va, 2);

		if (!(*e & PTE_PS))
			*e = va | PTE_P | PTE_RW | PTE_A | PTE_D | PTE_PS |
			     nx; /* was split once; whole again */
		*e = guest ? *e | PTE_US : *e & ~PTE_US;
	}
	write_cr3(ptr_hpa(root).v);
	spin_unlock(&lock);
}

void hostpt_guard(const void *page)
{
	spin_lock(&lock);
	set_page((uintptr_t)page, 0);
	spin_unlock(&lock);
}

void hostpt_make_code(const void *start, size_t size)
{
	spin_lock(&lock);
	protect(start, (const char *)start + size, 0);
	spin_unlock(&lock);
}

u64 *hostpt_window(const void *page)
{
	u64 *entry;

	spin_lock(&lock);
	entry = entry_of((uintptr_t)page, 1);
	spin_unlock(&lock);
	return entry;
}

void hostpt_window_set(u64 *entry, const void *page, hpa_t to)
{
	*entry = to.v | PTE_P | PTE_RW | PTE_A | PTE_D | nx;
	asm volatile("invlpg (%0)" : : "r"(page) : "memory");
}

static void *map_io(hpa_t a, u64 size, u64 cache)
{
	spin_lock(&lock);
	for (u64 va = a.v & PAGE_MASK; va < a.v + size; va += PAGE_SIZE)
		set_page(va, PTE_P | PTE_RW | PTE_A | PTE_D | cache | nx);
	spin_unlock(&lock);
	return hpa_ptr(a);
}

void hostpt_need(hpa_t a, u64 size)
{
	spin_lock(&lock);
	for (u64 va = a.v & PAGE_MASK; va < a.v + size; va += PAGE_SIZE)
		if (va >= top_mapped)
			set_page(va, PTE_P | PTE_RW | PTE_A | PTE_D | nx);
	spin_unlock(&lock);
}

void *hostpt_map_device(hpa_t a, u64 size)
{
	return map_io(a, size, PT_UC);
}

void *hostpt_map_framebuffer(hpa_t a, u64 size)
{
	return map_io(a, size, PT_WC_4K);
}

/*
 * A page that changed from guest to L0 may still stand as a user page in another CPU's TLB. The fault itself
 * has dropped that translation; the access is repeated when the tables in memory allow it.
 */
bool hostpt_spurious_fault(u64 va, u64 error)
{
	u64 *t = root, e = 0;

	for (unsigned l = 4; l > 0; l--) {
		e = t[index_of(va, l)];
		if (!(e & PTE_P))
			return false;
		if (l == 1 || (l == 2 && (e & PTE_PS)))
			break;
		t = table_of(e);
	}
	if (va >> 47 || (e & PTE_US) || (error & PF_FETCH) || ((error & PF_WRITE) && !(e & PTE_RW)))
		return false;
	asm volatile("invlpg (%0)" : : "r"(va) : "memory");
	return true;
}

hpa_t hostpt_root(void)
{
	return ptr_hpa(root);
}
