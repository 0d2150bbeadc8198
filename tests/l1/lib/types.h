/* SPDX-License-Identifier: Apache-2.0 */
/* Integer types and small helpers of the L1 library. No hardware access here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

#define PAGE_SIZE     4096ul
#define PAGE_2M       0x200000ul
#define PAGE_1G       0x40000000ul
#define MAX_CPUS      16
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BIT(n)        (1ul << (n))

void *memcpy(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);
int memcmp(const void *a, const void *b, size_t n);
int strcmp(const char *a, const char *b);
size_t strlen(const char *s);

static inline u64 addr_of(const volatile void *p)
{
	return (u64)(uintptr_t)p;
}

/* The library maps physical memory one to one, so an address is a pointer. */
static inline void *ptr_to(u64 addr)
{
	asm("" : "+r"(addr)); /* low addresses are real here: keep the compiler from reasoning about null */
	return (void *)(uintptr_t)addr;
}
