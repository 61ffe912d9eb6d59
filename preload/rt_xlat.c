/* SPDX-License-Identifier: MIT
 *
 * rt_xlat.c - from a position in the copy to the state the original program would show
 *
 * The map's MAP_XLAT says for each copy address which original instruction is next and where
 * borrowed registers are. A position in the original text may be one of our patches: an
 * entry's jmp, or an island; those are followed into the copy, whose stub is in the table.
 */
#include "rt.h"

uint64_t rt_rflags(uint64_t rflags, uint64_t lahf)
{
	rflags &= ~0x8d5ull; /* OF SF ZF AF PF CF */
	return rflags | (lahf >> 8 & 0xd5) | (lahf & 1 ? 0x800 : 0);
}

static const struct map_xlat *find(const struct rt_module *m, uint64_t off)
{
	uint64_t lo = 0, n, hi;
	const struct map_xlat *x = rt_map_sect(m->map, MAP_XLAT, &n, sizeof(*x));

	for (hi = n; lo < hi;) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (x[mid].copy_off <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &x[lo - 1] : NULL;
}

static const struct map_patch *patch_at(const struct rt_module *m, uint64_t vaddr)
{
	uint64_t lo = 0, n, hi;
	const struct map_patch *p = rt_map_sect(m->map, MAP_PATCHES, &n, sizeof(*p));

	for (hi = n; lo < hi;) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (p[mid].vaddr < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	/* the distance of the short jump before it is this jump's prefix (analyzer/patch.c) */
	if (lo < n && lo && p[lo].vaddr == vaddr + 1 && p[lo - 1].vaddr == vaddr - 1 &&
	    p[lo - 1].kind == MAP_PATCH_JMP8)
		return &p[lo];
	return lo < n && p[lo].vaddr == vaddr ? &p[lo] : NULL;
}

/* an address in the original text: where its jumps lead in the copy, or itself */
static uint64_t follow(uint64_t rip)
{
	for (int hops = 0; hops < 16; hops++) {
		const struct rt_module *m = rt_mod_at(rip);
		const struct map_patch *p = m && m->kind == 1 ? patch_at(m, rip - m->bias) : NULL;

		if (p && p->kind == MAP_PATCH_JMP)
			return m->copy + p->arg;
		if (!p || p->kind != MAP_PATCH_JMP8)
			break;
		rip = m->bias + p->arg;
	}
	return rip;
}

static void in_copy(struct rt_tcb *t, const struct map_xlat *x, uint64_t *gpr, uint64_t *rflags)
{
	uint64_t r15 = t->t.r15;

	if (!rt_in_ring(gpr[R15]) && (x->flags & MAP_X_R15_REAL))
		r15 = gpr[R15];
	else if (x->r15_reg < 16)
		r15 = gpr[x->r15_reg]; /* before its host gets its own value back */
	for (int i = 0; i < 2; i++)
		if (x->spill[i] < 16)
			gpr[x->spill[i]] = t->t.spill[i];
	gpr[R15] = r15;
	if (x->flags & MAP_X_FLAGS_SAVED)
		*rflags = rt_rflags(*rflags, t->t.flags);
}

void rt_xlat(struct rt_tcb *t, uint64_t *gpr, uint64_t rip, uint64_t *rflags, struct rt_where *w)
{
	const struct rt_module *m = rt_mod_at_copy(rip);
	const struct map_xlat *x;
	uint64_t orig = rip;

	if (!m) {
		rip = follow(rip);
		m = rt_mod_at_copy(rip);
	}
	x = m ? find(m, rip - m->copy) : NULL;
	if (!x) {
		*w = (struct rt_where){orig, RUN_STOP_IN_TEXT, ~0u, 0, 0, 0};
		if (rt_in_ring(gpr[R15]))
			gpr[R15] = t->t.r15;
		return;
	}
	*w = (struct rt_where){m->bias + x->vaddr, RUN_STOP_IN_COPY, m->index,
			       rip - m->copy,	   x->off,	     x->ahead};
	if (x->flags & MAP_X_TARGET) /* the call has happened but for its jump */
		w->rip = t->t.target;
	in_copy(t, x, gpr, rflags);
}
