/* SPDX-License-Identifier: MIT
 *
 * cut_flow.c - maximum flow by the algorithm of Boykov and Kolmogorov ("An Experimental Comparison of
 * Min-Cut/Max-Flow Algorithms for Energy Minimization in Vision", PAMI 2004)
 *
 *   source ═▶ S tree … ─▶ ─▶ … T tree ═▶ sink
 *
 * Two trees over edges with room, one out of the source and one into the sink, grow until they touch; the path
 * is filled, what it tears off looks for another parent in its tree or is free again. So an augmentation costs
 * what it changes, where rounds of levels (Dinic) look at the whole graph every time: value graphs are many
 * small parts that have nothing to do with each other.
 *
 * When nothing can grow, the S tree is all that the source reaches: the smallest source's side of a minimum
 * cut, which is the same whatever flow was found. Source and sink are not nodes: what leads to them is
 * a node's own, a positive room from the source or a negative one to the sink (both at once cancel out).
 *
 * Where only rooms change between two runs the trees stay, but for what the changes tear off (Kohli and Torr,
 * "Dynamic Graph Cuts for Efficient Inference in Markov Random Fields", PAMI 2007).
 */
#include "cut.h"

#define NO_PARENT 0xffffffffu
#define TERMINAL 0xfffffffeu /* the parent is source or sink */
#define ORPHAN 0xfffffffdu
#define FAR 0xffffffffu

bool flow_more(struct flow *f)
{
	uint32_t n = f->caparc ? f->caparc * 2 : 1024;
	void *p = scratch_more(f->arc, f->narc * sizeof(*f->arc), n * sizeof(*f->arc));

	if (!p) {
		f->fail = true;
		return false;
	}
	f->arc = p;
	f->caparc = n;
	return true;
}

static bool alloc(struct flow *f, uint32_t nodes)
{
	f->first = scratch_zero((nodes + 2) * sizeof(*f->first));
	f->x = scratch_zero((nodes + 1) * sizeof(*f->x));
	f->active = scratch((nodes + 1) * sizeof(*f->active));
	f->orphan = scratch((nodes + 1) * sizeof(*f->orphan));
	return !f->fail && f->first && f->x && f->active && f->orphan;
}

/* an edge between two nodes, neither source nor sink */
static bool inner(const struct flow_arc *a)
{
	return a->from != FLOW_SOURCE && a->to != FLOW_SINK;
}

int flow_seal(struct flow *f, uint32_t nodes)
{
	if (!alloc(f, nodes))
		return -1;
	f->n = nodes;
	for (uint32_t i = 0; i < f->narc; i++) {
		const struct flow_arc *a = &f->arc[i];

		if (inner(a)) {
			f->first[a->from + 1]++;
			f->first[a->to + 1]++;
		} else if (a->from != FLOW_SOURCE) {
			f->x[a->from].room -= a->cap;
		} else if (a->to != FLOW_SINK) {
			f->x[a->to].room += a->cap;
		}
	}
	for (uint32_t i = 0; i < nodes; i++) {
		f->first[i + 1] += f->first[i];
		f->active[i] = f->first[i];
	}
	f->e = scratch((f->first[nodes] + 1) * sizeof(*f->e));
	if (!f->e)
		return -1;
	for (uint32_t i = 0; i < f->narc; i++) {
		const struct flow_arc *a = &f->arc[i];
		uint32_t x, y;

		if (!inner(a))
			continue;
		x = f->active[a->from]++;
		y = f->active[a->to]++;
		f->e[x] = (struct flow_edge){a->to, y, a->cap};
		f->e[y] = (struct flow_edge){a->from, x, 0};
	}
	return 0;
}

void flow_add(struct flow *f, uint32_t node, int64_t cap)
{
	f->x[node].room += cap;
	f->x[node].changed = true;
}

/* ---- the trees ---- */

struct bk {
	struct flow *f;
	uint32_t head, nactive; /* of the ring active[] */
	uint32_t norphan;
	uint32_t time;
	uint64_t visits;
};

static void activate(struct bk *k, uint32_t i)
{
	struct flow *f = k->f;
	uint32_t at;

	if (f->x[i].active)
		return;
	f->x[i].active = true;
	at = k->head + k->nactive++;
	f->active[at < f->n ? at : at - f->n] = i;
}

