/* SPDX-License-Identifier: Apache-2.0 */
/* The few C library functions L0 needs (the compiler may call the mem* ones by itself). */
#ifndef NIDUS_HV_LIB_H
#define NIDUS_HV_LIB_H

#include "hv/types.h"

void *memcpy(void *dst, const void *src, size_t n);
void *memmove(void *dst, const void *src, size_t n);
void *memset(void *dst, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
size_t strnlen(const char *s, size_t n);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);
/* Copy at most n - 1 characters and always end with NUL. Returns false when `src` did not fit. */
bool str_copy(char *dst, size_t n, const char *src);

/* a * b / c without losing bits in between; all ones when the result does not fit. */
static inline u64 mul_div(u64 a, u64 b, u64 c)
{
	u64 lo, hi;

	asm("mul %3" : "=a"(lo), "=d"(hi) : "a"(a), "r"(b) : "cc");
	if (hi >= c)
		return ~0ull;
	asm("div %2" : "+a"(lo), "+d"(hi) : "r"(c) : "cc");
	return lo;
}

#endif
