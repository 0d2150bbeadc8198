/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COM1, a 16550A that sends at once: the transmitter is always empty. Received bytes wait in a backlog of
 * L0's and enter the FIFO as there is room, so that pasted text is not lost. Datasheet "PC16550D".
 */
#include "hv/dev/internal.h"
#include "hv/guest_console.h"
#include "hv/lib.h"

#define UART_IRQ 4

/* Registers by port offset, in the datasheet's order. */
enum { DATA, IER, IIR_FCR, LCR, MCR, LSR, MSR, SCRATCH };

#define IER_RECEIVE  BIT32(0)
#define IER_TRANSMIT BIT32(1)
#define IER_LINE     BIT32(2)
#define IER_MODEM    BIT32(3)
#define IIR_NONE     0x01
#define IIR_MODEM    0x00
#define IIR_TRANSMIT 0x02
#define IIR_RECEIVE  0x04
#define IIR_LINE     0x06
#define IIR_TIMEOUT  0x0c
#define IIR_FIFO     0xc0
#define FCR_ENABLE   BIT32(0)
#define FCR_CLEAR_RX BIT32(1)
#define LCR_DLAB     BIT32(7)
#define MCR_DTR      BIT32(0)
#define MCR_RTS      BIT32(1)
#define MCR_OUT1     BIT32(2)
#define MCR_OUT2     BIT32(3)
#define MCR_LOOP     BIT32(4)
#define LSR_DATA     BIT32(0)
#define LSR_OVERRUN  BIT32(1)
#define LSR_EMPTY    0x60u /* holding and shift register */
#define MSR_CTS      BIT32(4)
#define MSR_DSR      BIT32(5)
#define MSR_RI       BIT32(6)
#define MSR_DCD      BIT32(7)

static unsigned fifo_size(const struct vuart *u)
{
	return u->fcr & FCR_ENABLE ? UART_FIFO : 1;
}

static unsigned trigger_level(const struct vuart *u)
{
	static const u8 levels[4] = {1, 4, 8, 14};

	return u->fcr & FCR_ENABLE ? levels[u->fcr >> 6] : 1;
}

/* The identification of the highest pending interrupt. Datasheet "Interrupt Identification Register". */
static u8 identify(const struct vuart *u)
{
	if ((u->ier & IER_LINE) && u->lsr_error)
		return IIR_LINE;
	if ((u->ier & IER_RECEIVE) && u->count)
		return u->count >= trigger_level(u) ? IIR_RECEIVE : IIR_TIMEOUT;
	if ((u->ier & IER_TRANSMIT) && u->thre)
		return IIR_TRANSMIT;
	if ((u->ier & IER_MODEM) && u->msr_delta)
		return IIR_MODEM;
	return IIR_NONE;
}

static void settle(struct machine *m)
{
	machine_irq(m, UART_IRQ, identify(&m->uart) != IIR_NONE);
}

static void receive(struct vuart *u, u8 c)
{
	if (u->count < fifo_size(u))
		u->fifo[u->count++] = c;
	else
		u->lsr_error |= LSR_OVERRUN;
}

static void refill(struct vuart *u)
{
	if (u->mcr & MCR_LOOP)
		return; /* the input pin is disconnected */
	while (u->head != u->tail && u->count < fifo_size(u))
		receive(u, u->backlog[u->tail++ % UART_BACKLOG]);
}

void vuart_input(struct machine *m, u8 c)
{
	struct vuart *u = &m->uart;

	if (u->head - u->tail < UART_BACKLOG)
		u->backlog[u->head++ % UART_BACKLOG] = c;
	refill(u);
	settle(m);
}

void vuart_reset(struct machine *m)
{
	memset(&m->uart, 0, sizeof(m->uart));
	m->uart.lcr = 3;
	m->uart.dll = 1; /* 115200 */
	m->uart.thre = true;
	settle(m);
}

/* Modem inputs: always connected; in loop-back the outputs, as the datasheet's "Loop" paragraph pairs them.
 */
