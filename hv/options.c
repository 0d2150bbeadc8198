/* SPDX-License-Identifier: Apache-2.0 */
/* Both command-line languages of design "Boot contract", each as a table of keys. Pure. */
#include "hv/options.h"
#include "hv/lib.h"

#define BAUD_MAX    115200
#define VCPUS_LIMIT 255

/* A piece of the command line: not NUL-terminated. */
struct text {
	const char *s;
	size_t n;
};

static bool text_is(struct text t, const char *word)
{
	return t.n == strlen(word) && strncmp(t.s, word, t.n) == 0;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Next word at *s, or n == 0 at the end. */
static struct text next_word(const char **s)
{
	struct text t;

	while (is_space(**s))
		(*s)++;
	t.s = *s;
	while (**s && !is_space(**s))
		(*s)++;
	t.n = (size_t)(*s - t.s);
	return t;
}

/* Cut `t` at the first `c`: what stands before it; *rest is what follows, or n == 0 and s == NULL without
 * one. */
static struct text cut(struct text t, char c, struct text *rest)
{
	for (size_t i = 0; i < t.n; i++) {
		if (t.s[i] == c) {
			*rest = (struct text){t.s + i + 1, t.n - i - 1};
			return (struct text){t.s, i};
		}
	}
	*rest = (struct text){NULL, 0};
	return t;
}

/* Index of the word in a NULL-terminated list, or -1. */
static int choice(struct text t, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (text_is(t, words[i]))
			return i;
	return -1;
}

static const char *const on_off[] = {"off", "on", NULL};
static const char *const endings[] = {"poweroff", "reboot", "halt", NULL};

static bool set_bool(struct text v, bool *out)
{
	int i = choice(v, on_off);

	*out = i == 1;
	return i >= 0;
}

static unsigned digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

/* Digits at the start of `t`, decimal or 0x; *used: how many characters. False: none, or too large for 64
 * bits. */
static bool leading_number(struct text t, u64 *out, size_t *used)
{
	unsigned base = t.n > 2 && t.s[0] == '0' && (t.s[1] | 0x20) == 'x' ? 16 : 10;
	size_t first = base == 16 ? 2 : 0, i;
	u64 v = 0;

	for (i = first; i < t.n && digit_value(t.s[i]) < base; i++)
		if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, digit_value(t.s[i]), &v))
			return false;
	*out = v;
	*used = i;
	return i > first;
}

static bool parse_u32(struct text t, u32 max, u32 *out)
{
	size_t used;
	u64 v;

	if (!leading_number(t, &v, &used) || used != t.n || v > max)
		return false;
	*out = (u32)v;
	return true;
}

bool parse_size(const char *s, size_t n, u64 *out)
{
	static const char suffixes[] = "kmgt";
	size_t used;
	unsigned shift;
	u64 v;

	if (!leading_number((struct text){s, n}, &v, &used))
		return false;
	if (used == n) {
		*out = v;
		return true;
	}
	for (shift = 0; suffixes[shift]; shift++)
		if ((s[used] | 0x20) == suffixes[shift])
			break;
	if (!suffixes[shift] || used + 1 != n)
		return false;
	shift = 10 * (shift + 1);
	*out = v << shift;
	return *out >> shift == v;
}

/* --- the hypervisor's own options --- */

typedef bool option_fn(struct options *opt, struct text value);

static bool console_com1(struct options *opt, struct text *rest)
{
	struct text after, baud = cut(*rest, ',', &after);
	u32 v;

	opt->com1 = true;
	if (!rest->s || baud.n == 0 || baud.s[0] < '0' || baud.s[0] > '9')
		return true;
	if (!parse_u32(baud, BAUD_MAX, &v) || v < 2 || BAUD_MAX % v)
		return false;
	opt->baud = v;
	*rest = after;
	return true;
}

static bool opt_console(struct options *opt, struct text value)
{
	static const char *const names[] = {"com1", "vga", "fb", "none", NULL};

	opt->com1 = opt->vga = opt->fb = false;
	opt->screen_given = true;
	do {
		struct text rest, word = cut(value, ',', &rest);

		switch (choice(word, names)) {
		case 0:
			if (!console_com1(opt, &rest))
				return false;
			break;
		case 1:
			opt->vga = true;
			break;
		case 2:
			opt->fb = true;
			break;
		case 3:
			break;
		default:
			return false;
		}
		value = rest;
	} while (value.s);
	return true;
}

