/* SPDX-License-Identifier: Apache-2.0 */
/* L1 guests: from modules to running vCPUs, and their ends. Which image a kernel is, the loaders find out
 * (hv/load_*). */
#include "hv/guest.h"
#include "boot/boot_info.h"
#include "hv/apicv.h"
#include "hv/cpu.h"
#include "hv/guest_console.h"
#include "hv/guest_life.h"
#include "hv/lib.h"
#include "hv/personality.h"
#include "hv/poweroff.h"
#include "hv/print.h"
#include "hv/sched.h"
#include "hv/vcpu.h"
#include "hv/vmcs_init.h"
#include "mm/guest_copy.h"
#include "mm/palloc.h"

const struct personality *personality_hyperv;
struct guest *guests[GUESTS_MAX];
unsigned nr_guests;

static u32 guests_alive; /* atomic */
static u32 first_fault;  /* atomic: status of the first guest that did not end well; 0: none */

#define GUEST_ORDER 2
_Static_assert(sizeof(struct guest) <= PAGE_SIZE << GUEST_ORDER, "struct guest fits its pages");

static void *ept01_page(void *ctx)
{
	(void)ctx;
	return page_alloc();
}

static void ept01_release(void *ctx, void *page)
{
	(void)ctx;
	page_free(page);
}

static const struct ept_source ept01_source = {.page = ept01_page, .release = ept01_release};

/* Everything about it but its vCPUs' first state. False after an error line. */
static bool build_memory(struct guest *g)
{
	if (!l1mem_create(&g->mem, g->desc.mem, g->id)) {
		log_error("guest %s: mem=%lluM: not enough memory (%lluM free)", g->name,
			  (unsigned long long)(g->desc.mem >> 20),
			  (unsigned long long)(palloc_free_bytes() >> 20));
		return false;
	}
	if (!ept_init(&g->ept01, &ept01_source, l0_controls.ept_max_leaf) || !l1mem_map(&g->mem, &g->ept01)) {
		log_error("guest %s: not enough memory for its page tables", g->name);
		return false;
	}
	if (g->desc.apicv && apicv_available && !apicv_map_page(g)) {
		log_error("guest %s: not enough memory for its APIC page", g->name);
		return false;
	}
	g->eptp01 = ptr_hpa(g->ept01.root).v | l0_controls.eptp_flags;
	return true;
}

/* Tables and kernel into guest memory; also at a restart. False after an error line. */
static bool load_image(struct guest *g)
{
	static bool (*const loader[])(struct guest *, struct entry_state *, char *,
				      size_t) = {load_linux, load_multiboot2, load_multiboot1};
	char err[128];

	if (!machine_write_tables(g)) {
		log_error("guest %s: its ACPI tables do not fit", g->name);
		return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(loader); i++) {
		err[0] = 0;
		if (loader[i](g, &g->entry, err, sizeof(err)))
			return true;
		if (err[0]) {
			log_error("guest %s: kernel: %s", g->name, err);
			return false;
		}
	}
	log_error("guest %s: kernel: unknown image (neither Linux bzImage nor multiboot)", g->name);
	return false;
}

static bool cpu_allowed(const struct guest *g, unsigned cpu)
{
	static const u64 none[CPU_LIST_MAX / 64];

	if (!memcmp(g->desc.cpus, none, sizeof(none)))
		return true;
	return g->desc.cpus[cpu / 64] >> (cpu % 64) & 1;
}

/* Spread: the allowed CPU with the fewest vCPUs, the lowest index first. */
static struct cpu *place(const struct guest *g, unsigned *load)
{
	struct cpu *best = NULL;

	for (unsigned i = 0; i < nr_cpus; i++)
		if (cpu_allowed(g, i) && cpus[i]->vmx_root && (!best || load[i] < load[best->index]))
			best = cpus[i];
	if (best)
		load[best->index]++;
	return best;
}

static bool build_vcpus(struct guest *g)
{
	static unsigned load[CPUS_MAX];

	for (unsigned i = 0; i < g->desc.vcpus; i++) {
		struct cpu *c = place(g, load);

		if (!c) {
			log_error("guest %s: cpus: none of these CPUs is there", g->name);
			return false;
		}
		g->vcpu[i] = vcpu_create(g, i, c);
		if (!g->vcpu[i]) {
			log_error("guest %s: vcpus=%u: not enough memory for vCPU %u", g->name, g->desc.vcpus,
				  i);
			return false;
		}
		g->nr_vcpus++;
	}
	return true;
}

