/* SPDX-License-Identifier: Apache-2.0 */
/* What shadow EPTs need of L0 around them: pages for EPT01, and vCPUs whose TLBs are said to be flushed. */
#ifndef NIDUS_TESTS_UNIT_SEPT_HOST_H
#define NIDUS_TESTS_UNIT_SEPT_HOST_H

#include "tests/unit/ept12_tables.h"

/* The other vCPUs' part of the game is the tests'. */
static bool tlb_flushed = true;
static unsigned tlb_flushes, tlb_kicks;

void watch_flush_tlb(struct vcpu *v)
{
	(void)v;
	tlb_flushes++;
}

bool watch_tlb_flushed(struct vcpu *v, bool now)
{
	(void)v;
	tlb_kicks += !tlb_flushed && now;
	return tlb_flushed;
}

static void *table_page(void *ctx)
{
	(void)ctx;
	return page_alloc();
}

static void table_release(void *ctx, void *page)
{
	(void)ctx;
	page_free(page);
}

static const struct ept_source source = {.page = table_page, .release = table_release};

#endif
