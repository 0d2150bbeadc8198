/* SPDX-License-Identifier: Apache-2.0 */
/* The 16550 at COM1. Every wait is bounded: a broken UART costs characters, never the boot. */
#include "hv/uart.h"
#include "hv/x86.h"

#define COM1        0x3f8
#define UART_DATA   (COM1 + 0)
#define UART_IER    (COM1 + 1)
#define UART_IIR    (COM1 + 2)
#define UART_FCR    (COM1 + 2)
#define UART_LCR    (COM1 + 3)
#define UART_MCR    (COM1 + 4)
#define UART_LSR    (COM1 + 5)
#define UART_SCR    (COM1 + 7)
#define LCR_8N1     0x03
#define LCR_DLAB    0x80
#define FCR_ENABLE  0x07 /* on, both FIFOs emptied */
#define IIR_FIFO_ON 0xc0
#define MCR_LINES   0x0b /* DTR, RTS, OUT2 (gates the interrupt) */
#define LSR_DR      0x01
#define LSR_THRE    0x20
#define LSR_TEMT    0x40
#define UART_CLOCK  115200
#define FIFO_DEPTH  16
#define WAIT_LOOPS  200000

static bool present;
static unsigned depth = 1; /* bytes that may follow each other once the transmitter is empty */

bool uart_init(u32 baud)
{
	u16 divisor = (u16)(UART_CLOCK / baud);

	out8(UART_SCR, 0x5a);
	present = in8(UART_SCR) == 0x5a;
	out8(UART_SCR, 0xa5);
	present = present && in8(UART_SCR) == 0xa5;
	if (!present)
		return false;
	out8(UART_IER, 0);
	out8(UART_LCR, LCR_DLAB | LCR_8N1);
	out8(UART_DATA, (u8)divisor);
	out8(UART_IER, (u8)(divisor >> 8));
	out8(UART_LCR, LCR_8N1);
	out8(UART_FCR, FCR_ENABLE);
	out8(UART_MCR, MCR_LINES);
	depth = (in8(UART_IIR) & IIR_FIFO_ON) == IIR_FIFO_ON ? FIFO_DEPTH : 1;
	return true;
}

static bool wait_for(u8 bit)
{
	for (unsigned i = 0; i < WAIT_LOOPS; i++) {
		if (in8(UART_LSR) & bit)
			return true;
		cpu_relax();
	}
	return false;
}

void uart_write(const char *s, size_t n)
{
	while (present && n) {
		size_t burst = MIN(n, depth);

		if (!wait_for(LSR_THRE))
			return;
		n -= burst;
		while (burst--)
			out8(UART_DATA, (u8)*s++);
	}
}

int uart_getc(void)
{
	return present && (in8(UART_LSR) & LSR_DR) ? in8(UART_DATA) : -1;
}

void uart_enable_interrupt(void)
{
	if (present)
		out8(UART_IER, 1);
}

void uart_drain(void)
{
	if (present)
		wait_for(LSR_TEMT);
}
