/* SPDX-License-Identifier: MIT
 *
 * plan_sum.c - round 1: summaries of all groups, callees before callers
 *
 * Groups are visited in the order in which Tarjan's algorithm closes the strongly connected
 * components of the graph of direct calls and tail jumps. Within a component (plan_order.c) the summaries
 * start from the best case (only what instructions show is written, nothing needed, returns proper) and
 * are recomputed until they stand: a claim about an activation may rest on the same claim about
 * activations that finished before it.
 *
 * A group that turns out not to be representable becomes opaque here, and disappears from the
 * callee lists of the others.
 */
#include <stdlib.h>
#include "plan_order.h"

#define MAX_ROUNDS 12
#define KEEP_MOST (32u << 20) /* bytes of graphs that wait for another turn, a thread */

struct scc {
	struct module *m;
	uint32_t *num, *low, *stack, *order;
	uint32_t nstack, next, norder; /* order: components one after the other, */
	uint8_t *last; /* last[i]: order[i] ends a component */
	bool *on;
	struct {
		uint32_t g, edge;
	} * walk;
	uint32_t *changed, *planned; /* per group: when its summary last changed, was last computed */
	uint32_t *reshaped,
		*rederef; /* and when that changed in it on which the graphs of callers rest; derefs */
	uint32_t *turn; /* per group of a cycle: its last turn in a round */
	struct gr **kept; /* and its graph, if that waits for another turn */
	uint32_t *level, *comp; /* of components: height above the leaves; first index in order */
	uint32_t ncomp, *batch; /* components of the level being done */
	bool nomem;
	struct plan **plan; /* by group: the plans that could be made on the way; NULL: not wanted */
	uint32_t mapflags;
};

static int scc_alloc(struct scc *s, struct module *m)
{
	uint32_t n = m->ngroup + 1;

	memset(s, 0, sizeof(*s));
	s->m = m;
	s->num = calloc(n, 4);
	s->low = calloc(n, 4);
	s->stack = calloc(n, 4);
	s->order = calloc(n, 4);
	s->last = calloc(n, 1);
	s->on = calloc(n, sizeof(bool));
	s->walk = calloc(n, sizeof(*s->walk));
	s->changed = calloc(n, 4);
	s->planned = calloc(n, 4);
	s->reshaped = calloc(n, 4);
	s->rederef = calloc(n, 4);
	s->turn = calloc(n, 4);
	s->kept = calloc(n, sizeof(*s->kept));
	s->level = calloc(n, 4);
	s->comp = calloc(n + 1, 4);
	s->batch = calloc(n, 4);
	return s->num && s->low && s->stack && s->order && s->last && s->on && s->walk && s->changed &&
			       s->planned && s->reshaped && s->rederef && s->turn && s->kept && s->level &&
			       s->comp && s->batch
		       ? 0
		       : -1;
}

static void scc_free(struct scc *s)
{
	free(s->num);
	free(s->low);
	free(s->stack);
	free(s->order);
	free(s->last);
	free(s->on);
	free(s->walk);
	free(s->changed);
	free(s->planned);
	free(s->reshaped);
	free(s->rederef);
	free(s->turn);
	free(s->kept);
	free(s->level);
	free(s->comp);
	free(s->batch);
}

static void enter(struct scc *s, uint32_t g, uint32_t *depth)
{
	s->num[g] = s->low[g] = ++s->next;
	s->stack[s->nstack++] = g;
	s->on[g] = true;
	s->walk[*depth].g = g;
	s->walk[(*depth)++].edge = 0;
}

/* Tarjan's algorithm with an explicit stack: call chains are deep */
static void scc_from(struct scc *s, uint32_t root)
{
	uint32_t depth = 0;

	enter(s, root, &depth);
	while (depth) {
		uint32_t g = s->walk[depth - 1].g;
		const struct an_group *ag = &s->m->group[g];

		if (s->walk[depth - 1].edge < ag->ncallee) {
			uint32_t to = ag->callee[s->walk[depth - 1].edge++].group;

			if (!s->num[to])
				enter(s, to, &depth);
			else if (s->on[to] && s->num[to] < s->low[g])
				s->low[g] = s->num[to];
			continue;
		}
		if (--depth && s->low[g] < s->low[s->walk[depth - 1].g])
			s->low[s->walk[depth - 1].g] = s->low[g];
		if (s->low[g] != s->num[g])
			continue;
		for (uint32_t x = AN_NONE; x != g;) {
			x = s->stack[--s->nstack];
			s->on[x] = false;
			s->order[s->norder++] = x;
		}
		s->last[s->norder - 1] = 1;
	}
}

