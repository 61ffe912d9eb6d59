/* SPDX-License-Identifier: MIT
 *
 * cut_freq.c - how often each block is expected to run, per activation of the group
 *
 * An entry runs once. A branch has a probability (cut_prob.c), a table jump goes to all its targets alike, and
 * what follows is the linear system
 *
 *   runs(b) = entry(b) + sum over predecessors p of runs(p) * probability(p -> b)
 *
 * solved by sweeps in reverse postorder: a sweep takes all forward edges at once, what goes back
 * enters the next one. Nesting, irreducible loops and interpreters, where everything is reached from
 * everything, need no special care; a loop without a way out grows by one a sweep. In units of CUT_ONCE.
 */
#include <stdlib.h>
#include "cut_freq.h"

#define SWEEPS 48
#define MOST 1e6 /* runs an activation: keeps capacities far from CUT_INF */
#define LEAST 2 /* of CUT_ONCE: nothing is free */

static uint32_t nsucc(const struct freq *f, uint32_t b)
{
	const struct an_block *ab = &f->gr->g->block[b];

	return ab->table != AN_NONE ? f->gr->g->table[ab->table].ntarget : 2;
}

static uint32_t succ(const struct freq *f, uint32_t b, uint32_t k)
{
	const struct an_block *ab = &f->gr->g->block[b];

	return ab->table != AN_NONE ? f->gr->g->table[ab->table].target[k] : ab->succ[k];
}

static void search(struct freq *f, uint32_t root)
{
	uint32_t d = 0;

	f->seen[root] = 1;
	f->stack[d].b = root;
	f->stack[d++].k = 0;
	while (d) {
		uint32_t b = f->stack[d - 1].b, to;

		if (f->stack[d - 1].k == nsucc(f, b)) {
			f->rank[b] = f->n;
			f->order[f->n++] = b;
			d--;
			continue;
		}
		to = succ(f, b, f->stack[d - 1].k++);
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

	for (uint32_t k = 0; k < nsucc(f, b); k++) {
		uint32_t to = succ(f, b, k);

		n += to != AN_NONE;
		live += to != AN_NONE && !f->dead[to];
	}
	if (flow == FLOW_HALT || gr_dead_call(f->gr, f->gr->g->block[b].first + f->gr->g->block[b].n - 1) ||
	    ((flow == FLOW_CALL || flow == FLOW_ICALL) && !n))
		return true;
	return n && !live && flow != FLOW_JCC && flow != FLOW_JMP;
}

static void order(struct freq *f)
{
	uint32_t nb = f->gr->g->nblock;

	/* from above, so that what goes back is what closes a loop */
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < nb; i++)
			if (!f->seen[i] && (pass || (f->gr->g->block[i].flags & AN_B_ENTRY)))
				search(f, i);
	for (uint32_t i = 0; i < f->n; i++)
		f->dead[f->order[i]] = is_dead(f, f->order[i]);
}

/* out - an edge to pass runs on over: in the sweep itself, or, where it closes a loop, in the next one */
static bool out(struct freq *f, uint32_t b, uint32_t to, double p)
{
	uint32_t c = f->capedge ? f->capedge * 2 : 256;
	void *q;

	if (to == AN_NONE)
		return true;
	if (f->nedge == f->capedge) {
		if (!(q = realloc(f->edge, c * sizeof(*f->edge))))
			return false;
		f->edge = q;
		f->capedge = c;
	}
	f->again |= f->rank[to] >= f->rank[b];
	f->edge[f->nedge++] = (struct freq_edge){p, f->rank[to] < f->rank[b] ? to : f->gr->g->nblock + to};
	return true;
}

