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

/* where a block leads, *n ways: AN_NONE among them */
static inline const uint32_t *succ(const struct freq *f, uint32_t b, uint32_t *n)
{
	const struct an_block *ab = &f->gr->g->block[b];

	*n = ab->table != AN_NONE ? f->gr->g->table[ab->table].ntarget : 2;
	return ab->table != AN_NONE ? f->gr->g->table[ab->table].target : ab->succ;
}

static struct freq_way enter(struct freq *f, uint32_t b)
{
	struct freq_way w = {.b = b};

	f->seen[b] = 1;
	w.to = succ(f, b, &w.n);
	return w;
}

static void search(struct freq *f, uint32_t root)
{
	struct freq_way *w = f->stack;

	*w = enter(f, root);
	for (;;) {
		if (w->n) {
			uint32_t to = *w->to++;

			w->n--;
			if (to != AN_NONE && !f->seen[to])
				*++w = enter(f, to);
			continue;
		}
		f->rank[w->b] = f->n;
		f->order[f->n++] = w->b;
		if (w == f->stack)
			return;
		w--;
	}
}

/* does a block lead only to where control ends? Successors first: postorder. */
static bool is_dead(const struct freq *f, uint32_t b)
{
	uint8_t flow = gr_flow(f->gr, b);
	uint32_t live = 0, n = 0, nway;
	const uint32_t *to = succ(f, b, &nway);

	for (uint32_t k = 0; k < nway; k++) {
		n += to[k] != AN_NONE;
		live += to[k] != AN_NONE && !f->dead[to[k]];
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
		uint32_t n_;                                                                                 \
		const uint32_t *to_ = succ(f, from, &n_);                                                    \
                                                                                                             \
		for (uint32_t k_ = 0; k_ < n_; k_++) {                                                       \
			uint32_t to = to_[k_];                                                               \
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
	const struct freq_node *x = &f->node[b];
	bool only = x->end - x->first == 1 && !x->back && p == 1 && f->node[from].ways == 1;

	return only && x->ways == 1 ? f->same[from] : b;
}

static bool is_entry(const struct freq *f, uint32_t b)
{
	return f->gr->g->block[b].flags & AN_B_ENTRY;
}

static struct freq_edge edge(const struct freq_node *to, uint32_t at, uint32_t from, double p)
{
	return (struct freq_edge){p, from, at + 1 == to->end};
}

/* Room for the edges of each block, in the order of the sweeps. What comes from outside is there: none, where nobody
 * comes. */
static bool edge_room(struct freq *f)
{
	uint32_t nb = f->gr->g->nblock, n = 0;

	for (uint32_t b = 0; b < nb; b++)
		n += f->node[b].end + 1;
	f->edge = scratch(n * sizeof(*f->edge));
	if (!f->edge)
		return false;
	n = 0;
	for (uint32_t i = f->n; i-- > 0;) {
		uint32_t b = f->order[i];
		struct freq_node *x = &f->node[b];
		bool outside = is_entry(f, b) || !x->end;

		x->ways = f->gr->g->block[b].table != AN_NONE
				  ? f->gr->g->table[f->gr->g->block[b].table].ntarget
				  : 1;
		x->count = 1;
		x->first = n;
		x->end = n += x->end + outside;
		f->same[b] = b;
		if (outside)
			f->edge[x->first + x->back] = edge(x, x->first + x->back, nb, is_entry(f, b));
	}
	f->out[nb] = 1;
	return true;
}

/* Edges by target, each kind in the order of the sweeps. */
static bool edges(struct freq *f)
{
	uint32_t nb = f->gr->g->nblock, *back = f->seen, *ahead = f->fill;

	EACH_EDGE(f, from, to, p, {
		(void)p;
		f->node[to].end++;
		f->node[to].back += goes_back(f, from, to);
	})
	if (!edge_room(f))
		return false;
	for (uint32_t b = 0; b < nb; b++) {
		back[b] = f->node[b].first;
		ahead[b] = back[b] + f->node[b].back + is_entry(f, b);
	}
	/* sources before targets, but for what goes back */
	EACH_EDGE(f, from, to, p, {
		uint32_t at = goes_back(f, from, to) ? back[to]++ : ahead[to]++;

		f->edge[at] = edge(&f->node[to], at, f->same[from], p);
		f->same[to] = alike(f, to, from, p);
	})
	return true;
}

/* sweep - over n blocks and their edges, one after the other. Returns by how much the runs changed, as a part of their sum */
static double sweep(struct freq *f, const uint32_t *block, uint32_t n, double rest)
{
	const struct freq_edge *e = f->edge;
	double change = 0, sum = rest, *out = f->out;

	for (uint32_t i = 0; i < n; i++) {
		struct freq_node *x = &f->node[block[i]];
		double r = 0;

		do
			r += out[e->from] * e->p;
		while (!e++->last);
		change += x->count * __builtin_fabs(r - x->runs);
		sum += x->count * r;
		x->runs = r;
		out[block[i]] = x->ways == 1 ? r : r / x->ways;
	}
	return change / (sum + 1e-9);
}

static bool in_loop(const struct freq *f, uint32_t b)
{
	bool loop = f->node[b].back;

	for (uint32_t k = f->node[b].first; k < f->node[b].end; k++)
		loop |= f->node[f->edge[k].from].loop;
	return loop;
}

/* the blocks of loops, and behind them, that have runs of their own, and their edges, in line; returns how many. *rest: the
 * sum of the others' runs */
static uint32_t loops(struct freq *f, uint32_t *block, double *rest)
{
	struct freq_edge *e = f->edge;
	uint32_t n = 0;

	for (uint32_t i = f->n; i-- > 0;) {
		uint32_t b = f->order[i];
		struct freq_node *x = &f->node[b];

		x->loop = in_loop(f, b);
		if (!x->loop) {
			*rest += x->runs;
		} else if (f->same[b] != b) {
			f->node[f->same[b]].count++;
		} else {
			block[n++] = b;
			memmove(e, f->edge + x->first, (x->end - x->first) * sizeof(*e));
			e += x->end - x->first;
		}
	}
	return n;
}

static void sweeps(struct freq *f)
{
	uint32_t *block = f->seen, n = 0;
	double rest = 0;

	for (uint32_t i = f->n; i-- > 0;)
		block[n++] = f->order[i];
	if (sweep(f, block, n, 0) <= 0.003)
		return;
	n = loops(f, block, &rest);
	for (int i = 1; n && i < SWEEPS && sweep(f, block, n, rest) > 0.003; i++)
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
	f->out = scratch_zero(n * sizeof(*f->out));
	f->same = scratch(n * sizeof(*f->same));
	f->fill = scratch(n * sizeof(*f->fill));
	return f->rank && f->seen && f->dead && f->stack && f->taken && f->node && f->out && f->same &&
	       f->fill;
}

int cut_freq(struct gr *gr)
{
	uint32_t nb = gr->g->nblock;
	struct freq f = {.gr = gr};
	struct scratch_mark mark;
	bool ok;

	if (gr->freq)
		return 0;
	gr->freq = scratch((nb + 1) * sizeof(*gr->freq));
	gr->backward = f.order = scratch((nb + 1) * sizeof(*f.order));
	mark = scratch_mark();
	ok = gr->freq && f.order && alloc(&f);
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
			int64_t w = (int64_t)(most * CUT_ONCE);

			gr->freq[b] = w < LEAST ? LEAST : w;
		}
	}
	scratch_release(mark);
	return ok ? 0 : -1;
}
