/* SPDX-License-Identifier: Apache-2.0 */
/* Between an enlightened VMCS and VMCS12: straight-line code for each clean group, made from the one table.
 */
#include "hyperv/evmcs.h"

#define MEMBER(m) (((struct vmcs12 *)0)->m)

#define X(at, bytes, name, member, group, out)                                                               \
	_Static_assert((at) % (bytes) == 0 && (at) + (bytes) <= EVMCS_SIZE, "place of " #name);              \
	_Static_assert(sizeof(MEMBER(member)) == (bytes), "width of " #name);
EVMCS_FIELDS(X)
#undef X
_Static_assert(GROUP_ENLIGHTENMENTS == 15, "groups are numbered as the clean fields");

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a type takes no parentheses */
#define AT(type, page, at) (*(volatile type *)(void *)((char *)(page) + (at)))

/* `group` is a constant wherever this is used: what remains are the loads and stores of one group. */
static inline __attribute__((always_inline)) bool take(struct vmcs12 *to, void *page, enum vmcs12_group g)
{
	u64 differs = 0;

#define X(at, bytes, name, member, group, out)                                                               \
	if (g == GROUP_##group) {                                                                            \
		__typeof__(to->member) x = AT(__typeof__(to->member), page, at);                             \
                                                                                                             \
		differs |= (u64)x ^ (u64)to->member;                                                         \
		to->member = x;                                                                              \
	}
	EVMCS_FIELDS(X)
#undef X
	return differs;
}

/* clang-format off */
#define GROUP_LIST(X) \
	X(IO_BITMAP) X(MSR_BITMAP) X(CONTROL_GRP2) X(CONTROL_GRP1) X(CONTROL_PROC) X(CONTROL_EVENT) \
	X(CONTROL_ENTRY) X(CONTROL_EXCPN) X(CRDR) X(CONTROL_XLAT) X(GUEST_BASIC) X(GUEST_GRP1) \
	X(GUEST_GRP2) X(HOST_POINTER) X(HOST_GRP1) X(LIVE) X(OTHER)
/* clang-format on */

#define X(group)                                                                                             \
	static bool take_##group(struct vmcs12 *to, void *page)                                              \
	{                                                                                                    \
		return take(to, page, GROUP_##group);                                                        \
	}
GROUP_LIST(X)
#undef X

static bool (*const takers[GROUPS])(struct vmcs12 *to, void *page) = {
#define X(group) [GROUP_##group] = take_##group,
	GROUP_LIST(X)
#undef X
};

u32 evmcs_copy_in(struct vmcs12 *to, const void *page, u32 groups)
{
	u32 changed = 0;

	for (u32 left = groups & GROUPS_ALL; left; left &= left - 1) {
		u32 g = (u32)__builtin_ctz(left);

		if (takers[g] && takers[g](to, (void *)(uintptr_t)page))
			changed |= BIT32(g);
	}
	return changed;
}

#define PUT(page, name, member) (AT(__typeof__(MEMBER(member)), page, EVMCS_AT_##name) = from->member)

void evmcs_put_info(void *page, const struct vmcs12 *from)
{
#define X(at, bytes, name, member, group, out)                                                               \
	if (PUT_##out == PUT_INFO)                                                                           \
		PUT(page, name, member);
	EVMCS_FIELDS(X)
#undef X
}

/* SDM "VM-Entry Failures During or After Loading Guest State". */
void evmcs_put_failed(void *page, const struct vmcs12 *from)
{
	PUT(page, EXIT_REASON, exit_reason);
	PUT(page, EXIT_QUAL, exit_qual);
}

void evmcs_put_error(void *page, const struct vmcs12 *from)
{
	PUT(page, INSN_ERROR, insn_error);
}

static const struct {
	u16 member, at;
	u8 bytes;
} places[] = {
#define X(at, bytes, name, member, group, out) {offsetof(struct vmcs12, member), at, bytes},
	EVMCS_FIELDS(X)
#undef X
};

bool evmcs_find(const struct vmcs12_field *f, u16 *offset, u8 *bytes)
{
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (places[i].member != f->offset)
			continue;
		*offset = places[i].at;
		*bytes = places[i].bytes;
		return true;
	}
	return false;
}