/* all edges in the order of the sweeps: a sweep is one walk over an array */
static bool edges(struct freq *f)
{
	for (uint32_t i = f->n; i-- > 0;) {
		uint32_t b = f->order[i], n = nsucc(f, b);
		const struct an_block *ab = &f->gr->g->block[b];
		double p = f->taken[b];
		bool ok = true, jcc = gr_flow(f->gr, b) == FLOW_JCC;

		f->ways[b] = 1;
		if (ab->table != AN_NONE) {
			for (uint32_t k = 0; k < n; k++)
				ok &= out(f, b, succ(f, b, k), 1);
			f->ways[b] = n;
		} else {
			ok = out(f, b, ab->succ[0], jcc ? p : 1) && out(f, b, ab->succ[1], jcc ? 1 - p : 1);
		}
		if (!ok)
			return false;
		f->last_edge[i] = f->nedge;
	}
	return true;
}

/* sweep - returns by how much the runs changed, as a part of their sum */
static double sweep(struct freq *f)
{
	double change = 0, sum = 0;
	uint32_t nb = f->gr->g->nblock;
	const struct freq_edge *e = f->edge;

	memcpy(f->last, f->runs, nb * sizeof(*f->runs));
	for (uint32_t b = 0; b < nb; b++) {
		f->runs[b] = f->runs[nb + b] + (f->gr->g->block[b].flags & AN_B_ENTRY ? 1 : 0);
		f->runs[nb + b] = 0;
	}
	for (uint32_t i = f->n; i-- > 0;) {
		uint32_t b = f->order[i];
		double w = f->ways[b] == 1 ? f->runs[b] : f->runs[b] / f->ways[b];

		for (; e < f->edge + f->last_edge[i]; e++)
			f->runs[e->to] += w * e->p;
		sum += f->runs[b];
	}
	for (uint32_t b = 0; b < nb; b++)
		change += f->runs[b] > f->last[b] ? f->runs[b] - f->last[b] : f->last[b] - f->runs[b];
	return f->again ? change / (sum + 1e-9) : 0;
}

static bool alloc(struct freq *f)
{
	size_t n = f->gr->g->nblock + 1;

	f->order = malloc(n * sizeof(*f->order));
	f->rank = calloc(n, sizeof(*f->rank));
	f->seen = calloc(n, 1);
	f->dead = calloc(n, 1);
	f->stack = malloc(n * sizeof(*f->stack));
	f->taken = calloc(n, sizeof(*f->taken));
	f->runs = calloc(2 * n, sizeof(*f->runs));
	f->last = calloc(n, sizeof(*f->last));
	f->ways = calloc(n, sizeof(*f->ways));
	f->last_edge = calloc(n, sizeof(*f->last_edge));
	return f->order && f->rank && f->seen && f->dead && f->stack && f->taken && f->runs && f->last &&
	       f->ways && f->last_edge;
}

/* cut_freq - CUT_ONCE times the runs of each block; NULL when out of memory. The caller frees it. */
int64_t *cut_freq(const struct gr *gr)
{
	uint32_t nb = gr->g->nblock;
	struct freq f = {.gr = gr};
	int64_t *w = calloc(nb + 1, sizeof(*w));
	bool ok = w && alloc(&f);

	if (ok) {
		order(&f);
		for (uint32_t b = 0; b < nb; b++)
			if (gr_flow(gr, b) == FLOW_JCC)
				f.taken[b] = prob_taken(&f, b);
		ok = edges(&f);
	}
	if (ok) {
		for (int i = 0; i < SWEEPS && sweep(&f) > 0.003; i++)
			;
		for (uint32_t b = 0; b < nb; b++) {
			double r = f.runs[b] > MOST ? MOST : f.runs[b];

			w[b] = (int64_t)(r * CUT_ONCE) < LEAST ? LEAST : (int64_t)(r * CUT_ONCE);
		}
	} else {
		free(w);
		w = NULL;
	}
	free(f.order);
	free(f.rank);
	free(f.seen);
	free(f.dead);
	free(f.stack);
	free(f.taken);
	free(f.runs);
	free(f.ways);
	free(f.last_edge);
	free(f.edge);
	free(f.last);
	return w;
}
