/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which Nidus takes the machine. Each step's contents are elsewhere. */
#include "boot/acpi.h"
#include "boot/boot_info.h"
#include "boot/console_irq.h"
#include "boot/smp.h"
#include "hv/apicv.h"
#include "hv/console.h"
#include "hv/cpu.h"
#include "hv/cpuid.h"
#include "hv/guest.h"
#include "hv/lapic.h"
#include "hv/msr.h"
#include "hv/options.h"
#include "hv/panic.h"
#include "hv/personality.h"
#include "hv/pmu.h"
#include "hv/poweroff.h"
#include "hv/print.h"
#include "hv/sched.h"
#include "hv/static_key.h"
#include "hv/tsc.h"
#include "hv/vmcs_init.h"
#include "hv/vmx_on.h"
#include "hv/x86.h"
#include "hyperv/client.h"
#include "hyperv/hyperv.h"
#include "mm/hostpt.h"
#include "mm/memmap.h"
#include "mm/mtrr.h"
#include "mm/palloc.h"

#define MB1_LOADED    0x2badb002
#define MB2_LOADED    0x36d76289
#define OPTION_ERRORS 16
#define VERSION       "0.1"

extern char image_start[], image_end[];
void boot_main(u32 magic, u32 info);
void stack_switch(u64 top, void (*fn)(void)) __attribute__((noreturn));

struct boot_info boot_info;
struct options options;
static bool option_fatal;

static void __attribute__((noreturn)) stop(const char *why)
{
	log_error("%s", why);
	machine_end(options.when_done, 1);
}

static void read_boot_info(u32 magic, u32 info)
{
	const void *data = hpa_ptr(HPA(info));

	if (magic == MB2_LOADED)
		mb2_parse(data, &boot_info);
	else if (magic == MB1_LOADED)
		mb1_parse(data, &boot_info);
	else
		boot_info.error = "not loaded by a multiboot loader";
	if (!boot_info.cmdline)
		boot_info.cmdline = boot_info.loader = "";
}

/* The framebuffer is usable at once when it lies below 4 GiB (boot page tables); else after hostpt_init. */
static void open_consoles(bool all_mapped)
{
	const struct framebuffer *fb = boot_info.has_fb ? &boot_info.fb : NULL;
	u64 size = fb ? (u64)fb->pitch * fb->height : 0;

	if (fb && !fb->text && fb->base.v + size > 4 * GIB && !all_mapped)
		return;
	console_init(&options, fb);
}

/* A malformed value stops the machine, but only once ACPI has told how. */
static void read_options(void)
{
	struct option_error errors[OPTION_ERRORS];
	unsigned n = options_parse(boot_info.cmdline, &options, errors, OPTION_ERRORS);

	log_level = options.loglevel;
	panic_init(options.on_panic);
	open_consoles(false);
	for (unsigned i = 0; i < n; i++) {
		log_line(errors[i].fatal ? LOG_ERROR : LOG_WARN, "%s", errors[i].text);
		option_fatal |= errors[i].fatal;
	}
}

/* All that must survive: the image and the modules. The loader's own data is copied, it may go. */
static void reserve_memory(void)
{
	struct memmap *m = &boot_info.mem;
	bool ok = memmap_reserve(m, (uintptr_t)image_start, (uintptr_t)image_end);

	for (unsigned i = 0; i < boot_info.nr_modules; i++) {
		u64 start = boot_info.module[i].start.v;

		ok &= memmap_reserve(m, start, start + boot_info.module[i].size);
	}
	if (!ok)
		stop("the memory map has too many ranges");
}

static void print_memory(void)
{
	for (unsigned i = 0; i < boot_info.mem.count; i++) {
		const struct mem_range *r = &boot_info.mem.range[i];

		log_debug("memory %012lx-%012lx type %u", r->start, r->end, r->type);
	}
}

static void take_memory(void)
{
	const struct framebuffer *fb = boot_info.has_fb && !boot_info.fb.text ? &boot_info.fb : NULL;

	reserve_memory();
	print_memory();
	mtrr_read();
	palloc_init(&boot_info.mem);
	hostpt_init(&boot_info.mem, 0);
	hv_client_protect();
	palloc_add_high(&boot_info.mem);
	if (fb)
		hostpt_map_framebuffer(fb->base, (u64)fb->pitch * fb->height);
	open_consoles(true);
}

static void own_interrupts(void)
{
	pic_silence();
	ioapics_silence();
	lapic_init(true);
	tsc_measure(acpi.pm_timer);
	lapic_measure();
}

static void vmx_everywhere(void)
{
	if (!hv_client_cpu())
		stop("no memory");
	if (!vmx_on())
		stop("VMXON failed");
	cpus[0]->online = true;
	smp_start(acpi.apic_id, acpi.nr_cpus);
}

/* SDM "Supervisor-Mode Access Prevention": CPUID.(EAX=7,ECX=0):EBX bit 20. */
static void patch_code(void)
{
	bool smap = cpuid(0, 0).eax >= 7 && cpuid(7, 0).ebx & BIT32(20);

	static_keys_set(smap ? BIT32(KEY_SMAP) : 0);
	if (options.hv_guest && hv_client_offered())
		hv_client_patch();
}

/* What every guest's CPU looks like; needs VMX and the clock's rate. */
static void virtual_cpu(void)
{
	if (!vmcs_init_caps())
		stop("this CPU's VMX is not sufficient");
	cpuid_init();
	pmu_init();
	msr_init();
	apicv_init();
}

static void print_facts(void)
{
	log_info("Nidus %s by %s: %u CPU%s in VMX root, %llu MiB free, TSC %llu.%03llu MHz", VERSION,
		 *boot_info.loader ? boot_info.loader : "unknown loader", nr_cpus, nr_cpus == 1 ? "" : "s",
		 (unsigned long long)(palloc_free_bytes() / MIB), (unsigned long long)(tsc_hz / 1000000),
		 (unsigned long long)(tsc_hz / 1000 % 1000));
	if (hv_client)
		log_info("Hyper-V's interface below: VMCSs are enlightened");
}

/* The second half, on the boot CPU's own stack with its guard page. */
static void bring_up(void)
{
	const char *refusal;

	acpi_init(boot_info.rsdp);
	poweroff_init(&acpi.power);
	if (option_fatal)
		machine_end(options.when_done, 1);
	refusal = vmx_refusal();
	if (refusal)
		stop(refusal);
	own_interrupts();
	vmx_everywhere();
	print_facts();
	virtual_cpu();
	personality_hyperv = &hyperv;
	guests_start();
	console_irq_enable();
	smp_release();
	sched_loop();
}

void boot_main(u32 magic, u32 info)
{
	struct cpu *c;

	console_early_init();
	read_boot_info(magic, info);
	read_options();
	if (boot_info.error)
		stop(boot_info.error);
	patch_code();
	take_memory(); /* from here on the image is W^X */
	c = cpu_create(lapic_cpuid_id());
	if (!c)
		stop("no memory for the boot CPU");
	idt_init();
	cpu_init(c);
	stack_switch(c->stack_top, bring_up);
}
