/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instructions that take the place of VMREAD and VMWRITE where the VMCS is a page of memory: taking a
 * site (hv/vmcs.h) apart, and writing what stands there instead. Pure: code is bytes here. SDM "Instruction
 * Format".
 */
#ifndef NIDUS_HYPERV_PATCH_H
#define NIDUS_HYPERV_PATCH_H

#include "hv/types.h"

struct patch_site {
	enum { SITE_READ, SITE_WRITE } kind;
	unsigned size;    /* bytes, with the branch */
	unsigned value;   /* register that is read into or written from; none with `memory` */
	unsigned field;   /* register with the encoding */
	u8 rex;           /* its prefix; 0: none */
	const u8 *memory; /* ModRM of the memory that is written or read instead of a register; NULL: none */
	unsigned memory_len; /* bytes of ModRM, SIB and displacement */
};

/* A field of the page that GS leads to. */
struct patch_field {
	u32 disp;
	u8 bytes;       /* 2, 4, 8 */
	u32 clean_disp; /* the byte with its clean bit */
	u8 clean_mask;  /* that bit; 0: it has none */
};

/* What stands at a site. False: neither VMREAD nor VMWRITE, or memory on the stack or relative to RIP. */
bool patch_decode(const u8 *code, struct patch_site *s);
/* In place of a site without memory: the load or the store. The store leaves the clean bit alone. */
void patch_move(u8 *code, const struct patch_site *s, const struct patch_field *f);
/* In place of the site: a call of `target`. */
void patch_call(u8 *code, unsigned size, const void *target);
/* At the start of a function: a jump to `target`, which takes the same arguments. */
void patch_jump(u8 *code, const void *target);
/* A routine to be called there: the load or the store, and with a store the clean bit goes. Returns the end;
 * at most PATCH_ROUTINE bytes. */
u8 *patch_routine(u8 *out, const struct patch_site *s, const struct patch_field *f);
/* The same for a field that only the register knows: field (and value) onto the stack, `access` called. It
 * leaves every register as it was, and what was read in the place of the field. */
u8 *patch_any_routine(u8 *out, const struct patch_site *s, const void *access);

#define PATCH_ROUTINE 32

#endif
