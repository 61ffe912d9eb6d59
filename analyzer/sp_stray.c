/* SPDX-License-Identifier: MIT
 *
 * sp_stray.c - code that would be wrong if what it calls kept to the psABI
 *
 * Code that is not analysed is assumed to come back with rsp as the psABI says.
 * Compiled code relies on that itself. Code that is right only where this is not so, written by hand, calls code of other rules:
 * what a Lisp's compiler makes at run time takes arguments off the stack, or leaves values on it. It shows, if the
 * assumption is made:
 *
 *   - rsp is at a known height at a ret, but not where the return address is
 *   - a pop takes the value of one callee-saved register, or an address of the frame, into another one
 *   - rsp is set to what is no address of the stack
 *   - a loop leaves the stack higher or lower than it found it
 *
 * What does not show it: a frame with rbp that never looks at rsp again before it is given back. The decoder then
 * goes by rbp.
 */
#include <stdlib.h>
#include "sp.h"

/* calls that may run code which is not seen, and of which nobody has said that they stray */
static bool calls_unseen(const struct gr *gr)
{
	for (uint32_t i = 0; i < gr->g->nblock; i++) {
		const struct an_block *b = &gr->g->block[i];
		uint32_t last = b->first + b->n - 1;
		uint8_t flow = gr->g->insn[last].flow;

		if ((flow == FLOW_CALL || flow == FLOW_ICALL) && b->succ[1] != AN_NONE &&
		    glue_call(gr->m, gr->g, last) != CALL_DIRECT && !glue_strays(gr->m, gr->g, last))
			return true;
	}
	return false;
}

/* the first three, on the states that the fixpoint has come to */
static bool contradicts(struct sp *sp)
{
	const struct gr *gr = sp->gr;

	for (uint32_t i = 0; i < gr->g->nblock; i++) {
		const struct gr_block *b = &gr->b[i];
		bool out = b->sp_saw & SP_RETURNS;

		if (!sp->in[i].seen || (!out && !sp->switches))
			continue;
		if ((b->sp_saw & (SP_SWITCH | SP_MISPOP)) || (out && (b->sp_lost >> SEM_RSP & 1)))
			return true;
	}
	return false;
}

static bool other_height(const struct sp_state *x, const struct sp_state *y)
{
	return av_entry(x->r[SEM_RSP]) && av_entry(y->r[SEM_RSP]) && !av_same(x->r[SEM_RSP], y->r[SEM_RSP]);
}

static bool leads(const uint32_t *parent, uint32_t from, uint32_t to)
{
	while (to != AN_NONE && to != from)
		to = parent[to];
	return to == from;
}

/* Each block is run once, with the state of the first way to it. An edge that leads back to a block on that way must find rsp
 * at the same height. Edges across say nothing: behind a call that does not come back, which nobody may know, there is
 * other code, with a frame of its own. */
static bool loops(struct sp *sp, uint32_t *parent, uint32_t *todo)
{
	const struct an_group *g = sp->gr->g;
	uint32_t n = 0;
	struct sp_state s;

	for (uint32_t i = 0; i < g->nblock; i++) {
		parent[i] = AN_NONE;
		sp->in[i].seen = (g->block[i].flags & AN_B_ENTRY) && !g->block[i].npred;
		if (!sp->in[i].seen)
			continue;
		sp_entry(&sp->in[i]);
		sp->in[i].seen = true;
		todo[n++] = i;
	}
	while (n) {
		uint32_t b = todo[--n];

		sp_block(sp, b, &s);
		for (int k = 0; k < 2; k++) {
			uint32_t to = g->block[b].succ[k];

			if (to == AN_NONE ||
			    (k == 1 && gr_dead_call(sp->gr, g->block[b].first + g->block[b].n - 1)))
				continue;
			if (sp->in[to].seen) {
				if (other_height(&sp->in[to], &s) && leads(parent, to, b))
					return true;
				continue;
			}
			sp_copy(&sp->in[to], &s);
			sp->in[to].seen = true;
			parent[to] = b;
			todo[n++] = to;
		}
	}
	return false;
}

static bool uneven_loop(struct sp *sp)
{
	uint32_t n = sp->gr->g->nblock + 1, *b = scratch(2 * n * sizeof(*b));
	struct sp was = *sp;
	bool found;

	sp->in = scratch(n * sizeof(*sp->in));
	if (!b || !sp->in)
		abort();
	found = loops(sp, b, b + n);
	*sp = was;
	sp->unsettled = true; /* what blocks have noted is of these states */
	return found;
}

bool sp_astray(struct sp *sp)
{
	return calls_unseen(sp->gr) && (contradicts(sp) || (sp->uneven && uneven_loop(sp)));
}
