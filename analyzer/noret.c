/* SPDX-License-Identifier: MIT
 *
 * noret.c - groups that do not return: from no entry does a known way lead to an exit
 *
 * Compilers put other code right behind a call that does not come back, with a frame of its own
 * (sp.c). A greatest set would let two groups that call each other vouch for themselves; so groups are
 * added until no more follow from those found.
 */
#include <stdlib.h>
#include "plan.h"

static bool dead_call(const struct module *m, const struct an_group *g, uint32_t insn)
{
	const struct an_callee *c = g->insn[insn].flow == FLOW_CALL ? glue_callee(g, insn) : NULL;

	return c && m->group[c->group].reason == MAP_OK && m->group[c->group].sum->noret;
}

bool gr_dead_call(const struct gr *gr, uint32_t insn)
{
	return dead_call(gr->m, gr->g, insn);
}

/* may the block be the last of an activation that returns, or that goes on where nobody knows? */
static bool exits(const struct an_group *g, const struct an_block *b)
{
	switch (g->insn[b->first + b->n - 1].flow) {
	case FLOW_RET:
		return true;
	case FLOW_JMP:
		return b->succ[0] == AN_NONE;
	case FLOW_JCC:
		return b->succ[0] == AN_NONE || b->succ[1] == AN_NONE;
	case FLOW_IJMP:
		return b->table == AN_NONE || !g->table[b->table].exact;
	case FLOW_NEXT:
	case FLOW_SYSCALL:
		return b->succ[1] == AN_NONE;
	default:
		return false;
	}
}

static void reach(uint32_t to, uint8_t *seen, uint32_t *stack, uint32_t *n)
{
	if (to == AN_NONE || seen[to])
		return;
	seen[to] = 1;
	stack[(*n)++] = to;
}

static bool returns(const struct module *m, const struct an_group *g, uint8_t *seen, uint32_t *stack)
{
	const uint32_t in = AN_B_ENTRY | AN_B_LANDING | AN_B_TWICE | AN_B_ANYTARGET;
	uint32_t n = 0;

	memset(seen, 0, g->nblock);
	for (uint32_t i = 0; i < g->nblock; i++)
		if (g->block[i].flags & in)
			reach(i, seen, stack, &n);
	while (n) {
		const struct an_block *b = &g->block[stack[--n]];

		if (exits(g, b))
			return true;
		reach(b->succ[0], seen, stack, &n);
		if (!dead_call(m, g, b->first + b->n - 1))
			reach(b->succ[1], seen, stack, &n);
		for (uint32_t k = 0; b->table != AN_NONE && k < g->table[b->table].ntarget; k++)
			reach(g->table[b->table].target[k], seen, stack, &n);
	}
	return false;
}

/* find_noret - order: groups, callees first where there is such an order. 0, or -1 when out of memory */
int find_noret(struct module *m, const uint32_t *order, uint32_t n)
{
	uint32_t most = 1;
	uint8_t *seen;
	uint32_t *stack;
	bool again = true;

	for (uint32_t i = 0; i < n; i++) {
		m->group[order[i]].sum->noret = false;
		if (m->group[order[i]].nblock > most)
			most = m->group[order[i]].nblock;
	}
	seen = malloc(most);
	stack = malloc(most * sizeof(*stack));
	while (again && seen && stack) {
		again = false;
		for (uint32_t i = 0; i < n; i++) {
			struct an_group *g = &m->group[order[i]];

			if (g->reason != MAP_OK || g->sum->noret || returns(m, g, seen, stack))
				continue;
			g->sum->noret = true;
			again = true;
		}
	}
	free(seen);
	free(stack);
	return again ? -1 : 0;
}
