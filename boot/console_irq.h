/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's interrupt controllers: everything masked, but for COM1's received data. */
#ifndef NIDUS_BOOT_CONSOLE_IRQ_H
#define NIDUS_BOOT_CONSOLE_IRQ_H

/* Mask both PICs, their vectors away from the exceptions. */
void pic_silence(void);
/* Mask every pin of every IO-APIC the MADT names. */
void ioapics_silence(void);
/* Route COM1 (ISA interrupt 4) to the boot CPU as HOST_VEC_CONSOLE and switch it on. */
void console_irq_enable(void);

#endif
