/* SPDX-License-Identifier: Apache-2.0 */
/* Formatting and the polled COM1 output. Uses no interrupt and no memory of its own but one lock. */
#include <stdarg.h>

#include "print.h"
#include "x86.h"

#define COM1      0x3f8
#define LSR_EMPTY 0x20
#define LSR_IDLE  0x40

struct sink {
	char *out;
	size_t size, used;
};

struct spec {
	u32 width;
	bool left, zero, is_long;
};

static volatile u8 print_lock;

static void put_serial(char c)
{
	for (u32 tries = 0; !(inb(COM1 + 5) & LSR_EMPTY) && tries < 100000; tries++)
		;
	outb(COM1, (u8)c);
}

static void put(struct sink *s, char c)
{
	if (s->used + 1 < s->size)
		s->out[s->used++] = c;
}

static void put_padded(struct sink *s, const char *text, size_t len, const struct spec *f)
{
	size_t pad = f->width > len ? f->width - len : 0;

	for (size_t i = 0; !f->left && i < pad; i++)
		put(s, f->zero ? '0' : ' ');
	for (size_t i = 0; i < len; i++)
		put(s, text[i]);
	for (size_t i = 0; f->left && i < pad; i++)
		put(s, ' ');
}

static void put_number(struct sink *s, u64 v, u32 base, bool negative, const struct spec *f)
{
	char text[24];
	size_t n = sizeof(text);

	do {
		text[--n] = "0123456789abcdef"[v % base];
		v /= base;
	} while (v);
	if (negative)
		text[--n] = '-';
	put_padded(s, text + n, sizeof(text) - n, f);
}

static const char *parse_spec(const char *p, struct spec *f)
{
	*f = (struct spec){0};
	for (; *p == '-' || *p == '0'; p++) {
		f->left |= *p == '-';
		f->zero |= *p == '0';
	}
	for (; *p >= '0' && *p <= '9'; p++)
		f->width = f->width * 10 + (u32)(*p - '0');
	for (; *p == 'l' || *p == 'z'; p++)
		f->is_long = true;
	return p;
}

static void put_signed(struct sink *s, s64 v, const struct spec *f)
{
	put_number(s, v < 0 ? 0 - (u64)v : (u64)v, 10, v < 0, f);
}

static void format_into(struct sink *s, const char *p, va_list *args)
{
	struct spec f;
	const char *text;
	char c;

	for (; *p; p++) {
		if (*p != '%') {
			put(s, *p);
			continue;
		}
		p = parse_spec(p + 1, &f);
		switch (*p) {
		case 'c':
			c = (char)va_arg(*args, int);
			put_padded(s, &c, 1, &f);
			break;
		case 's':
			text = va_arg(*args, const char *);
			put_padded(s, text, strlen(text), &f);
			break;
		case 'd':
			put_signed(s, f.is_long ? va_arg(*args, s64) : va_arg(*args, int), &f);
			break;
		case 'u':
		case 'x':
			put_number(s, f.is_long ? va_arg(*args, u64) : va_arg(*args, u32),
				   *p == 'u' ? 10 : 16, false, &f);
			break;
		case 'p':
			put_number(s, va_arg(*args, u64), 16, false, &f);
			break;
		default:
			put(s, *p);
		}
	}
	s->out[s->used] = 0;
}

void print_init(void)
{
	outb(COM1 + 1, 0);
	outb(COM1 + 3, 0x80);
	outb(COM1 + 0, 1);
	outb(COM1 + 1, 0);
	outb(COM1 + 3, 3);
	outb(COM1 + 2, 7);
}

void print(const char *format, ...)
{
	char text[256];
	struct sink s = {text, sizeof(text), 0};
	va_list args;

	va_start(args, format);
	format_into(&s, format, &args);
	va_end(args);
	while (__atomic_exchange_n(&print_lock, 1, __ATOMIC_ACQUIRE))
		cpu_pause();
	for (size_t i = 0; i < s.used; i++)
		put_serial(text[i]);
	__atomic_store_n(&print_lock, 0, __ATOMIC_RELEASE);
}

size_t format_text(char *out, size_t size, const char *format, ...)
{
	struct sink s = {out, size, 0};
	va_list args;

	va_start(args, format);
	format_into(&s, format, &args);
	va_end(args);
	return s.used;
}

void print_flush(void)
{
	for (u32 tries = 0; !(inb(COM1 + 5) & LSR_IDLE) && tries < 100000; tries++)
		;
}