static void start(struct guest *g)
{
	g->ended = 0;
	g->restart = false;
	__atomic_store_n(&g->running_vcpus, g->nr_vcpus, __ATOMIC_SEQ_CST);
	g->started_tsc = rdtsc();
	log_always("guest %s started", g->name);
	log_debug("guest %s: tsc %llu", g->name, (unsigned long long)g->started_tsc);
	for (unsigned i = 0; i < g->nr_vcpus; i++) {
		__atomic_store_n(&g->vcpu[i]->state, VCPU_START, __ATOMIC_SEQ_CST);
		vcpu_request(g->vcpu[i], PEND_RESCHED);
	}
}

static bool build(struct guest *g)
{
	if (g->desc.vcpus > VCPUS_MAX) {
		log_error("guest %s: vcpus=%u: at most %u", g->name, g->desc.vcpus, VCPUS_MAX);
		return false;
	}
	if (!build_memory(g))
		return false;
	g->machine = machine_create(g);
	if (!g->machine) {
		log_error("guest %s: not enough memory for its devices", g->name);
		return false;
	}
	machine_reset(g->machine);
	g->personality = g->desc.hyperv ? personality_hyperv : NULL;
	return build_vcpus(g) && load_image(g);
}

/* --- from modules --- */

static struct guest *find(const char *name)
{
	for (unsigned i = 0; i < nr_guests; i++)
		if (guests[i] && !strcmp(guests[i]->name, name))
			return guests[i];
	return NULL;
}

static struct guest *create(const char *name)
{
	struct guest *g;

	if (nr_guests == GUESTS_MAX) {
		log_error("guest %s: at most %u guests", name, GUESTS_MAX);
		return NULL;
	}
	g = pages_alloc(GUEST_ORDER);
	if (!g) {
		log_error("guest %s: not enough memory", name);
		return NULL;
	}
	g->id = (u16)nr_guests;
	str_copy(g->name, sizeof(g->name), name);
	guests[nr_guests++] = g;
	return g;
}

