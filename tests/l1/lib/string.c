/* SPDX-License-Identifier: Apache-2.0 */
/* The few string functions that the compiler and the library need. */
#include "types.h"

void *memcpy(void *to, const void *from, size_t n)
{
	u8 *t = to;
	const u8 *f = from;

	while (n--)
		*t++ = *f++;
	return to;
}

void *memset(void *to, int byte, size_t n)
{
	u8 *t = to;

	while (n--)
		*t++ = (u8)byte;
	return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const u8 *p = a, *q = b;

	for (; n; n--, p++, q++)
		if (*p != *q)
			return *p - *q;
	return 0;
}

int strcmp(const char *a, const char *b)
{
	for (; *a && *a == *b; a++, b++)
		;
	return (u8)*a - (u8)*b;
}

size_t strlen(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}
