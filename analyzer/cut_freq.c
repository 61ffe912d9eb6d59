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
 *
 * Blocks outside of all loops, and not behind one, stay as the first sweep leaves them. What one other block alone
 * leads to, and always, runs as often as that: it only counts for how much has changed.
 */
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

/* f(source, target, probability of this way) for all edges, in the order of a sweep */
#define EACH_EDGE(f, from, to, p, ...)                                                                       \
	for (uint32_t i_ = (f)->n; i_-- > 0;) {                                                              \
		uint32_t from = (f)->order[i_];                                                              \
		bool jcc_ = gr_flow((f)->gr, from) == FLOW_JCC;                                              \
                                                                                                             \
		for (uint32_t k_ = 0, n_ = nsucc(f, from); k_ < n_; k_++) {                                  \
			uint32_t to = succ(f, from, k_);                                                     \
			double p = !jcc_ ? 1 : k_ ? 1 - (f)->taken[from] : (f)->taken[from];                 \
                                                                                                             \
			if (to != AN_NONE) {                                                                 \
				__VA_ARGS__                                                                  \
			}                                                                                    \
		}                                                                                            \
	}

static bool goes_back(const struct freq *f, uint32_t from, uint32_t to)
{
	return f->rank[to] >= f->rank[from];
}

/* the block whose runs are all those of b, as far as is known; b itself if it has runs of its own */
static uint32_t alike(const struct freq *f, uint32_t b, uint32_t from, double p)
{
	bool only = f->first[b + 1] - f->first[b] == 1 && p == 1 && f->node[from].ways == 1;

	return only && f->node[b].ways == 1 && !(f->gr->g->block[b].flags & AN_B_ENTRY) &&
			       !goes_back(f, from, b)
		       ? f->same[from]
		       : b;
}

/* Edges by target: first those ahead, then those that go back, each in the order of the sweeps. */
static bool edges(struct freq *f)
{
	uint32_t nb = f->gr->g->nblock;

	EACH_EDGE(f, from, to, p, {
		(void)from;
		(void)p;
		f->first[to + 1]++;
	})
	for (uint32_t b = 0; b < nb; b++) {
		f->first[b + 1] += f->first[b];
		f->node[b].end = f->first[b];
		f->node[b].ways = f->gr->g->block[b].table != AN_NONE ? nsucc(f, b) : 1;
		f->same[b] = b;
	}
	f->edge = scratch((f->first[nb] + 1) * sizeof(*f->edge));
	if (!f->edge)
		return false;
	/* sources before targets, but for what goes back */
	EACH_EDGE(f, from, to, p, {
		struct freq_node *x = &f->node[to];

		f->edge[x->end++] = (struct freq_edge){p, f->same[from]};
		f->same[to] = alike(f, to, from, p);
		x->back += goes_back(f, from, to);
	})
	return true;
}

/* one block's runs from those of the blocks before it. The sum of what goes back comes first. */
static double inflow(const struct freq *f, uint32_t b)
{
	const struct freq_node *x = &f->node[b];
	const struct freq_edge *ahead = f->edge + f->first[b], *end = f->edge + x->end, *back = end - x->back;
	double r = 0;

	for (const struct freq_edge *e = back; e < end; e++)
		r += f->node[e->from].out * e->p;
	r += x->entry;
	for (const struct freq_edge *e = ahead; e < back; e++)
		r += f->node[e->from].out * e->p;
	return r;
}

/* sweep - over n blocks. Returns by how much the runs changed, as a part of their sum */
static double sweep(struct freq *f, const uint32_t *block, uint32_t n, double rest)
{
	double change = 0, sum = rest;

	for (uint32_t i = 0; i < n; i++) {
		struct freq_node *x = &f->node[block[i]];
		double r = inflow(f, block[i]);

		change += x->count * (r > x->runs ? r - x->runs : x->runs - r);
		sum += x->count * r;
		x->runs = r;
		x->out = x->ways == 1 ? r : r / x->ways;
	}
	return change / (sum + 1e-9);
}

static bool in_loop(const struct freq *f, uint32_t b)
{
	bool loop = f->node[b].back;

	for (uint32_t k = f->first[b]; k < f->node[b].end; k++)
		loop |= f->node[f->edge[k].from].loop;
	return loop;
}

static void sweeps(struct freq *f)
{
	uint32_t *block = f->seen, n = 0, nloop = 0;
	double rest = 0;

	for (uint32_t i = f->n; i-- > 0;) {
		uint32_t b = f->order[i];

		f->node[f->same[b]].count++;
		f->node[b].entry = f->gr->g->block[b].flags & AN_B_ENTRY ? 1 : 0;
		f->node[b].loop = in_loop(f, b);
		if (f->same[b] == b)
			block[n++] = b;
	}
	if (sweep(f, block, n, 0) <= 0.003)
		return;
	for (uint32_t i = 0; i < n; i++)
		if (f->node[block[i]].loop)
			block[nloop++] = block[i];
		else
			rest += f->node[block[i]].count * f->node[block[i]].runs;
	for (int i = 1; nloop && i < SWEEPS && sweep(f, block, nloop, rest) > 0.003; i++)
		;
}

static bool alloc(struct freq *f)
{
	size_t n = f->gr->g->nblock + 1;

	f->rank = scratch(n * sizeof(*f->rank));
	f->seen = scratch_zero(n * sizeof(*f->seen));
	f->dead = scratch_zero(n);
	f->stack = scratch(n * sizeof(*f->stack));
	f->taken = scratch(n * sizeof(*f->taken));
	f->node = scratch_zero(n * sizeof(*f->node));
	f->same = scratch(n * sizeof(*f->same));
	f->first = scratch_zero((n + 1) * sizeof(*f->first));
	return f->rank && f->seen && f->dead && f->stack && f->taken && f->node && f->same && f->first;
}

/* cut_freq - CUT_ONCE times the runs of each block, in scratch memory; NULL when out of it. *order: the blocks, what
 * a block leads to before it, but for what goes back */
int64_t *cut_freq(const struct gr *gr, uint32_t **order_)
{
	uint32_t nb = gr->g->nblock;
	int64_t *w = scratch((nb + 1) * sizeof(*w));
	struct freq f = {.gr = gr, .order = scratch((nb + 1) * sizeof(*f.order))};
	struct scratch_mark mark = scratch_mark();
	bool ok = w && f.order && alloc(&f);

	if (ok) {
		order(&f);
		for (uint32_t b = 0; b < nb; b++)
			if (gr_flow(gr, b) == FLOW_JCC)
				f.taken[b] = prob_taken(&f, b);
		ok = edges(&f);
	}
	if (ok) {
		sweeps(&f);
		for (uint32_t b = 0; b < nb; b++) {
			double r = f.node[f.same[b]].runs, most = r > MOST ? MOST : r;

			w[b] = (int64_t)(most * CUT_ONCE) < LEAST ? LEAST : (int64_t)(most * CUT_ONCE);
		}
	}
	scratch_release(mark);
	*order_ = f.order;
	return ok ? w : NULL;
}
