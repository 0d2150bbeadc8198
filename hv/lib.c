/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and string functions. The mem* ones are also called by the compiler; they must not call themselves.
 */
#include "hv/lib.h"

void *memcpy(void *dst, const void *src, size_t n)
{
	void *d = dst;
	size_t words = n / 8, rest = n % 8;

	asm volatile("rep movsq" : "+D"(d), "+S"(src), "+c"(words) : : "memory");
	asm volatile("rep movsb" : "+D"(d), "+S"(src), "+c"(rest) : : "memory");
	return dst;
}

static void copy_backwards(void *dst, const void *src, size_t n)
{
	u8 *d = (u8 *)dst + n - 1;
	const u8 *s = (const u8 *)src + n - 1;

	asm volatile("std; rep movsb; cld" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
}

void *memmove(void *dst, const void *src, size_t n)
{
	if (n && (uintptr_t)dst - (uintptr_t)src < n)
		copy_backwards(dst, src, n);
	else
		memcpy(dst, src, n);
	return dst;
}

void *memset(void *dst, int c, size_t n)
{
	void *d = dst;
	u64 word = (u8)c * 0x0101010101010101ull;
	size_t words = n / 8, rest = n % 8;

	asm volatile("rep stosq" : "+D"(d), "+c"(words) : "a"(word) : "memory");
	asm volatile("rep stosb" : "+D"(d), "+c"(rest) : "a"(word) : "memory");
	return dst;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const u8 *x = a, *y = b;

	for (size_t i = 0; i < n; i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

size_t strlen(const char *s)
{
	return strnlen(s, SIZE_MAX);
}

size_t strnlen(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && s[i])
		i++;
	return i;
}

int strcmp(const char *a, const char *b)
{
	return strncmp(a, b, SIZE_MAX);
}

int strncmp(const char *a, const char *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (a[i] != b[i])
			return (u8)a[i] < (u8)b[i] ? -1 : 1;
		if (!a[i])
			break;
	}
	return 0;
}

bool str_copy(char *dst, size_t n, const char *src)
{
	size_t len = strlen(src);
	size_t take = MIN(len, n - 1);

	if (n == 0)
		return false;
	memcpy(dst, src, take);
	dst[take] = '\0';
	return take == len;
}
