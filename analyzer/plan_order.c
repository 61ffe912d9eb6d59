/* SPDX-License-Identifier: MIT
 *
 * plan_order.c - in which order the groups of a call cycle are summed up, and from what they start
 *
 * A group that is planned before one of its callees has to be planned again. In a cycle some group is
 * first; the others need not suffer for it. So, as long as there is one: a group all of whose callees have
 * had their turn. If there is none, one goes before its turn on whose turn the most cycles wait, for its size:
 *
 *   hub ──▶ a ──▶ b ──▶ hub        hub first, with a's summary unknown; then b, a, c, once each;
 *    ▲                   │         hub again, and if that changes nothing, that was all
 *    └─────── c ◀────────┘         (at once, before what is not on the cycle)
 *
 * How many, nobody knows; calls that wait for it, times those that it waits for, is a good guess. A group that no
 * waiting group calls any more, or only such ones, is on no cycle and never goes before its turn.
 * (Greedy: the smallest set of such groups is the feedback vertex set problem, which is NP-hard.)
 */
#include <stdlib.h>
#include "plan_order.h"

struct order {
	const struct module *m;
	const uint32_t *comp, *g;
	uint32_t n;
	uint32_t *place; /* index in g[] of a group of the module */
	uint32_t *at, *caller; /* callers of g[i]: caller[at[i]] .. caller[at[i + 1]], indices in g[] */
	uint32_t *left; /* calls of g[i] that wait for their callee's turn */
	uint32_t *up; /* calls of g[i] by groups that wait and may be on a cycle */
	uint8_t *gone; /* had its turn, or is on no cycle */
	struct rank {
		uint32_t i, ninsn;
		uint64_t ways;
	} * heap; /* those that may go before their turn, the best first. Ranks only get worse: they are looked at again
	             when they come up */
	uint32_t nheap;
	uint32_t *stack; /* of go() */
	uint32_t *ready, nready; /* all of whose callees have had their turn */
	struct order_turn *out;
	uint32_t nout;
	uint8_t *done, *early;
};

/* callee k of g[i] is another group of the component: its index in g[], else AN_NONE */
static uint32_t inner(const struct order *o, uint32_t i, uint32_t k)
{
	uint32_t to = o->m->group[o->g[i]].callee[k].group;

	return to != o->g[i] && o->comp[to] == o->comp[o->g[i]] ? o->place[to] : AN_NONE;
}

static uint32_t ncallee(const struct order *o, uint32_t i)
{
	return o->m->group[o->g[i]].ncallee;
}

static uint32_t count_calls(struct order *o)
{
	uint32_t c, all = 0;

	for (uint32_t i = 0; i < o->n; i++)
		for (uint32_t k = 0; k < ncallee(o, i); k++)
			if ((c = inner(o, i, k)) != AN_NONE) {
				o->at[c + 2]++;
				o->left[i]++;
				all++;
			}
	return all;
}

static void link_callers(struct order *o)
{
	uint32_t c;

	for (uint32_t i = 0; i < o->n; i++)
		o->at[i + 2] += o->at[i + 1];
	for (uint32_t i = 0; i < o->n; i++)
		for (uint32_t k = 0; k < ncallee(o, i); k++)
			if ((c = inner(o, i, k)) != AN_NONE)
				o->caller[o->at[c + 1]++] = i;
}

/* ---- the heap ---- */

static bool better(const struct rank *x, const struct rank *y)
{
	uint64_t l = x->ways * y->ninsn, r = y->ways * x->ninsn;

	return l != r ? l > r : x->i < y->i;
}

static void sift(struct order *o, uint32_t k)
{
	struct rank x = o->heap[k];

	for (uint32_t c; (c = 2 * k + 1) < o->nheap; k = c) {
		if (c + 1 < o->nheap && better(&o->heap[c + 1], &o->heap[c]))
			c++;
		if (!better(&o->heap[c], &x))
			break;
		o->heap[k] = o->heap[c];
	}
	o->heap[k] = x;
}

static struct rank rank_of(const struct order *o, uint32_t i)
{
	return (struct rank){i, o->m->group[o->g[i]].ninsn, (uint64_t)o->up[i] * o->left[i]};
}

static void rank_all(struct order *o)
{
	for (uint32_t i = 0; i < o->n; i++)
		o->heap[i] = rank_of(o, i);
	o->nheap = o->n;
	for (uint32_t i = o->n / 2; i-- > 0;)
		sift(o, i);
}

/* the best of those that wait and may be on a cycle: there is one when nobody's turn has come */
static uint32_t best(struct order *o)
{
	for (;;) {
		struct rank top = o->heap[0];

		if (o->gone[top.i]) {
			o->heap[0] = o->heap[--o->nheap];
			sift(o, 0);
			continue;
		}
		o->heap[0] = rank_of(o, top.i);
		if (o->heap[0].ways == top.ways)
			return top.i;
		sift(o, 0);
	}
}

