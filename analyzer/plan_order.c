/* SPDX-License-Identifier: MIT
 *
 * plan_order.c - in which order the groups of a call cycle are summed up, and from what they start
 *
 * A group that is planned before one of its callees has to be planned again. In a cycle some group is
 * first; the others need not suffer for it. So, as long as there is one: a group all of whose callees have
 * had their turn. If there is none, the one with the most calls for its size goes before its turn:
 *
 *   hub ──▶ a ──▶ b ──▶ hub        hub first, with a's summary unknown; then b, a, c, once each;
 *    ▲                   │         hub again, and if that changes nothing, that was all
 *    └─────── c ◀────────┘
 *
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
	struct rank {
		uint32_t i, calls, ninsn;
	} * rank; /* all of g[], by calls for the size */
	uint32_t next; /* in rank[]: those before have had their turns */
	uint32_t *out, nout; /* indices in g[], in the order to be */
	uint8_t *done;
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

static int by_rank(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;
	uint64_t l = (uint64_t)x->calls * y->ninsn, r = (uint64_t)y->calls * x->ninsn;

	return l != r ? (l < r) - (l > r) : (x->i > y->i) - (x->i < y->i);
}

static void rank_all(struct order *o)
{
	for (uint32_t i = 0; i < o->n; i++)
		o->rank[i] = (struct rank){i, o->at[i + 1] - o->at[i], o->m->group[o->g[i]].ninsn};
	qsort(o->rank, o->n, sizeof(*o->rank), by_rank);
}

static void turn(struct order *o, uint32_t i)
{
	o->done[i] = 1;
	o->out[o->nout++] = i;
}

bool order_itself(const struct an_group *g)
{
	for (uint32_t k = 0; k < g->ncallee; k++)
		if (g->callee[k].group == g->id)
			return true;
	return false;
}

static void all_turns(struct order *o, uint8_t *first)
{
	for (uint32_t i = 0; i < o->n; i++)
		if (!o->left[i])
			turn(o, i);
	for (uint32_t q = 0; q < o->n; q++) {
		while (q == o->nout)
			if (!o->done[o->rank[o->next++].i])
				turn(o, o->rank[o->next - 1].i);
		uint32_t i = o->out[q];

		first[q] = o->left[i] || order_itself(&o->m->group[o->g[i]]);
		for (uint32_t k = o->at[i]; k < o->at[i + 1]; k++)
			if (!--o->left[o->caller[k]] && !o->done[o->caller[k]])
				turn(o, o->caller[k]);
	}
}

int order_cycle(const struct module *m, const uint32_t *comp, uint32_t *place, uint32_t *g, uint32_t n,
		uint8_t *first)
{
	struct order o = {.m = m, .comp = comp, .g = g, .n = n, .place = place};
	uint32_t *w = calloc(3 * (size_t)n + 2, sizeof(*w));
	int r = -1;

	o.done = calloc(n, 1);
	o.rank = malloc(n * sizeof(*o.rank));
	if (!w || !o.done || !o.rank)
		goto out;
	o.left = w;
	o.out = w + n;
	o.at = w + 2 * n;
	for (uint32_t i = 0; i < n; i++)
		place[g[i]] = i;
	o.caller = malloc((count_calls(&o) + 1) * sizeof(*o.caller));
	if (!o.caller)
		goto out;
	link_callers(&o);
	rank_all(&o);
	all_turns(&o, first);
	for (uint32_t i = 0; i < n; i++)
		o.left[i] = g[o.out[i]]; /* left[] has served */
	memcpy(g, o.left, n * sizeof(*g));
	r = 0;
out:
	free(o.caller);
	free(o.rank);
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
