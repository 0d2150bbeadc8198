/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the devices of one L1 know of each other. All but the local APICs are covered by machine.lock: a
 * function here that takes a struct machine is called with it held, unless it says otherwise.
 */
#ifndef NIDUS_HV_DEV_INTERNAL_H
#define NIDUS_HV_DEV_INTERNAL_H

#include "hv/apic_regs.h"
#include "hv/dev/machine.h"
#include "hv/dev/vlapic.h"
#include "hv/spinlock.h"
#include "hv/timer.h"
#include "hv/types.h"

/* --- time: hv/dev/clock.c --- */

/* Host TSC, the clock of all devices: host_clock.c */
u64 machine_clock(void);
/* x * mul / div without overflow in between. Pre: mul * div < 2^64. */
u64 clock_scale(u64 x, u64 mul, u64 div);
/* The shortest distance of two periodic interrupts that L0 makes: 20 us of host TSC. A guest that asks for
 * more gets fewer. */
u64 clock_min_gap(void);

/* --- local APIC --- */

/* SDM "Error Handling". */
#define ESR_SEND_VECTOR    BIT32(5)
#define ESR_RECEIVE_VECTOR BIT32(6)
#define ESR_ADDRESS        BIT32(7)

enum apic_mode { MODE_FIXED, MODE_LOWEST, MODE_SMI, MODE_NMI = 4, MODE_INIT, MODE_SIPI, MODE_EXTINT };

/* Physical destination of everybody, whatever the sender's mode. */
#define APIC_BROADCAST 0xffffffffu

bool vlapic_enabled(const struct vlapic *l); /* IA32_APIC_BASE */
bool vlapic_is_x2apic(const struct vlapic *l);
void vlapic_enter_x2apic(struct vlapic *l);
/* Processor priority now. Own CPU. */
u8 vlapic_ppr(struct vlapic *l);
/* Fixed interrupt into IRR. Any CPU. */
void vlapic_accept(struct vlapic *l, u8 vector, bool level);
/* An LVT entry's event (not the timer's mode bits). Any CPU. */
void vlapic_local(struct vlapic *l, u32 lvt);
void vlapic_error(struct vlapic *l, u32 bits);
/* A rising edge at LINT0 of every vCPU: the PIC pair's output. */
void vlapic_lint0_edge(struct guest *g);

/* vlapic_timer.c */
void vlapic_timer_init(struct vlapic *l);
void vlapic_timer_reset(struct vlapic *l);
void vlapic_timer_lvt(struct vlapic *l, u32 value);
void vlapic_timer_initial(struct vlapic *l, u32 value);
void vlapic_timer_divide(struct vlapic *l, u32 value);
u32 vlapic_timer_current(struct vlapic *l);
u64 vlapic_timer_deadline(struct vlapic *l);
void vlapic_timer_set_deadline(struct vlapic *l, u64 value);

/* apic_deliver.c: a write of ICR; `dest` is the destination field alone, in the sender's format. */
void vlapic_icr(struct vlapic *l, u32 low, u32 dest);

/* --- PIC pair: vpic.c --- */

struct vpic_chip {
	u8 irr, isr, imr, lines, elcr, base;
	u8 first; /* the line of highest priority */
	u8 step;  /* ICW awaited: 0 none, 2, 3, 4 */
	bool want_icw4, single, ltim, aeoi, rotate_aeoi, sfnm, special_mask, poll, read_isr;
};

struct vpic {
	struct vpic_chip chip[2];
};

void vpic_reset(struct machine *m);
void vpic_line(struct machine *m, unsigned irq, bool level);
u8 vpic_ack(struct machine *m);
u32 vpic_in(struct machine *m, u16 port, unsigned size);
void vpic_out(struct machine *m, u16 port, unsigned size, u32 value);

/* --- IO-APIC: vioapic.c --- */

#define IOAPIC_PINS 24

struct vioapic {
	u8 select, id;
	u32 lines;
	u64 entry[IOAPIC_PINS];
};

void vioapic_reset(struct machine *m);
void vioapic_line(struct machine *m, unsigned pin, bool level);
void vioapic_eoi(struct machine *m, u8 vector);
u32 vioapic_read(struct machine *m, u32 offset);
void vioapic_write(struct machine *m, u32 offset, u32 value);

/* --- PIT: vpit.c --- */

struct vpit_channel {
	u8 mode, access; /* access: 1 low byte, 2 high byte, 3 both */
	bool bcd, gate;
	bool loaded;   /* a count is there */
	bool counting; /* false: held by the gate, or not triggered yet */
	bool write_high, read_high;
	u8 low;     /* first byte written */
	u32 count;  /* 1 - 65536 */
	u64 start;  /* host TSC when it was loaded or triggered */
	u64 held;   /* clocks done before the gate went low */
	u8 latched; /* bytes of latch still to be read */
	u16 latch;
	bool status_latched;
	u8 status;
};

struct vpit {
	struct vpit_channel channel[3];
	u8 port61;
	struct timer timer;
	u64 due; /* host TSC of channel 0's next edge; 0: none */
};

void vpit_init(struct machine *m);
void vpit_reset(struct machine *m);
u32 vpit_in(struct machine *m, u16 port, unsigned size);
void vpit_out(struct machine *m, u16 port, unsigned size, u32 value);
u32 vpit_speaker_in(struct machine *m, u16 port, unsigned size);
void vpit_speaker_out(struct machine *m, u16 port, unsigned size, u32 value);

