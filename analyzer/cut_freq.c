/* SPDX-License-Identifier: MIT
 *
 * cut_freq.c - how often each block is expected to run, per activation of the group
 *
 * An entry runs once; a block passes its share on to its successors in equal parts, except that a
 * path that ends in a halt or a call that does not return gets nearly nothing; back edges are
 * left out and a loop runs ten times (at most four levels count). In units of CUT_ONCE.
 *
 * Inside of a loop the way out is rare: it is taken once in four rounds. Behind the loop it is not:
 * all that went in comes out. So there is a share per level: share k takes the edges that leave
 * loops of depth up to k as rare, all others as equal; a block's own is that of its depth.
 *
 *        depth 1          share 1                share 0
 *     ┌▶ a ──▶ out        a 1   out 1/4          a 1    out 1/2
 *     └─ b                b 3/4                  b 1/2
 */
#include <stdlib.h>
#include "cut.h"

struct freq {
	const struct gr *gr;
	uint32_t *order, n; /* postorder */
	uint8_t *seen, *dead;
	struct {
		uint32_t b, k;
	} * stack;
};

static uint32_t nsucc(const struct gr *gr, uint32_t b)
{
	const struct an_block *ab = &gr->g->block[b];

	return ab->table != AN_NONE ? gr->g->table[ab->table].ntarget : 2;
}

static uint32_t succ(const struct gr *gr, uint32_t b, uint32_t k)
{
	const struct an_block *ab = &gr->g->block[b];

	return ab->table != AN_NONE ? gr->g->table[ab->table].target[k] : ab->succ[k];
}

static void search(struct freq *f, uint32_t root)
{
	uint32_t d = 0;

	f->seen[root] = 1;
	f->stack[d].b = root;
	f->stack[d++].k = 0;
	while (d) {
		uint32_t b = f->stack[d - 1].b, to;

		if (f->stack[d - 1].k == nsucc(f->gr, b)) {
			f->order[f->n++] = b;
			d--;
			continue;
		}
		to = succ(f->gr, b, f->stack[d - 1].k++);
		if (to == AN_NONE || f->seen[to])
			continue;
		f->seen[to] = 1;
		f->stack[d].b = to;
		f->stack[d++].k = 0;
	}
}

/* does a block lead only to where control ends? Successors first: postorder. */
static bool is_dead(const struct freq *f, uint32_t b)
{
	uint8_t flow = gr_flow(f->gr, b);
	uint32_t live = 0, n = 0;

	for (uint32_t k = 0; k < nsucc(f->gr, b); k++) {
		uint32_t to = succ(f->gr, b, k);

		n += to != AN_NONE;
		live += to != AN_NONE && !f->dead[to];
	}
	if (flow == FLOW_HALT || gr_dead_call(f->gr, f->gr->g->block[b].first + f->gr->g->block[b].n - 1) ||
	    ((flow == FLOW_CALL || flow == FLOW_ICALL) && !n))
		return true;
	return n && !live && flow != FLOW_JCC && flow != FLOW_JMP;
}

#define LEVELS 5
#define STAY 3 /* to 1: a loop goes on */

static uint32_t depth(const struct freq *f, uint32_t b)
{
	uint32_t d = f->gr->g->block[b].depth;

	return d < LEVELS ? d : LEVELS - 1;
}

/* parts of b's share k that the edge to block `to` gets */
static int64_t parts(const struct freq *f, uint32_t b, uint32_t to, uint32_t k)
{
	return depth(f, to) < depth(f, b) && depth(f, to) < k ? 1 : STAY;
}

static void spread(const struct freq *f, int64_t (*w)[LEVELS])
{
	uint32_t *rank = (uint32_t *)f->stack; /* position in postorder: larger is earlier */

	for (uint32_t i = 0; i < f->n; i++)
		rank[f->order[i]] = i;
	for (uint32_t i = f->n; i-- > 0;) {
		uint32_t b = f->order[i];
		int64_t all[LEVELS] = {0};

		for (uint32_t k = 0; k < LEVELS && (f->gr->g->block[b].flags & AN_B_ENTRY); k++)
			w[b][k] = CUT_ONCE;
		for (uint32_t s = 0; s < nsucc(f->gr, b); s++) {
			uint32_t to = succ(f->gr, b, s);

			for (uint32_t k = 0; k < LEVELS && to != AN_NONE && rank[to] < i && !f->dead[to]; k++)
				all[k] += parts(f, b, to, k);
		}
		for (uint32_t s = 0; s < nsucc(f->gr, b); s++) {
			uint32_t to = succ(f->gr, b, s);

			for (uint32_t k = 0; k < LEVELS && to != AN_NONE && rank[to] < i && !f->dead[to]; k++)
				w[to][k] += w[b][k] * parts(f, b, to, k) / all[k];
		}
	}
}

/* cut_freq - CUT_ONCE times the runs of each block; NULL when out of memory. The caller frees it. */
int64_t *cut_freq(const struct gr *gr)
{
	static const int64_t loop[] = {1, 10, 100, 1000, 10000};
	uint32_t nb = gr->g->nblock;
	struct freq f = {.gr = gr};
	int64_t *w = calloc(nb + 1, sizeof(*w)), (*share)[LEVELS] = calloc(nb + 1, sizeof(*share));

	f.order = malloc((nb + 1) * sizeof(*f.order));
	f.seen = calloc(nb + 1, 1);
	f.dead = calloc(nb + 1, 1);
	f.stack = malloc((nb + 1) * sizeof(*f.stack));
	if (w && share && f.order && f.seen && f.dead && f.stack) {
		for (uint32_t i = 0; i < nb; i++)
			if (!f.seen[i])
				search(&f, i);
		for (uint32_t i = 0; i < f.n; i++)
			f.dead[f.order[i]] = is_dead(&f, f.order[i]);
		spread(&f, share);
		for (uint32_t i = 0; i < nb; i++) {
			uint32_t d = depth(&f, i);

			w[i] = (share[i][d] < 2 ? 2 : share[i][d]) * loop[d];
		}
	} else {
		free(w);
		w = NULL;
	}
	free(share);
	free(f.order);
	free(f.seen);
	free(f.dead);
	free(f.stack);
	return w;
}