/* registers that may differ after the group has returned, its callees' included */
static uint32_t may_write(const struct gr *gr)
{
	const struct an_group *g = gr->g;
	uint32_t set = (gr->written & GR_CALLER_SAVED) | gr->lost;

	for (uint32_t b = 0; b < g->nblock; b++) {
		uint32_t i = g->block[b].first + g->block[b].n - 1;
		uint8_t flow = g->insn[i].flow;
		const struct an_callee *c;

		if (flow == FLOW_CALL || flow == FLOW_ICALL)
			set |= gr_call_clobber(gr, i) & GR_CALLER_SAVED;
		else if (flow == FLOW_SYSCALL)
			set |= 1u << SEM_RAX | 1u << SEM_RCX | 1u << SEM_R11;
		else if ((flow == FLOW_JMP || flow == FLOW_JCC || flow == FLOW_IJMP) &&
			 (c = glue_callee(g, i)))
			set |= gr->m->group[c->group].sum->maywrite;
		/* rsp in the set: returns with another rsp than the convention's (sp.c) */
	}
	if (g->sum->tailx)
		set |= GR_CALLER_SAVED;
	return set;
}

static uint32_t entry_needs(const struct gr *gr)
{
	uint32_t set = 0;

	for (uint32_t i = 0; i < gr->g->nblock; i++)
		if (gr->g->block[i].flags & AN_B_ENTRY)
			for (int r = 0; r < SEM_NGPR; r++)
				if (r != SEM_RSP && gr_gpr(&gr->b[i].need, r))
					set |= 1u << r;
	return set;
}

/* round 2 on the graph of round 1: nothing but the own needs has changed. NULL: to be planned anew */
static struct plan *plan_now(struct gr *gr)
{
	gr->round1 = false;
	return gr->cut && plan_solve(gr) == 0 ? pe_run(gr) : NULL;
}

/* a plan that rests on summaries which have changed since */
static void forget(struct scc *s, const struct an_group *g)
{
	if (!s->plan)
		return;
	plan_free(s->plan[g->id]);
	s->plan[g->id] = NULL;
}

/* what the group's summary says by this plan; true if that is new */
static bool sum_up(struct gr *gr, struct an_summary *sum)
{
	struct an_summary was = *sum;

	sum->maywrite |= may_write(gr);
	sum->needs |= entry_needs(gr);
	sum->derefs = gr_entry_derefs(gr);
	sum->lifo = was.lifo && gr->lifo;
	return memcmp(&was, sum, sizeof(was)) != 0;
}

/* what a caller's graph rests on; what a summary says besides is only what calls ask for */
static bool same_shape(const struct an_summary *x, const struct an_summary *y)
{
	return x->maywrite == y->maywrite && x->lifo == y->lifo;
}

/* the graph stands, but for what calls ask for: as it was before it was solved. derefs: a callee's have changed */
static void reset_graph(struct gr *gr, bool derefs)
{
	cut_close(gr);
	gr->round1 = true;
	if (!derefs)
		return;
	for (uint32_t i = 0; i < gr->g->nblock; i++)
		gr->b[i].deref = gr->b[i].derefwide = 0;
	gr_deref(gr);
}

/* one turn of a group */
struct turn {
	bool last; /* the summaries of all others that it calls may stand, so the plan is made as well */
	bool again; /* another one may come: keep the graph, */
	size_t *room; /* if there is room */
	uint32_t since; /* its last turn before, 0: none */
	/* found: the summary has changed; it is not to be computed again by what it says of calls of itself */
	bool changed, settled;
};

/* In a cycle graphs are kept where they are in scratch memory, under what comes after, until the cycle is done */
static struct gr *open_graph(struct scc *s, const struct an_group *g, uint32_t since, int *bad)
{
	struct gr *gr = s->kept[g->id];
	bool derefs = false;

	for (uint32_t k = 0; gr && k < g->ncallee; k++) {
		if (s->reshaped[g->callee[k].group] > since)
			gr = NULL;
		derefs |= s->rederef[g->callee[k].group] > since;
	}
	s->kept[g->id] = gr;
	if (gr)
		reset_graph(gr, derefs);
	else if ((gr = gr_open(s->m, g, s->mapflags, bad)))
		gr->round1 = true;
	return gr;
}