static uint32_t deactivate(struct bk *k)
{
	uint32_t i = k->f->active[k->head];

	k->head = k->head + 1 < k->f->n ? k->head + 1 : 0;
	k->nactive--;
	k->f->x[i].active = false;
	return i;
}

static void plant(struct bk *k)
{
	for (uint32_t i = 0; i < k->f->n; i++) {
		struct flow_node *x = &k->f->x[i];

		x->parent = x->room ? TERMINAL : NO_PARENT;
		x->sink = x->room < 0;
		x->active = x->changed = false;
		x->time = 0;
		x->dist = 1;
		if (x->room)
			activate(k, i);
	}
}

/* has edge e, which leads away from a node of a tree, room in the direction in which that tree grows? */
static bool open_from(const struct flow *f, const struct flow_edge *e, bool sink)
{
	return (sink ? f->e[e->rev].cap : e->cap) > 0;
}

/* grow - from node i; returns the edge from S to T that was met, NO_PARENT if none */
static uint32_t grow(struct bk *k, uint32_t i)
{
	struct flow *f = k->f;
	const struct flow_node *x = &f->x[i];

	k->visits += f->first[i + 1] - f->first[i];
	for (uint32_t a = f->first[i]; a < f->first[i + 1]; a++) {
		const struct flow_edge *e = &f->e[a];
		struct flow_node *y = &f->x[e->to];

		if (!open_from(f, e, x->sink))
			continue;
		if (y->parent == NO_PARENT) {
			y->sink = x->sink;
			y->parent = e->rev;
			y->time = x->time;
			y->dist = x->dist + 1;
			activate(k, e->to);
		} else if (y->sink != x->sink) {
			return x->sink ? e->rev : a;
		} else if (y->time <= x->time && y->dist > x->dist) { /* a shorter way to the root */
			y->parent = e->rev;
			y->time = x->time;
			y->dist = x->dist + 1;
		}
	}
	return NO_PARENT;
}

static void orphan(struct bk *k, uint32_t i)
{
	k->f->x[i].parent = ORPHAN;
	k->f->orphan[k->norphan++] = i;
}

/* the edge towards the sink between a node of a tree and its parent */
static struct flow_edge *to_sink(struct flow *f, const struct flow_node *x)
{
	return x->sink ? &f->e[x->parent] : &f->e[f->e[x->parent].rev];
}

static uint32_t other_end(const struct flow *f, uint32_t edge)
{
	return f->e[edge].to;
}

static int64_t narrowest(struct flow *f, uint32_t i, int64_t most)
{
	for (; f->x[i].parent != TERMINAL; i = other_end(f, f->x[i].parent)) {
		int64_t cap = to_sink(f, &f->x[i])->cap;

		most = cap < most ? cap : most;
	}
	int64_t room = f->x[i].sink ? -f->x[i].room : f->x[i].room;

	return room < most ? room : most;
}

static void fill(struct bk *k, uint32_t i, int64_t by)
{
	struct flow *f = k->f;
	uint32_t next;

	for (; f->x[i].parent != TERMINAL; i = next) {
		struct flow_edge *e = to_sink(f, &f->x[i]);

		next = other_end(f, f->x[i].parent);
		e->cap -= by;
		f->e[e->rev].cap += by;
		if (!e->cap)
			orphan(k, i);
	}
	f->x[i].room += f->x[i].sink ? by : -by;
	if (!f->x[i].room)
		orphan(k, i);
}

static void augment(struct bk *k, uint32_t edge)
{
	struct flow *f = k->f;
	uint32_t from = other_end(f, f->e[edge].rev), to = other_end(f, edge);
	int64_t by = narrowest(f, to, narrowest(f, from, f->e[edge].cap));

	f->e[edge].cap -= by;
	f->e[f->e[edge].rev].cap += by;
	fill(k, from, by);
	fill(k, to, by);
}

/* distance of node i from the root of its tree, FAR when the way ends at an orphan */
static uint32_t origin(struct bk *k, uint32_t i)
{
	const struct flow *f = k->f;
	uint32_t d = 0;

	for (;;) {
		struct flow_node *x = &k->f->x[i];

		k->visits++;
		if (x->time == k->time)
			return d + x->dist;
		if (x->parent == ORPHAN)
			return FAR;
		d++;
		if (x->parent == TERMINAL) {
			x->time = k->time;
			x->dist = 1;
			return d;
		}
		i = other_end(f, x->parent);
	}
}

