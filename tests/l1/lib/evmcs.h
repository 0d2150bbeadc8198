/* SPDX-License-Identifier: Apache-2.0 */
/* An enlightened VMCS as L1 handles it: a page it writes like any memory. Made from the current plain VMCS.
 */
#pragma once

#include "l2.h"

#define EV_VERSION          0u
#define EV_CLEAN            824u
#define EV_CONTROL          836u
#define EV_VP_ID            840u
#define EV_VM_ID            848u
#define EV_PARTITION_ASSIST 856u

#define EV_CLEAN_ALL 0xffffu
#define EV_ALWAYS    0xff /* no clean field */

#define EV_CONTROL_NESTED_FLUSH BIT(0)
#define EV_CONTROL_MSR_BITMAP   BIT(1)

/* Numbers of the clean fields. */
enum ev_clean {
	EV_IO_BITMAP,
	EV_MSR_BITMAP,
	EV_CONTROL_GRP2,
	EV_CONTROL_GRP1,
	EV_CONTROL_PROC,
	EV_CONTROL_EVENT,
	EV_CONTROL_ENTRY,
	EV_CONTROL_EXCPN,
	EV_CRDR,
	EV_CONTROL_XLAT,
	EV_GUEST_BASIC,
	EV_GUEST_GRP1,
	EV_GUEST_GRP2,
	EV_HOST_POINTER,
	EV_HOST_GRP1,
	EV_ENLIGHTENMENTS,
};

struct ev_field {
	u16 encoding, offset;
	u8 bytes, clean;
};
extern const struct ev_field ev_fields[];
extern const u32 ev_field_count;
const struct ev_field *ev_find(u32 encoding);

/* Fill a page with the version and the fields of the current (plain) VMCS; all clean fields 0. */
void ev_fill(u8 *page);
u64 ev_read(const u8 *page, u32 encoding);
void ev_write(u8 *page, u32 encoding, u64 value);         /* and clears the clean field */
void ev_write_quietly(u8 *page, u32 encoding, u64 value); /* and does not */
volatile u32 *ev_clean(u8 *page);
volatile u32 *ev_word(u8 *page, u32 offset);

/* The VP assist page of this CPU names it, or nothing. */
void ev_activate(u8 *page);
void ev_off(void);
/* Activate and enter. */
struct vm_result ev_enter(u8 *page, bool resume);
struct vm_result ev_resume_past(u8 *page, const struct vm_result *r);