/* --- RTC and CMOS: vrtc.c --- */

struct vrtc {
	u8 index;
	u8 ram[128];   /* registers A-D and 0x0e on; the time is computed */
	u8 frozen[10]; /* registers 0-9 while SET is on (and the alarm's always) */
	u8 century;    /* frozen too */
	s64 epoch;     /* guest's seconds since 1970 at `start` */
	u64 start;     /* host TSC */
	u64 shown;     /* up to this host TSC `frozen` reads as the time does; 0: not known */
	u64 seen;      /* 32768 Hz ticks since `start` that the flags know of */
	struct timer timer;
};

/* Reads the host's clock: boot CPU, once per machine. */
void vrtc_init(struct machine *m);
void vrtc_reset(struct machine *m);
u32 vrtc_in(struct machine *m, u16 port, unsigned size);
void vrtc_out(struct machine *m, u16 port, unsigned size, u32 value);
/* Seconds since 1970 by the host's CMOS clock: host_clock.c */
s64 host_rtc_seconds(void);
/* Proleptic Gregorian calendar: calendar.c */
struct calendar {
	s32 year;
	u8 month, day, hour, minute, second, weekday; /* month, day from 1; weekday 1 is Sunday */
};
s64 calendar_seconds(const struct calendar *c); /* out-of-range fields carry over */
struct calendar calendar_of(s64 seconds);

/* --- COM1: vuart.c --- */

#define UART_FIFO    16
#define UART_BACKLOG 1024 /* typed ahead; power of two */

struct vuart {
	u8 ier, lcr, mcr, scratch, fcr, dll, dlm;
	u8 lsr_error; /* overrun, until LSR is read */
	u8 msr_delta;
	bool thre; /* transmitter interrupt waits */
	u8 fifo[UART_FIFO];
	unsigned count;
	u8 backlog[UART_BACKLOG];
	unsigned head, tail;
};

void vuart_reset(struct machine *m);
void vuart_input(struct machine *m, u8 c);
u32 vuart_in(struct machine *m, u16 port, unsigned size);
void vuart_out(struct machine *m, u16 port, unsigned size, u32 value);

/* --- ACPI fixed hardware: vpm.c --- */

#define PM_BASE    0x600u /* PM1a event block, 4 bytes */
#define PM_CONTROL 0x604u /* PM1a control block, 2 bytes */
#define PM_TIMER   0x608u /* 4 bytes */
#define PM_HZ      3579545u
#define SCI_IRQ    9u

struct vpm {
	u16 status, enable, control;
	u64 start, carries; /* host TSC at power-on; timer's top-bit changes that the status knows of */
	struct timer timer;
};

void vpm_init(struct machine *m);
void vpm_reset(struct machine *m);
u32 vpm_in(struct machine *m, u16 port, unsigned size);
void vpm_out(struct machine *m, u16 port, unsigned size, u32 value);

/* --- ends and resets: vreset.c --- */

struct vreset {
	u8 control, port92, word; /* 0xcf9; 0x92; characters of "Shutdown" seen */
};

/* What machine_out does once the lock is free. */
enum outcome { OUTCOME_NONE, OUTCOME_EXIT, OUTCOME_RESET };

void vreset_reset(struct machine *m);
u32 vreset_in(struct machine *m, u16 port, unsigned size);
void vreset_out(struct machine *m, u16 port, unsigned size, u32 value);

/* --- fw_cfg: vfwcfg.c --- */

struct vfwcfg {
	u8 data[1024]; /* of the selected item */
	u32 size, pos;
	u8 e820[32 * 20];
	u32 e820_size;
};

void vfwcfg_init(struct machine *m);
void vfwcfg_reset(struct machine *m);
u32 vfwcfg_in(struct machine *m, u16 port, unsigned size);
void vfwcfg_out(struct machine *m, u16 port, unsigned size, u32 value);

/* --- PCI configuration mechanism 1: vpci.c --- */

struct vpci {
	u32 address;
	u8 bridge[256]; /* 00:00.0 */
};

void vpci_reset(struct machine *m);
u32 vpci_in(struct machine *m, u16 port, unsigned size);
void vpci_out(struct machine *m, u16 port, unsigned size, u32 value);

/* --- test device: vtestdev.c --- */

#define TESTDEV_LINES 0x2000u /* a port for each interrupt line */

/* Before the other devices' resets: lowers every line. */
void vtestdev_reset(struct machine *m);
u32 vtestdev_in(struct machine *m, u16 port, unsigned size);
void vtestdev_out(struct machine *m, u16 port, unsigned size, u32 value);

/* --- ports: ports.c --- */

void ports_init(void);
u32 ports_in(struct machine *m, u16 port, unsigned size);
void ports_out(struct machine *m, u16 port, unsigned size, u32 value);

/* All bits of an access of `size` bytes. */
static inline u32 port_ones(unsigned size)
{
	return ~0u >> (32 - 8 * size);
}

struct machine {
	struct spinlock lock;
	struct guest *guest;
	struct vpic pic;
	struct vioapic ioapic;
	struct vpit pit;
	struct vrtc rtc;
	struct vuart uart;
	struct vpm pm;
	struct vreset reset;
	struct vfwcfg fwcfg;
	struct vpci pci;
	u32 testdev; /* its register */
	u32 rotor;   /* lowest-priority delivery: where the search starts; atomic */
	enum outcome outcome;
	u32 exit_code;
};

#endif
