/* SPDX-License-Identifier: Apache-2.0 */
/* Formatting, and log lines built on it. Never allocates; a line that is too long is cut. */
#include "hv/print.h"
#include "hv/console.h"
#include "hv/lib.h"

#define LOG_LINE_MAX 512

enum log_level log_level = LOG_INFO;

struct out {
	char *buf;
	size_t size, len; /* len counts what was wanted, also beyond size */
};

struct spec {
	bool zero, left, alt, upper;
	unsigned width;
	int precision; /* -1: none; only strings know it */
	unsigned longs;
};

static void put(struct out *o, char c)
{
	if (o->len + 1 < o->size)
		o->buf[o->len] = c;
	o->len++;
}

static void pad(struct out *o, char c, size_t n)
{
	while (n--)
		put(o, c);
}

/* `prefix` (sign or 0x) stands before zero padding and behind space padding. */
static void put_padded(struct out *o, const struct spec *s, const char *prefix, const char *text, size_t len)
{
	size_t all = len + strlen(prefix), fill = s->width > all ? s->width - all : 0;

	if (!s->left && !s->zero)
		pad(o, ' ', fill);
	while (*prefix)
		put(o, *prefix++);
	if (!s->left && s->zero)
		pad(o, '0', fill);
	for (size_t i = 0; i < len; i++)
		put(o, text[i]);
	if (s->left)
		pad(o, ' ', fill);
}

static void put_number(struct out *o, const struct spec *s, u64 v, unsigned base, const char *prefix)
{
	char digits[24];
	size_t i = sizeof(digits);
	const char *set = s->upper ? "0123456789ABCDEF" : "0123456789abcdef";

	do {
		digits[--i] = set[v % base];
		v /= base;
	} while (v);
	put_padded(o, s, prefix, digits + i, sizeof(digits) - i);
}

static void put_signed(struct out *o, const struct spec *s, s64 v)
{
	put_number(o, s, v < 0 ? 0 - (u64)v : (u64)v, 10, v < 0 ? "-" : "");
}

static void put_string(struct out *o, struct spec s, const char *text)
{
	if (!text)
		text = "(null)";
	s.zero = false;
	put_padded(o, &s, "", text, s.precision < 0 ? strlen(text) : strnlen(text, (size_t)s.precision));
}

static const char *parse_number(const char *f, unsigned *out)
{
	for (*out = 0; *f >= '0' && *f <= '9'; f++)
		*out = *out * 10 + (unsigned)(*f - '0');
	return f;
}

/* Everything between '%' and the conversion letter; returns the letter's place. */
static const char *parse_spec(const char *f, struct spec *s, va_list *ap)
{
	unsigned n;

	*s = (struct spec){.precision = -1};
	for (;; f++) {
		if (*f == '0')
			s->zero = true;
		else if (*f == '-')
			s->left = true;
		else if (*f == '#')
			s->alt = true;
		else
			break;
	}
	f = parse_number(f, &s->width);
	if (*f == '.' && f[1] == '*') {
		s->precision = va_arg(*ap, int);
		f += 2;
	} else if (*f == '.') {
		f = parse_number(f + 1, &n);
		s->precision = (int)n;
	}
	for (; *f == 'l' || *f == 'z'; f++)
		s->longs++;
	return f;
}

static void convert(struct out *o, char c, struct spec *s, va_list *ap)
{
	char one;

	switch (c) {
	case 'd':
	case 'i':
		put_signed(o, s, s->longs ? va_arg(*ap, s64) : va_arg(*ap, int));
		break;
	case 'u':
		put_number(o, s, s->longs ? va_arg(*ap, u64) : va_arg(*ap, u32), 10, "");
		break;
	case 'X':
		s->upper = true;
		/* fall through */
	case 'x':
		put_number(o, s, s->longs ? va_arg(*ap, u64) : va_arg(*ap, u32), 16, s->alt ? "0x" : "");
		break;
	case 'p':
		put_number(o, s, (uintptr_t)va_arg(*ap, void *), 16, "0x");
		break;
	case 's':
		put_string(o, *s, va_arg(*ap, const char *));
		break;
	case 'c':
		one = (char)va_arg(*ap, int);
		put_padded(o, s, "", &one, 1);
		break;
	default:
		put(o, c);
	}
}

int vformat(char *buf, size_t n, const char *fmt, va_list ap)
{
	struct out o = {.buf = buf, .size = n};
	va_list args;

	va_copy(args, ap);
	while (*fmt) {
		struct spec s;

		if (*fmt != '%') {
			put(&o, *fmt++);
			continue;
		}
		fmt = parse_spec(fmt + 1, &s, &args);
		if (!*fmt)
			break;
		convert(&o, *fmt++, &s, &args);
	}
	va_end(args);
	if (n)
		buf[MIN(o.len, n - 1)] = '\0';
	return (int)o.len;
}

int format(char *buf, size_t n, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vformat(buf, n, fmt, ap);
	va_end(ap);
	return len;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	static const char prefix[] = "nidus: ";
	char line[LOG_LINE_MAX];
	size_t len = sizeof(prefix) - 1;
	va_list ap;

	if (level > log_level)
		return;
	memcpy(line, prefix, len);
	va_start(ap, fmt);
	len += (size_t)vformat(line + len, sizeof(line) - len - 2, fmt, ap);
	va_end(ap);
	len = MIN(len, sizeof(line) - 3);
	line[len++] = '\r';
	line[len++] = '\n';
	console_write(line, len);
}