static void note_status(u32 status)
{
	u32 none = 0;

	__atomic_compare_exchange_n(&first_fault, &none, status, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* A guest with a faulty module is reported once per fault and not started. */
static void set_bad(struct guest *g)
{
	note_status(1);
	if (g)
		g->ended = 2;
}

static void add_kernel(struct guest *g, const struct guest_desc *d, const struct guest_module *m)
{
	if (g->kernel.size) {
		log_error("guest %s: two guests of this name", g->name);
		set_bad(g);
		return;
	}
	g->desc = *d;
	g->cmdline = d->cmdline;
	g->kernel = *m;
}

static void add_module(struct guest *g, const struct guest_module *m)
{
	if (m->role == ROLE_DISK || m->role == ROLE_NET)
		log_warn("guest %s: role=%s is not supported yet, ignored", g->name,
			 m->role == ROLE_DISK ? "disk" : "net");
	else if (g->nr_modules == ARRAY_SIZE(g->module))
		log_error("guest %s: more than %zu modules", g->name, ARRAY_SIZE(g->module));
	else
		g->module[g->nr_modules++] = *m;
}

/* The default name: guestN for the N-th kernel; other roles without a name belong to the guest before them.
 */
static void name_module(struct guest_desc *d)
{
	if (d->name[0])
		return;
	if (d->role != ROLE_KERNEL && nr_guests)
		str_copy(d->name, sizeof(d->name), guests[nr_guests - 1]->name);
	else
		format(d->name, sizeof(d->name), "guest%u", nr_guests);
}

static void take_module(const struct boot_module *bm)
{
	struct guest_desc d;
	struct guest_module m = {.start = bm->start, .size = bm->size};
	struct guest *g;
	char err[160];
	bool ok = guest_desc_parse(bm->string, &d, err, sizeof(err));

	name_module(&d);
	if (!ok)
		log_error("guest %s: %s", d.name, err);
	g = find(d.name);
	if (!g)
		g = create(d.name);
	if (!g)
		return;
	if (!ok)
		set_bad(g);
	m.cmdline = d.cmdline;
	m.role = d.role;
	if (d.role == ROLE_KERNEL)
		add_kernel(g, &d, &m);
	else
		add_module(g, &m);
}

static void check_complete(struct guest *g)
{
	if (g->kernel.size || g->ended)
		return;
	log_error("guest %s: %s without a kernel", g->name,
		  g->nr_modules && g->module[0].role == ROLE_INITRD ? "initrd" : "module");
	set_bad(g);
}

/* A refused guest's own pages go back, so that the others find room. */
static void refuse(struct guest *g)
{
	set_bad(g);
	for (unsigned i = 0; i < g->nr_vcpus; i++)
		vcpu_destroy(g->vcpu[i]);
	g->nr_vcpus = 0;
	if (g->ept01.root)
		ept_destroy(&g->ept01);
	if (g->ept01_apic.root)
		apicv_unmap(g);
	l1mem_destroy(&g->mem);
}

static void choose_console(void)
{
	unsigned good = 0;

	for (unsigned i = 0; i < nr_guests; i++)
		good += !guests[i]->ended;
	for (unsigned i = 0; i < nr_guests; i++) {
		struct guest *g = guests[i];

		g->console_prefix =
			g->desc.console == CONSOLE_PREFIX || (g->desc.console == CONSOLE_AUTO && good > 1);
	}
}

void guests_start(void)
{
	for (unsigned i = 0; i < boot_info.nr_modules; i++)
		take_module(&boot_info.module[i]);
	if (!nr_guests) {
		log_error("no guest: give at least one module (README, \"Boot options\")");
		note_status(1);
	}
	for (unsigned i = 0; i < nr_guests; i++)
		check_complete(guests[i]);
	for (unsigned i = 0; i < nr_guests; i++)
		if (!guests[i]->ended && !build(guests[i]))
			refuse(guests[i]);
	choose_console();
	for (unsigned i = 0; i < nr_guests; i++) {
		struct guest *g = guests[i];

		if (g->ended)
			continue;
		guests_alive++;
		for (unsigned j = 0; j < g->nr_vcpus; j++)
			sched_add(g->vcpu[j]);
		start(g);
	}
}

/* --- ends --- */

static void stop_vcpus(struct guest *g)
{
	for (unsigned i = 0; i < g->nr_vcpus; i++)
		vcpu_request(g->vcpu[i], PEND_STOP);
}

static bool begin_end(struct guest *g)
{
	u32 running = 0;

	return __atomic_compare_exchange_n(&g->ended, &running, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

void guest_end(struct guest *g, const char *fmt, ...)
{
	va_list ap;

	if (!begin_end(g))
		return;
	va_start(ap, fmt);
	vformat(g->reason, sizeof(g->reason), fmt, ap);
	va_end(ap);
	g->status = 1;
	stop_vcpus(g);
}

void guest_exit(struct guest *g, u32 code)
{
	if (!begin_end(g))
		return;
	format(g->reason, sizeof(g->reason), "exit %u", code);
	g->status = code;
	stop_vcpus(g);
}

void guest_reset(struct guest *g)
{
	if (!begin_end(g))
		return;
	str_copy(g->reason, sizeof(g->reason), "reset");
	g->status = 1;
	g->restart = g->desc.restart;
	stop_vcpus(g);
}

static bool restart(struct guest *g)
{
	log_info("guest %s reset", g->name);
	for (unsigned i = 0; i < g->mem.count; i++)
		guest_zero(&g->mem, GPA(g->mem.chunk[i].gpa), g->mem.chunk[i].size);
	machine_reset(g->machine);
	if (!load_image(g))
		return false;
	start(g);
	return true;
}

void guest_vcpu_stopped(struct guest *g)
{
	if (__atomic_sub_fetch(&g->running_vcpus, 1, __ATOMIC_SEQ_CST))
		return;
	guest_console_flush(g);
	if (g->restart && restart(g))
		return;
	machine_reset(g->machine); /* its timers stop */
	g->ended = 2;
	if (g->personality)
		g->personality->report(g);
	log_always("guest %s ended: %s", g->name, g->reason);
	note_status(g->status);
	__atomic_sub_fetch(&guests_alive, 1, __ATOMIC_SEQ_CST);
	if (this_cpu()->index)
		cpu_kick(cpus[0]);
}

void guests_reap(void)
{
	if (this_cpu()->index || __atomic_load_n(&guests_alive, __ATOMIC_SEQ_CST))
		return;
	machine_end(options.when_done, __atomic_load_n(&first_fault, __ATOMIC_SEQ_CST));
}
