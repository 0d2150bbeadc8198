/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that only some CPUs need: instructions that stand in the image and become NOPs at boot where they are
 * not wanted, so that an exit pays neither for them nor for asking. Section .static_key lists the places.
 */
#ifndef NIDUS_HV_STATIC_KEY_H
#define NIDUS_HV_STATIC_KEY_H

#include "hv/types.h"

enum static_key {
	KEY_SMAP, /* STAC and CLAC exist */
	STATIC_KEYS
};

/* The image lies below 4 GiB. */
struct static_site {
	u32 at;
	u16 length, key;
};

#define STATIC_SITE_MAX 5

/* In an asm statement, with "i"(key) as operand 0; `code` takes `length` bytes. */
#define STATIC_CODE(code, length)                                                                            \
	"1:\t" code "\n\t.pushsection .static_key, \"a\"\n\t.long 1b\n\t.short " #length                     \
	", %c0\n\t.popsection"

/* Bytes to write over a site whose key is off; 0: it is no site. Pure. */
unsigned static_site_nops(const struct static_site *s, u8 nops[STATIC_SITE_MAX]);
/* Once, on the boot CPU, while the image may be written still and before code of any site ran. Bit n of `on`:
 * key n. */
void static_keys_set(u32 on);

#endif