static void close_graph(struct scc *s, struct gr *gr, const struct turn *t)
{
	size_t n = gr->nop * (sizeof(*gr->op) + sizeof(*gr->note)) + gr->g->ninsn * sizeof(*gr->in) +
		   gr->g->nblock * sizeof(*gr->b);
	bool keep = t->again && gr->cut && n <= *t->room;

	if (keep) {
		s->kept[gr->g->id] = gr;
		*t->room -= n;
	}
	if (s->kept[gr->g->id])
		cut_close(gr);
	else
		gr_close(gr);
}

static int plan_one(struct scc *s, struct an_group *g, struct turn *t)
{
	bool itself = order_itself(g);
	struct an_summary was, before;
	struct gr *gr;
	int bad, r = 0;

	forget(s, g);
	gr = open_graph(s, g, t->since, &bad);
	if (!gr)
		return bad ? 1 : -1;
	before = *g->sum;
	for (int i = 0; i < MAX_ROUNDS; i++) {
		was = *g->sum;
		if (plan_solve(gr) < 0) {
			r = 1;
			break;
		}
		t->settled = !sum_up(gr, g->sum) || !itself;
		if (t->settled || !gr->cut || !same_shape(&was, g->sum))
			break;
		reset_graph(gr, was.derefs != g->sum->derefs);
	}
	t->changed = memcmp(&before, g->sum, sizeof(before)) != 0;
	if (!r && t->last && s->plan && t->settled)
		s->plan[g->id] = plan_now(gr);
	close_graph(s, gr, t);
	return r;
}

/* did not settle: claim nothing */
static void worst(struct scc *s, struct an_group *g)
{
	forget(s, g);
	g->sum->maywrite = 0xffffu & ~(1u << SEM_RSP);
	g->sum->lifo = false;
}

/* has something this group's summary rests on changed since it was computed? */
static bool stale(const struct scc *s, const struct an_group *g)
{
	if (!s->planned[g->id])
		return true;
	for (uint32_t k = 0; k < g->ncallee; k++) {
		uint32_t c = g->callee[k].group;

		if (s->low[c] == s->low[g->id] && s->changed[c] > s->planned[g->id])
			return true;
	}
	return false;
}

/* may the group have another turn, as some callee's summary is computed after its own, in turn k? */
static bool comes_again(const struct scc *s, const struct an_group *g, uint32_t k)
{
	for (uint32_t i = 0; i < g->ncallee; i++) {
		uint32_t c = g->callee[i].group;

		if (c != g->id && s->low[c] == s->low[g->id] && s->turn[c] > k)
			return true;
	}
	return false;
}

static int one_turn(struct scc *s, struct an_group *g, struct turn *t, uint32_t now)
{
	struct an_summary was = *g->sum;
	int r;

	t->since = s->planned[g->id];
	s->planned[g->id] = now;
	r = plan_one(s, g, t);
	if (r > 0)
		g->reason = MAP_R_UNRELOCATABLE;
	if (t->changed)
		s->changed[g->id] = now;
	if (!same_shape(&was, g->sum))
		s->reshaped[g->id] = now;
	if (was.derefs != g->sum->derefs)
		s->rederef[g->id] = now;
	s->planned[g->id] -= !t->settled; /* stale by its own change */
	return r < 0 ? -1 : 0;
}

static int rounds(struct scc *s, const struct order_turn *o, uint32_t n)
{
	uint32_t now = 0; /* stamps are compared within a component only: the rest stands */
	size_t room = KEEP_MOST;
	bool again = true;

	for (uint32_t k = 0; k < n; k++)
		s->turn[o[k].group] = k;
	for (int round = 0; again && round < MAX_ROUNDS; round++) {
		again = false;
		for (uint32_t k = 0; k < n; k++) {
			struct an_group *ag = &s->m->group[o[k].group];
			struct turn t = {.last = round || !o[k].early, .room = &room, .settled = true};

			if (ag->reason != MAP_OK || !stale(s, ag))
				continue;
			t.again = !round && comes_again(s, ag, k);
			if (one_turn(s, ag, &t, ++now) < 0)
				return -1;
			again = true;
		}
	}
	for (uint32_t k = 0; again && k < n; k++)
		worst(s, s->m->group + o[k].group);
	return 0;
}

static int component(struct scc *s, const uint32_t *g, uint32_t n)
{
	struct scratch_mark mark = scratch_mark();
	struct order_turn *t;
	uint32_t nturn;
	int r;

	if (n == 1 && !order_itself(&s->m->group[g[0]]))
		return rounds(s, &(struct order_turn){g[0], false}, 1);
	t = malloc(2 * (size_t)n * sizeof(*t));
	r = t ? order_cycle(s->m, s->low, s->num, g, n, t, &nturn) : -1;
	if (r == 0) {
		order_seed(s->m, g, n);
		r = rounds(s, t, nturn);
	}
	scratch_release(mark); /* the graphs kept */
	free(t);
	return r;
}

