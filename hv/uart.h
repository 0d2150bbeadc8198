/* SPDX-License-Identifier: Apache-2.0 */
/* COM1, polled output. Absent hardware is found by the scratch register and then skipped. */
#ifndef NIDUS_HV_UART_H
#define NIDUS_HV_UART_H

#include "hv/types.h"

/* 8N1 at `baud`. False: there is no UART. */
bool uart_init(u32 baud);
void uart_write(const char *s, size_t n);
/* One received byte, or -1. */
int uart_getc(void);
/* Interrupt on received data (level of the IRQ pin; routing is the caller's). */
void uart_enable_interrupt(void);
/* Wait, bounded, until the last bit has left. */
void uart_drain(void);

#endif
