/* SPDX-License-Identifier: Apache-2.0 */
/* The hypervisor's command line and a guest module's description (docs: README "Boot options"). Pure;
 * compiles on the host. */
#ifndef NIDUS_HV_OPTIONS_H
#define NIDUS_HV_OPTIONS_H

#include "hv/print.h"
#include "hv/types.h"

#define GUEST_NAME_MAX    32
#define GUEST_CMDLINE_MAX 2048
#define CPU_LIST_MAX      256

enum ending { END_POWEROFF, END_REBOOT, END_HALT };

struct options {
	bool com1, vga, fb, screen_given; /* console= ; screen_given: the user named consoles */
	u32 baud;
	enum log_level loglevel;
	enum ending when_done, on_panic;
	bool mitigations; /* false: off */
	bool hv_guest;    /* use Hyper-V's interface of the hypervisor below, if there is one */
	bool trace;
};

extern struct options options; /* boot/main.c; what the command line said */

/* What was wrong, as one line without the "nidus: " in front. */
struct option_error {
	char text[160];
	bool fatal; /* malformed value: stop cleanly; else a warning, go on */
};

/* Returns the number of errors and warnings written to err[] (at most max). *opt is complete in any case. */
unsigned options_parse(const char *cmdline, struct options *opt, struct option_error *err, unsigned max);

enum module_role { ROLE_KERNEL, ROLE_INITRD, ROLE_MODULE, ROLE_DISK, ROLE_NET };

/* One module's string, taken apart. A key that was not given holds the default of design "Boot contract". */
struct guest_desc {
	char name[GUEST_NAME_MAX]; /* "" when not given */
	enum module_role role;
	u64 mem; /* bytes */
	u32 vcpus;
	u64 cpus[CPU_LIST_MAX / 64]; /* bit set of physical CPU indexes; all zero: spread */
	bool vmx, hyperv, pmu, apicv, entry_trace, restart;
	enum { CONSOLE_AUTO, CONSOLE_RAW, CONSOLE_PREFIX } console;
	const char *cmdline; /* points into the string, behind " -- "; "" when there is none */
	const char *path; /* first word when it holds no '=' (GRUB leaves the file name out, QEMU gives it);
			     "" else */
};

/* Take `string` apart. False: err holds one line naming key and value ("mem=12Q: bad size"). */
bool guest_desc_parse(const char *string, struct guest_desc *out, char *err, size_t err_size);
/* "512M", "2G", "0x100000", "4096": bytes. False on bad digits, unknown suffix or overflow. */
bool parse_size(const char *s, size_t n, u64 *out);

#endif