/* components in order[], their levels: one more than the highest callee outside */
static uint32_t find_levels(struct scc *s)
{
	uint32_t top = 0, first = 0;

	s->ncomp = 0;
	for (uint32_t i = 0; i < s->norder; i++) {
		if (!s->last[i])
			continue;
		uint32_t lv = 0, c = s->ncomp++;

		for (uint32_t j = first; j <= i; j++)
			s->low[s->order[j]] = c; /* reused: the component of a group */
		for (uint32_t j = first; j <= i; j++) {
			const struct an_group *g = &s->m->group[s->order[j]];

			for (uint32_t k = 0; k < g->ncallee; k++) {
				uint32_t to = s->low[g->callee[k].group];

				if (to != c && s->level[to] + 1 > lv)
					lv = s->level[to] + 1;
			}
		}
		s->comp[c] = first;
		s->level[c] = lv;
		top = lv > top ? lv : top;
		first = i + 1;
	}
	s->comp[s->ncomp] = s->norder;
	return top;
}

static void one_component(void *arg, uint32_t i)
{
	struct scc *s = arg;
	uint32_t c = s->batch[i];

	if (component(s, s->order + s->comp[c], s->comp[c + 1] - s->comp[c]) < 0)
		s->nomem = true;
}

/* components of one level do not depend on each other */
static int all_components(struct scc *s, int jobs)
{
	uint32_t top = find_levels(s);

	for (uint32_t lv = 0; lv <= top && !s->nomem; lv++) {
		uint32_t n = 0;

		for (uint32_t c = 0; c < s->ncomp; c++)
			if (s->level[c] == lv)
				s->batch[n++] = c;
		par_for(n, jobs, one_component, s);
	}
	return s->nomem ? -1 : 0;
}

/* drop direct callees that are opaque after all; a tail jump to one leaves for the unknown */
static bool drop_opaque(struct module *m)
{
	bool any = false;

	for (uint32_t i = 0; i < m->ngroup; i++) {
		struct an_group *g = &m->group[i];
		uint32_t n = 0;

		for (uint32_t k = 0; k < g->ncallee; k++) {
			const struct an_group *c = &m->group[g->callee[k].group];
			bool call = g->insn[g->callee[k].insn].flow == FLOW_CALL;

			if (c->reason == MAP_OK) {
				g->callee[n++] = g->callee[k];
				if (call || !c->sum->tailx || g->sum->tailx)
					continue;
			} else if (call) {
				continue;
			}
			any |= !g->sum->tailx;
			g->sum->tailx = true;
		}
		any |= n != g->ncallee;
		g->ncallee = n;
	}
	return any;
}

static void forget_all(struct module *m, struct plan **plan)
{
	for (uint32_t i = 0; plan && i < m->ngroup; i++) {
		plan_free(plan[i]);
		plan[i] = NULL;
	}
}

/* plan_rounds - fill maywrite, needs, lifo of every certain group. Groups may turn opaque
 * (reason is set) when they cannot be represented. 0, or -1 when out of memory. */
int plan_rounds(struct module *m, uint32_t mapflags, int jobs, struct plan **plan)
{
	struct scc s;
	bool again = true;
	int r = 0;

	while (again && r == 0) {
		if (scc_alloc(&s, m) < 0)
			r = -1;
		s.plan = plan;
		s.mapflags = mapflags;
		forget_all(m, plan);
		for (uint32_t i = 0; r == 0 && i < m->ngroup; i++) {
			m->group[i].sum->maywrite = m->group[i].sum->needs = 0;
			m->group[i].sum->derefs = 0;
			m->group[i].sum->lifo = true;
			m->group[i].sum->callers = 0;
		}
		for (uint32_t i = 0; r == 0 && i < m->ngroup; i++)
			for (uint32_t k = 0; k < m->group[i].ncallee; k++)
				m->group[m->group[i].callee[k].group].sum->callers++;
		for (uint32_t i = 0; r == 0 && i < m->ngroup; i++)
			if (!s.num[i] && m->group[i].reason == MAP_OK)
				scc_from(&s, i);
		if (r == 0)
			r = find_noret(m, s.order, s.norder);
		if (r == 0)
			r = all_components(&s, jobs);
		scc_free(&s);
		again = false;
		while (drop_opaque(m))
			again = true;
	}
	return r;
}

int plan_summaries(struct module *m, uint32_t mapflags, int jobs)
{
	return plan_rounds(m, mapflags, jobs, NULL);
}