static u8 modem_lines(const struct vuart *u)
{
	if (!(u->mcr & MCR_LOOP))
		return MSR_CTS | MSR_DSR | MSR_DCD;
	return (u8)((u->mcr & MCR_RTS ? MSR_CTS : 0) | (u->mcr & MCR_DTR ? MSR_DSR : 0) |
		    (u->mcr & MCR_OUT1 ? MSR_RI : 0) | (u->mcr & MCR_OUT2 ? MSR_DCD : 0));
}

static void write_mcr(struct vuart *u, u8 value)
{
	u8 before = modem_lines(u), changed;

	u->mcr = value & 0x1f;
	changed = before ^ modem_lines(u);
	/* Delta bits stand 4 below; RI counts only when it goes away. */
	if ((changed & MSR_RI) && (modem_lines(u) & MSR_RI))
		changed &= (u8)~MSR_RI;
	u->msr_delta |= changed >> 4;
}

static void transmit(struct machine *m, u8 c)
{
	struct vuart *u = &m->uart;

	if (u->mcr & MCR_LOOP)
		receive(u, c);
	else
		guest_console_putc(m->guest, c);
	u->thre = true; /* empty again already */
}

static void write_fcr(struct vuart *u, u8 value)
{
	/* Turning the FIFOs on or off empties them. */
	if ((value & FCR_CLEAR_RX) || ((value ^ u->fcr) & FCR_ENABLE))
		u->count = 0;
	u->fcr = value & FCR_ENABLE ? value & 0xc9 : 0;
}

static void write_ier(struct vuart *u, u8 value)
{
	/* An empty transmitter asks as soon as it is allowed to. */
	if (value & ~u->ier & IER_TRANSMIT)
		u->thre = true;
	u->ier = value & 0x0f;
}

void vuart_out(struct machine *m, u16 port, unsigned size, u32 value)
{
	struct vuart *u = &m->uart;
	bool dlab = u->lcr & LCR_DLAB;
	u8 byte = (u8)value;

	(void)size;
	switch (port & 7) {
	case DATA:
		if (dlab)
			u->dll = byte;
		else
			transmit(m, byte);
		break;
	case IER:
		if (dlab)
			u->dlm = byte;
		else
			write_ier(u, byte);
		break;
	case IIR_FCR:
		write_fcr(u, byte);
		break;
	case LCR:
		u->lcr = byte;
		break;
	case MCR:
		write_mcr(u, byte);
		break;
	case SCRATCH:
		u->scratch = byte;
		break;
	}
	refill(u);
	settle(m);
}

static u8 read_data(struct vuart *u)
{
	u8 c = u->fifo[0];

	if (!u->count)
		return 0;
	u->count--;
	memmove(u->fifo, u->fifo + 1, u->count);
	return c;
}

static u8 read_iir(struct vuart *u)
{
	u8 id = identify(u);

	if (id == IIR_TRANSMIT)
		u->thre = false;
	return (u8)(id | (u->fcr & FCR_ENABLE ? IIR_FIFO : 0));
}

static u8 read_lsr(struct vuart *u)
{
	u8 value = (u8)(LSR_EMPTY | u->lsr_error | (u->count ? LSR_DATA : 0));

	u->lsr_error = 0;
	return value;
}

static u8 read_msr(struct vuart *u)
{
	u8 value = modem_lines(u) | u->msr_delta;

	u->msr_delta = 0;
	return value;
}

static u8 read_register(struct vuart *u, unsigned reg)
{
	bool dlab = u->lcr & LCR_DLAB;

	switch (reg) {
	case DATA:
		return dlab ? u->dll : read_data(u);
	case IER:
		return dlab ? u->dlm : u->ier;
	case IIR_FCR:
		return read_iir(u);
	case LCR:
		return u->lcr;
	case MCR:
		return u->mcr;
	case LSR:
		return read_lsr(u);
	case MSR:
		return read_msr(u);
	default:
		return u->scratch;
	}
}

u32 vuart_in(struct machine *m, u16 port, unsigned size)
{
	u8 value = read_register(&m->uart, port & 7);

	(void)size;
	refill(&m->uart);
	settle(m);
	return value;
}
