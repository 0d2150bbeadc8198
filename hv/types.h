/* SPDX-License-Identifier: Apache-2.0 */
/* Basic types, and one address type for each world so that the compiler keeps them apart. Compiles on the
 * host too. */
#ifndef NIDUS_HV_TYPES_H
#define NIDUS_HV_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
typedef int32_t s32;

/* Only the translators (mm/l1mem, nested/ept12) turn one into the other. */
typedef struct {
	u64 v;
} hpa_t; /* machine address */
typedef struct {
	u64 v;
} gpa_t; /* address as L1 sees memory */
typedef struct {
	u64 v;
} ngpa_t; /* address as L2 sees memory */

#define HPA(x)  ((hpa_t){(x)})
#define GPA(x)  ((gpa_t){(x)})
#define NGPA(x) ((ngpa_t){(x)})

#define PAGE_SIZE  4096ull
#define PAGE_SHIFT 12
#define PAGE_MASK  (~(PAGE_SIZE - 1))
#define KIB        1024ull
#define MIB        (1024 * KIB)
#define GIB        (1024 * MIB)

#define BIT(n)                (1ull << (n))
#define BIT32(n)              (1u << (n))
#define MASK(n)               (BIT(n) - 1)
#define ARRAY_SIZE(a)         (sizeof(a) / sizeof((a)[0]))
#define ALIGN_UP(x, a)        (((x) + (a)-1) & ~((a)-1))
#define ALIGN_DOWN(x, a)      ((x) & ~((a)-1))
#define MIN(a, b)             ((a) < (b) ? (a) : (b))
#define MAX(a, b)             ((a) > (b) ? (a) : (b))
#define likely(x)             __builtin_expect(!!(x), 1)
#define unlikely(x)           __builtin_expect(!!(x), 0)
#define container_of(p, t, m) ((t *)(void *)((char *)(p)-offsetof(t, m)))

/*
 * L0 maps all physical memory at its own address (boot/entry.S, mm/hostpt), so a machine address and a
 * pointer are one number. Guest RAM stands in that map as user pages: a pointer to it may be followed only
 * between stac and clac (mm/guest_copy).
 */
static inline void *hpa_ptr(hpa_t a)
{
	return (void *)(uintptr_t)a.v;
}

static inline hpa_t ptr_hpa(const void *p)
{
	return HPA((u64)(uintptr_t)p);
}

#endif