/* ---- turns ---- */

/* g[i] does not wait any more, or is on no cycle: neither are those that only such groups call */
static void go(struct order *o, uint32_t i)
{
	uint32_t c, n = 0;

	if (o->gone[i])
		return;
	o->gone[i] = 1;
	o->stack[n++] = i;
	while (n) {
		i = o->stack[--n];
		for (uint32_t k = 0; k < ncallee(o, i); k++)
			if ((c = inner(o, i, k)) != AN_NONE && !--o->up[c] && !o->gone[c]) {
				o->gone[c] = 1;
				o->stack[n++] = c;
			}
	}
}

/* g[i]'s turn: whoever waited for it alone is next. What went before its turn gets another one then, and at once: it
 * knows all its callees now, and what it says of itself, those that come after it need not hear too late. */
static void turn(struct order *o, uint32_t i, bool early)
{
	o->out[o->nout++] = (struct order_turn){o->g[i], early};
	o->early[i] = early;
	o->done[i] = 1;
	go(o, i);
	for (uint32_t k = o->at[i]; k < o->at[i + 1]; k++) {
		uint32_t c = o->caller[k];

		if (--o->left[c])
			continue;
		if (!o->done[c])
			o->ready[o->nready++] = c;
		else if (o->early[c])
			o->out[o->nout++] = (struct order_turn){o->g[c], false};
	}
}

bool order_itself(const struct an_group *g)
{
	for (uint32_t k = 0; k < g->ncallee; k++)
		if (g->callee[k].group == g->id)
			return true;
	return false;
}

static void all_turns(struct order *o)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < o->n; i++)
		if (!o->left[i])
			o->ready[o->nready++] = i;
	for (uint32_t k = 0; k < o->n; k++)
		if (next < o->nready)
			turn(o, o->ready[next++], false);
		else
			turn(o, best(o), true);
}

int order_cycle(const struct module *m, const uint32_t *comp, uint32_t *place, const uint32_t *g, uint32_t n,
		struct order_turn *out, uint32_t *nout)
{
	struct order o = {.m = m, .comp = comp, .g = g, .n = n, .place = place, .out = out};
	uint32_t *w = calloc(5 * (size_t)n + 2, sizeof(*w));
	int r = -1;

	o.done = calloc(3 * (size_t)n, 1);
	o.heap = malloc(n * sizeof(*o.heap));
	if (!w || !o.done || !o.heap)
		goto out;
	o.gone = o.done + n;
	o.early = o.gone + n;
	o.left = w;
	o.ready = w + n;
	o.up = w + 2 * n;
	o.stack = w + 3 * n;
	o.at = w + 4 * n;
	for (uint32_t i = 0; i < n; i++)
		place[g[i]] = i;
	o.caller = malloc((count_calls(&o) + 1) * sizeof(*o.caller));
	if (!o.caller)
		goto out;
	link_callers(&o);
	for (uint32_t i = 0; i < n; i++)
		o.up[i] = o.at[i + 1] - o.at[i];
	rank_all(&o);
	all_turns(&o);
	*nout = o.nout;
	r = 0;
out:
	free(o.caller);
	free(o.heap);
	free(o.done);
	free(w);
	return r;
}

/* what the group's own instructions add to maywrite (plan_sum.c), calls of the module's groups aside */
static uint32_t own(const struct module *m, const struct an_group *g)
{
	uint32_t set = g->sum->tailx ? GR_CALLER_SAVED : g->sum->ownwrite & GR_CALLER_SAVED;

	for (uint32_t b = 0; b < g->nblock; b++) {
		uint32_t last = g->block[b].first + g->block[b].n - 1;
		uint8_t flow = g->insn[last].flow;

		if (flow == FLOW_ICALL || (flow == FLOW_CALL && glue_call(m, g, last) == CALL_EXT))
			set |= GR_CALLER_SAVED;
		else if (flow == FLOW_SYSCALL)
			set |= 1u << SEM_RAX | 1u << SEM_RCX | 1u << SEM_R11;
	}
	return set;
}

void order_seed(struct module *m, const uint32_t *g, uint32_t n)
{
	bool again = true;

	for (uint32_t i = 0; i < n; i++)
		if (m->group[g[i]].reason == MAP_OK)
			m->group[g[i]].sum->maywrite = own(m, &m->group[g[i]]);
	while (again) {
		again = false;
		for (uint32_t i = 0; i < n; i++) {
			const struct an_group *ag = &m->group[g[i]];
			uint32_t set = ag->sum->maywrite;

			if (ag->reason != MAP_OK)
				continue;
			for (uint32_t k = 0; k < ag->ncallee; k++)
				set |= m->group[ag->callee[k].group].sum->maywrite & GR_CALLER_SAVED;
			again |= set != ag->sum->maywrite;
			ag->sum->maywrite = set;
		}
	}
}
