/* SPDX-License-Identifier: MIT
 *
 * glue.c - see glue.h
 */
#include "glue.h"

const struct an_callee *glue_callee(const struct an_group *g, uint32_t insn)
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

/* does a block take part in a jump whose targets are not fully known? */
static bool any_inexact(const struct an_group *g)
{
	for (uint32_t i = 0; i < g->ntable; i++)
		if (!g->table[i].exact)
			return true;
	return false;
}

enum stub glue_stub(const struct module *m, const struct an_group *g, uint32_t block)
{
	const struct an_block *b = &g->block[block];
	enum stub s = STUB_NONE;
	int kinds = 0;

	if (b->flags & (AN_B_LANDING | AN_B_TWICE))
		return STUB_RESYNC;
	if (b->flags & AN_B_ENTRY) {
		s = STUB_ENTRY;
		kinds++;
	}
	if (b->flags & AN_B_RETURN) {
		/* the call is the last instruction of the block before, in address order */
		uint32_t call = b->first - 1;

		s = glue_call(m, g, call) == CALL_DIRECT ? STUB_RELOAD : STUB_RETURN;
		kinds++;
	}
	if (b->flags & (AN_B_TARGET | AN_B_ANYTARGET)) {
		s = (b->flags & AN_B_ANYTARGET) || any_inexact(g) ? STUB_RELOAD : STUB_PLAIN;
		kinds++;
	}
	return kinds > 1 ? STUB_RESYNC : s;
}

enum jumpkind glue_jump(const struct module *m, const struct an_group *g, uint32_t block)
{
	const struct an_block *b = &g->block[block];
	const struct an_table *t;

	if (b->table == AN_NONE)
		return JUMP_LEAVES;
	t = &g->table[b->table];
	for (uint32_t i = 0; i < t->ntarget; i++) {
		enum stub s = glue_stub(m, g, t->target[i]);

		if (s == STUB_RESYNC || s == STUB_ENTRY || s == STUB_RETURN)
			return JUMP_LEAVES; /* the mark says where it went */
		if (t->exact && s == STUB_RELOAD)
			return JUMP_RELOAD;
	}
	return t->exact ? JUMP_PLAIN : JUMP_MIXED;
}