/* what was looked at on the way to the root need not be looked at again in this round */
static void mark(struct bk *k, uint32_t i, uint32_t d)
{
	for (; k->f->x[i].time != k->time; i = other_end(k->f, k->f->x[i].parent)) {
		k->f->x[i].time = k->time;
		k->f->x[i].dist = d--;
	}
}

static void let_go(struct bk *k, uint32_t i)
{
	struct flow *f = k->f;
	bool sink = f->x[i].sink;

	f->x[i].parent = NO_PARENT;
	f->x[i].time = 0;
	for (uint32_t a = f->first[i]; a < f->first[i + 1]; a++) {
		uint32_t j = f->e[a].to;
		const struct flow_node *y = &f->x[j];

		if (y->parent == NO_PARENT || y->sink != sink)
			continue;
		if (open_from(f, &f->e[f->e[a].rev], sink))
			activate(k, j);
		if (y->parent < ORPHAN && other_end(f, y->parent) == i)
			orphan(k, j);
	}
}

/* adopt - a new parent for an orphan: a neighbour of its tree that leads to the root, the nearest */
static void adopt(struct bk *k, uint32_t i)
{
	struct flow *f = k->f;
	uint32_t best = NO_PARENT, least = FAR;

	if (f->x[i].parent != ORPHAN)
		return; /* a root by now */
	k->visits += f->first[i + 1] - f->first[i];
	for (uint32_t a = f->first[i]; a < f->first[i + 1]; a++) {
		uint32_t j = f->e[a].to, d;
		const struct flow_node *y = &f->x[j];

		if (y->parent == NO_PARENT || y->sink != f->x[i].sink ||
		    !open_from(f, &f->e[f->e[a].rev], y->sink))
			continue;
		d = origin(k, j);
		if (d == FAR)
			continue;
		if (d < least) {
			best = a;
			least = d;
		}
		mark(k, j, d);
	}
	if (best == NO_PARENT) {
		let_go(k, i);
		return;
	}
	f->x[i].parent = best;
	f->x[i].time = k->time;
	f->x[i].dist = least + 1;
}

static void adopt_all(struct bk *k)
{
	for (uint32_t o = 0; o < k->norphan; o++)
		adopt(k, k->f->orphan[o]);
	k->norphan = 0;
}

/* Its children stay behind. Those of the tree that it was in could reach it and have done with it: if the other one
 * lets it go before it was looked at, they have to look again. */
static void change_trees(struct bk *k, uint32_t i)
{
	struct flow *f = k->f;
	bool was = f->x[i].sink;

	f->x[i].sink = !was;
	for (uint32_t a = f->first[i]; a < f->first[i + 1]; a++) {
		uint32_t j = f->e[a].to;
		const struct flow_node *y = &f->x[j];

		if (y->parent == NO_PARENT || y->sink != was)
			continue;
		if (open_from(f, &f->e[f->e[a].rev], was))
			activate(k, j);
		if (y->parent < ORPHAN && other_end(f, y->parent) == i)
			orphan(k, j);
	}
}

/* node i has another room: it is a root of the tree that this says, or no root any more */
static void new_room(struct bk *k, uint32_t i)
{
	struct flow *f = k->f;
	struct flow_node *x = &f->x[i];

	activate(k, i);
	if (!x->room) {
		if (x->parent != NO_PARENT && x->parent != ORPHAN)
			orphan(k, i);
		return;
	}
	if (x->sink != (x->room < 0))
		change_trees(k, i);
	x->parent = TERMINAL;
	x->time = k->time;
	x->dist = 1;
}

static void replant(struct bk *k)
{
	k->time = k->f->time + 1;
	for (uint32_t i = 0; i < k->f->n; i++)
		if (k->f->x[i].changed) {
			k->f->x[i].changed = false;
			new_room(k, i);
		}
	k->time++;
	adopt_all(k);
}

bool flow_run(struct flow *f, uint64_t budget)
{
	struct bk k = {.f = f};

	if (f->grown)
		replant(&k);
	else
		plant(&k);
	while (k.nactive) {
		uint32_t i = k.f->active[k.head], edge;

		if (f->x[i].parent == NO_PARENT || (edge = grow(&k, i)) == NO_PARENT) {
			deactivate(&k);
			continue;
		}
		k.time++;
		augment(&k, edge);
		adopt_all(&k);
		if (k.visits > budget)
			return false;
	}
	f->grown = true;
	f->time = k.time;
	return true;
}