static bool opt_loglevel(struct options *opt, struct text value)
{
	static const char *const levels[] = {"error", "warn", "info", "debug", NULL};
	int i = choice(value, levels);

	if (i >= 0)
		opt->loglevel = (enum log_level)i;
	return i >= 0;
}

static bool opt_when_done(struct options *opt, struct text value)
{
	int i = choice(value, endings);

	if (i >= 0)
		opt->when_done = (enum ending)i;
	return i >= 0;
}

static bool opt_panic(struct options *opt, struct text value)
{
	int i = choice(value, endings);

	if (i >= 0)
		opt->on_panic = (enum ending)i;
	return i >= 0;
}

static bool opt_mitigations(struct options *opt, struct text value)
{
	opt->mitigations = !text_is(value, "off");
	return text_is(value, "off") || text_is(value, "auto");
}

static bool opt_hv_guest(struct options *opt, struct text value)
{
	opt->hv_guest = !text_is(value, "off");
	return text_is(value, "off") || text_is(value, "auto");
}

static bool opt_trace(struct options *opt, struct text value)
{
	return set_bool(value, &opt->trace);
}

static const struct {
	const char *name;
	option_fn *set;
} option_table[] = {
	{"console", opt_console},   {"loglevel", opt_loglevel},       {"when-done", opt_when_done},
	{"panic", opt_panic},       {"mitigations", opt_mitigations}, {"trace", opt_trace},
	{"hv-guest", opt_hv_guest},
};

static const struct options defaults = {
	.com1 = true,
	.baud = BAUD_MAX,
	.loglevel = LOG_INFO,
	.when_done = END_POWEROFF,
	.on_panic = END_HALT,
	.mitigations = true,
	.hv_guest = true,
};

/* False: *err is set. */
static bool parse_option(struct text word, struct options *opt, struct option_error *err)
{
	struct text value, key = cut(word, '=', &value);

	for (unsigned i = 0; i < ARRAY_SIZE(option_table); i++) {
		struct options before = *opt;

		if (!text_is(key, option_table[i].name))
			continue;
		if (value.s && option_table[i].set(opt, value))
			return true;
		*opt = before;
		format(err->text, sizeof(err->text), "option %.*s: bad value \"%.*s\"", (int)MIN(key.n, 40u),
		       key.s, (int)MIN(value.n, 60u), value.n ? value.s : "");
		err->fatal = true;
		return false;
	}
	format(err->text, sizeof(err->text), "unknown option \"%.*s\" ignored", (int)MIN(word.n, 100u),
	       word.s);
	err->fatal = false;
	return false;
}

/* Loaders like `qemu -kernel` put the file's name in front. */
static bool looks_like_path(struct text t)
{
	bool path = false;

	for (size_t i = 0; i < t.n; i++) {
		if (t.s[i] == '=')
			return false;
		path |= t.s[i] == '/' || t.s[i] == '.';
	}
	return path;
}

unsigned options_parse(const char *cmdline, struct options *opt, struct option_error *err, unsigned max)
{
	unsigned errors = 0;
	struct text word;

	*opt = defaults;
	for (bool first = true; (word = next_word(&cmdline)).n; first = false) {
		struct option_error e;

		if (first && looks_like_path(word))
			continue;
		if (!parse_option(word, opt, &e) && errors < max)
			err[errors++] = e;
	}
	return errors;
}

/* --- a guest module's description --- */

/* NULL, or what is wrong with the value. */
typedef const char *guest_fn(struct guest_desc *d, struct text v);

/* Names stand in console lines: printable, no blanks (a word has none), no quotes. */
static const char *key_guest(struct guest_desc *d, struct text v)
{
	if (v.n == 0)
		return "empty name";
	if (v.n >= sizeof(d->name))
		return "name too long (31 characters)";
	for (size_t i = 0; i < v.n; i++)
		if (v.s[i] <= ' ' || v.s[i] >= 0x7f || v.s[i] == '"' || v.s[i] == '\'')
			return "bad character in name";
	memcpy(d->name, v.s, v.n);
	d->name[v.n] = '\0';
	return NULL;
}

