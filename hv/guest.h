/* SPDX-License-Identifier: Apache-2.0 */
/* One L1 guest: its memory, vCPUs and devices. Created on the boot CPU before any vCPU runs. */
#ifndef NIDUS_HV_GUEST_H
#define NIDUS_HV_GUEST_H

#include "hv/options.h"
#include "hv/types.h"
#include "mm/l1mem.h"

#define GUESTS_MAX 16
#define VCPUS_MAX  32 /* per guest; APIC ids are the vCPU indexes, below 255 */

struct vcpu;
struct machine;
struct personality;

/* First state of vCPU 0 as a loader leaves it. */
struct entry_state {
	enum { ENTRY_REAL, ENTRY_PROTECTED, ENTRY_LONG } mode;
	u64 rip, rsp, cr3;
	u64 rax, rbx, rsi;
	u64 gdt_base; /* ENTRY_PROTECTED, ENTRY_LONG: flat segments: CS 0x10, others 0x18, GDT there */
	u16 gdt_limit;
};

struct guest_module {
	hpa_t start;
	u64 size;
	const char *cmdline;
	enum module_role role;
};

struct guest {
	u16 id;
	char name[GUEST_NAME_MAX];
	struct guest_desc desc; /* of the kernel module */
	const char *cmdline;
	unsigned nr_modules; /* without the kernel; in the loader's order */
	struct guest_module kernel, module[32];
	struct l1mem mem;
	struct ept ept01;
	u64 eptp01;
	struct ept
		ept01_apic; /* EPT01 and the APIC-access page: for L1 itself in xAPIC mode, never for an L2 */
	void *apic_page;    /* hv/apicv; NULL: not used */
	unsigned nr_vcpus;
	struct vcpu *vcpu[VCPUS_MAX];
	struct machine *machine; /* hv/dev: everything that is not a CPU */
	bool pic_output; /* atomic: INTR of its PIC pair, as vCPU 0's LINT0 and a CPU without APIC see it */
	const struct personality *personality; /* hv/personality.h; NULL: the bare processor */
	void *partition;                       /* its state */
	bool console_prefix;
	u32 ended; /* atomic: 0 runs, 1 ending, 2 ended */
	u32 running_vcpus;
	char reason[64];          /* "exit 0", "triple-fault", "killed: ..." */
	u32 status;               /* the V of "exit V", 1 for every other reason */
	struct entry_state entry; /* of vCPU 0, as the loader of the last (re)start left it */
	bool restart;             /* asked for while ending */
	u64 started_tsc;
};

extern struct guest *guests[GUESTS_MAX];
extern unsigned nr_guests;

/* Create and start every guest the modules describe (boot CPU, all CPUs in VMX root). Bad ones are reported
 * and left out. */
void guests_start(void);
/* End a guest; any of its vCPUs, on any CPU, or a device. The first reason counts. Takes effect when each
 * vCPU passes its event gate. */
void guest_end(struct guest *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same with the reason "exit CODE". */
void guest_exit(struct guest *g, u32 code);
/* Reset asked for by the guest (0xcf9, keyboard controller, port 0x92): a restart, or the end "reset" with
 * restart=off. */
void guest_reset(struct guest *g);

/* hv/load_*.c: recognise by the header, load into guest memory. False: err says why ("" = not this kind).
 * `image` is the module in host memory. */
bool load_linux(struct guest *g, struct entry_state *out, char *err, size_t err_size);
bool load_multiboot1(struct guest *g, struct entry_state *out, char *err, size_t err_size);
bool load_multiboot2(struct guest *g, struct entry_state *out, char *err, size_t err_size);

#endif
