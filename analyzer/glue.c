/* SPDX-License-Identifier: MIT
 *
 * glue.c - see glue.h
 */
#include "glue.h"

const struct an_callee *glue_find_callee(const struct an_group *g, uint32_t insn)
{
	uint32_t lo = 0, hi = g->ncallee;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (g->callee[mid].insn < insn)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < g->ncallee && g->callee[lo].insn == insn ? &g->callee[lo] : NULL;
}

const struct an_callee *glue_link(const struct an_group *g, uint32_t block)
{
	uint32_t last = g->block[block].first + g->block[block].n - 1;

	return g->insn[last].flow == FLOW_IJMP ? glue_callee(g, last) : NULL;
}

enum callkind glue_call(const struct module *m, const struct an_group *g, uint32_t insn)
{
	const struct an_callee *c;

	if (g->insn[insn].flow != FLOW_CALL)
		return CALL_EXT;
	c = glue_callee(g, insn);
	if (!c)
		return CALL_EXT;
	return m->group[c->group].sum->tailx ? CALL_TAILX : CALL_DIRECT;
}

bool glue_strays(const struct module *m, const struct an_group *g, uint32_t insn)
{
	if (g->insn[insn].flags & AN_I_STRAY)
		return true;
	return g->sum->strays && glue_call(m, g, insn) != CALL_DIRECT;
}

/* What all the jumps of a group have in common decides for each of its targets, because tables
 * share targets: INEXACT, some jump may leave; MARKED, some target is also an entry, a return site
 * or a landing pad, which need a mark, so all targets get one (a jump that expects a mark and a
 * target that writes none would lose the decoder, and r15). Cached in the group. */
enum { G_DONE = 1, G_INEXACT = 2, G_MARKED = 4 };

static unsigned jumps(const struct an_group *g)
{
	const uint32_t special = AN_B_ENTRY | AN_B_RETURN | AN_B_LANDING | AN_B_TWICE;
	unsigned f = G_DONE;

	if (g->glue)
		return g->glue;
	for (uint32_t i = 0; i < g->ntable; i++) {
		if (!g->table[i].exact)
			f |= G_INEXACT;
		for (uint32_t k = 0; k < g->table[i].ntarget; k++)
			if (g->block[g->table[i].target[k]].flags & special)
				f |= G_MARKED;
	}
	for (uint32_t i = 0; i < g->nblock; i++)
		if (g->block[i].flags & AN_B_ANYTARGET)
			f |= G_INEXACT | (g->block[i].flags & special ? G_MARKED : 0);
	((struct an_group *)g)->glue = f; /* the same value from whichever thread */
	return f;
}

enum stub glue_find_stub(const struct module *m, const struct an_group *g, uint32_t block)
{
	const struct an_block *b = &g->block[block];
	enum stub s = STUB_NONE;
	int kinds = 0;

	if (b->flags & (AN_B_LANDING | AN_B_TWICE))
		return STUB_RESYNC;
	if (b->flags & AN_B_ENTRY) {
		if (g->sum->priv)
			return STUB_NONE;
		s = STUB_ENTRY;
		kinds++;
	}
	if (b->flags & AN_B_RETURN) {
		/* the call is the last instruction of the block before, in address order */
		uint32_t call = b->first - 1;

		if (glue_strays(m, g, call))
			return STUB_RESYNC;
		s = glue_call(m, g, call) == CALL_DIRECT ? STUB_RELOAD : STUB_RETURN;
		kinds++;
	}
	if (b->flags & (AN_B_TARGET | AN_B_ANYTARGET)) {
		s = jumps(g) & G_INEXACT ? STUB_RELOAD : STUB_PLAIN;
		kinds++;
		if (jumps(g) & G_MARKED)
			return STUB_RESYNC;
	}
	return kinds > 1 ? STUB_RESYNC : s;
}

enum jumpkind glue_jump(const struct module *m, const struct an_group *g, uint32_t block)
{
	const struct an_block *b = &g->block[block];
	const struct an_table *t;

	(void)m;
	if (b->table == AN_NONE)
		return JUMP_LEAVES;
	if (jumps(g) & G_MARKED)
		return JUMP_LEAVES; /* the mark says where it went */
	t = &g->table[b->table];
	if (!t->exact)
		return JUMP_MIXED;
	return jumps(g) & G_INEXACT ? JUMP_RELOAD : JUMP_PLAIN;
}