static const char *key_role(struct guest_desc *d, struct text v)
{
	static const char *const roles[] = {"kernel", "initrd", "module", "disk", "net", NULL};
	int i = choice(v, roles);

	if (i < 0)
		return "unknown role";
	d->role = (enum module_role)i;
	return NULL;
}

static const char *key_mem(struct guest_desc *d, struct text v)
{
	return parse_size(v.s, v.n, &d->mem) && d->mem ? NULL : "bad size";
}

static const char *key_vcpus(struct guest_desc *d, struct text v)
{
	return parse_u32(v, VCPUS_LIMIT, &d->vcpus) && d->vcpus ? NULL : "bad number";
}

/* "0,2-5" */
static const char *key_cpus(struct guest_desc *d, struct text v)
{
	memset(d->cpus, 0, sizeof(d->cpus));
	do {
		struct text rest, item = cut(v, ',', &rest), to;
		struct text from = cut(item, '-', &to);
		u32 a, b;

		if (!parse_u32(from, CPU_LIST_MAX - 1, &a) || (to.s && !parse_u32(to, CPU_LIST_MAX - 1, &b)))
			return "bad CPU list";
		if (!to.s)
			b = a;
		if (b < a)
			return "bad CPU list";
		for (; a <= b; a++)
			d->cpus[a / 64] |= BIT(a % 64);
		v = rest;
	} while (v.s);
	return NULL;
}

static const char *key_console(struct guest_desc *d, struct text v)
{
	if (text_is(v, "raw"))
		d->console = CONSOLE_RAW;
	else if (text_is(v, "prefix"))
		d->console = CONSOLE_PREFIX;
	else
		return "neither raw nor prefix";
	return NULL;
}

#define FLAG_KEY(member)                                                                                     \
	static const char *key_##member(struct guest_desc *d, struct text v)                                 \
	{                                                                                                    \
		return set_bool(v, &d->member) ? NULL : "neither on nor off";                                \
	}
FLAG_KEY(vmx)
FLAG_KEY(hyperv)
FLAG_KEY(pmu)
FLAG_KEY(apicv)
FLAG_KEY(entry_trace)
FLAG_KEY(restart)

static const struct {
	const char *name;
	guest_fn *set;
} guest_keys[] = {
	{"guest", key_guest},
	{"role", key_role},
	{"mem", key_mem},
	{"vcpus", key_vcpus},
	{"cpus", key_cpus},
	{"vmx", key_vmx},
	{"hyperv", key_hyperv},
	{"pmu", key_pmu},
	{"apicv", key_apicv},
	{"console", key_console},
	{"entry-trace", key_entry_trace},
	{"restart", key_restart},
};

static const struct guest_desc guest_defaults = {
	.role = ROLE_KERNEL,
	.mem = 256 * MIB,
	.vcpus = 1,
	.vmx = true,
	.apicv = true,
	.restart = true,
	.cmdline = "",
	.path = "",
};

static bool parse_guest_key(struct text word, struct guest_desc *d, char *err, size_t err_size)
{
	struct text value, key = cut(word, '=', &value);
	const char *wrong = value.s ? "unknown key" : "not KEY=VALUE";

	for (unsigned i = 0; value.s && i < ARRAY_SIZE(guest_keys); i++) {
		if (!text_is(key, guest_keys[i].name))
			continue;
		wrong = guest_keys[i].set(d, value);
		if (!wrong)
			return true;
		break;
	}
	format(err, err_size, "%.*s: %s", (int)MIN(word.n, 80u), word.s, wrong);
	return false;
}

/* The name first, so that an error in front of guest= can still be told with it. */
static void find_name(const char *s, struct guest_desc *out)
{
	struct text word;

	while ((word = next_word(&s)).n && !text_is(word, "--")) {
		struct text value, key = cut(word, '=', &value);

		if (text_is(key, "guest") && value.s && key_guest(out, value))
			out->name[0] = '\0';
	}
}

bool guest_desc_parse(const char *string, struct guest_desc *out, char *err, size_t err_size)
{
	struct text word;

	*out = guest_defaults;
	find_name(string, out);
	for (bool first = true; (word = next_word(&string)).n; first = false) {
		struct text value;

		if (text_is(word, "--")) {
			out->cmdline = *string ? string + 1 : string;
			break;
		}
		cut(word, '=', &value);
		if (first && !value.s)
			out->path = word.s;
		else if (!parse_guest_key(word, out, err, err_size))
			return false;
	}
	return true;
}
