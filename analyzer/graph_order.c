/* SPDX-License-Identifier: MIT
 *
 * graph_order.c - in which order a pass visits the blocks of a group, and those to be visited again
 *
 * Reverse postorder of a depth-first walk: but for loops, a block comes after all that lead to it, and a loop's blocks follow
 * its head. The first block that waits is visited next, so that a loop has come to rest before what follows it is
 * looked at.
 */
#include "graph_order.h"

struct walk {
	const struct gr *gr;
	uint32_t *stack, *edge; /* blocks on the way; the next of their edges */
	uint32_t n, left; /* left: places that are free, the last ones are taken first */
	uint8_t *seen, *class; /* blocks; classes of tables, whose targets are taken once */
};

static void enter(struct walk *w, uint32_t b)
{
	if (b == AN_NONE || w->seen[b])
		return;
	w->seen[b] = 1;
	w->stack[w->n] = b;
	w->edge[w->n++] = 0;
}

/* the targets of the table that ends block b, if they have not been taken yet */
static const struct an_table *targets(struct walk *w, const struct an_block *b, uint32_t edge)
{
	const struct an_group *g = w->gr->g;
	uint32_t class;

	if (b->table == AN_NONE)
		return NULL;
	class = w->gr->class[b->table];
	if (edge == 0 && w->class[class])
		return NULL;
	w->class[class] = 1;
	return &g->table[b->table];
}

/* from a root: what falls through is entered last, so it comes first */
static void walk(struct walk *w, uint32_t root, uint32_t *order, uint32_t *place)
{
	enter(w, root);
	while (w->n) {
		uint32_t bi = w->stack[w->n - 1], e = w->edge[w->n - 1]++;
		const struct an_block *b = &w->gr->g->block[bi];
		const struct an_table *t;

		if (b->table != AN_NONE && (t = targets(w, b, e)) && e < t->ntarget) {
			enter(w, t->target[t->ntarget - 1 - e]);
		} else if (b->table == AN_NONE && e < 2) {
			enter(w, b->succ[e]);
		} else {
			w->n--;
			order[--w->left] = bi;
			place[bi] = w->left;
		}
	}
}

bool gr_order(struct gr *gr)
{
	uint32_t nb = gr->g->nblock;
	struct walk w = {.gr = gr, .left = nb};
	struct scratch_mark m;

	gr->order = scratch(nb * sizeof(uint32_t));
	gr->place = scratch(nb * sizeof(uint32_t));
	gr->wait = scratch_zero((nb / 64 + 1) * sizeof(uint64_t));
	m = scratch_mark();
	w.stack = scratch(nb * sizeof(uint32_t));
	w.edge = scratch(nb * sizeof(uint32_t));
	w.seen = scratch_zero(nb + gr->g->ntable + 1);
	if (!gr->order || !gr->place || !gr->wait || !w.stack || !w.edge || !w.seen)
		return false;
	w.class = w.seen + nb;
	/* from where control comes in, then cycles that nothing leads to */
	for (uint32_t i = nb; i-- > 0;)
		if ((gr->g->block[i].flags & AN_B_ENTRY) || !gr->g->block[i].npred)
			walk(&w, i, gr->order, gr->place);
	for (uint32_t i = nb; i-- > 0;)
		walk(&w, i, gr->order, gr->place);
	scratch_release(m);
	return true;
}
