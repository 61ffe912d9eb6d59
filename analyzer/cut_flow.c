/* SPDX-License-Identifier: MIT
 *
 * cut_flow.c - maximum flow, by augmenting paths out of one tree that is kept
 *
 *   source ═▶ tree … ─▶ node ═▶ sink
 *
 * The tree grows out of the source over edges with room until it touches a node that leads to the sink; the path is filled,
 * what it tears off looks for another parent in the tree or is free again. So an augmentation costs what it changes,
 * where rounds of levels (Dinic) look at the whole graph every time: value graphs are many small parts that have
 * nothing to do with each other. It is the algorithm of Boykov and Kolmogorov ("An Experimental Comparison of
 * Min-Cut/Max-Flow Algorithms for Energy Minimization in Vision", PAMI 2004) without the second tree, out of the
 * sink: most of what is before the sink nothing flows to.
 *
 * When nothing can grow, the tree is all that the source reaches: the smallest source's side of a minimum
 * cut, which is the same whatever flow was found. Source and sink are not nodes: what leads to them is
 * a node's own, a positive room from the source or a negative one to the sink (both at once cancel out). A node with room
 * to the sink is in no tree: what reaches it flows.
 *
 * Where only rooms change between two runs the tree stays, but for what the changes tear off (Kohli and Torr,
 * "Dynamic Graph Cuts for Efficient Inference in Markov Random Fields", PAMI 2007).
 */
#include "cut.h"

#define NO_PARENT 0xffffffffu
#define ROOT 0xfffffffeu /* the parent is the source */
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

/* ---- the tree ---- */

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

		x->parent = x->room > 0 ? ROOT : NO_PARENT;
		x->active = x->changed = false;
		x->time = 0;
		x->dist = 1;
		if (x->room > 0)
			activate(k, i);
	}
}

/* grow - from node i; returns the edge to a node that leads to the sink, NO_PARENT if none */
static uint32_t grow(struct bk *k, uint32_t i)
{
	struct flow *f = k->f;
	const struct flow_node *x = &f->x[i];

	k->visits += f->first[i + 1] - f->first[i];
	for (uint32_t a = f->first[i]; a < f->first[i + 1]; a++) {
		const struct flow_edge *e = &f->e[a];
		struct flow_node *y;

		if (e->cap <= 0)
			continue;
		y = &f->x[e->to];
		if (y->room < 0)
			return a;
		if (y->parent == NO_PARENT)
			activate(k, e->to);
		else if (y->time > x->time || y->dist <= x->dist)
			continue;
		/* new in the tree, or a shorter way to the root */
		y->parent = e->rev;
		y->time = x->time;
		y->dist = x->dist + 1;
	}
	return NO_PARENT;
}

static void orphan(struct bk *k, uint32_t i)
{
	k->f->x[i].parent = ORPHAN;
	k->f->orphan[k->norphan++] = i;
}

/* edge a, from a node of the tree to one that leads to the sink, and the way from the source to it are filled */
static void augment(struct bk *k, uint32_t a)
{
	struct flow *f = k->f;
	struct flow_node *to = &f->x[f->e[a].to];
	uint32_t from = f->e[f->e[a].rev].to, i;
	int64_t by = f->e[a].cap < -to->room ? f->e[a].cap : -to->room;

	for (i = from; f->x[i].parent != ROOT; i = f->e[f->x[i].parent].to) {
		int64_t cap = f->e[f->e[f->x[i].parent].rev].cap;

		by = cap < by ? cap : by;
	}
	by = f->x[i].room < by ? f->x[i].room : by;
	f->e[a].cap -= by;
	f->e[f->e[a].rev].cap += by;
	to->room += by;
	for (i = from; f->x[i].parent != ROOT;) {
		struct flow_edge *up = &f->e[f->x[i].parent], *down = &f->e[up->rev];
		uint32_t next = up->to;

		down->cap -= by;
		up->cap += by;
		if (!down->cap)
			orphan(k, i);
		i = next;
	}
	f->x[i].room -= by;
	if (!f->x[i].room)
		orphan(k, i);
}

/* distance of node i from the root of its tree, FAR when the way ends at an orphan */
static uint32_t origin(struct bk *k, uint32_t i)
{
	const struct flow *f = k->f;
	uint32_t d = 0;

	for (;;) {
		struct flow_node *x = &f->x[i];

		k->visits++;
		if (x->time == k->time)
			return d + x->dist;
		if (x->parent == ORPHAN)
			return FAR;
		d++;
		if (x->parent == ROOT) {
			x->time = k->time;
			x->dist = 1;
			return d;
		}
		i = f->e[x->parent].to;
	}
}

/* what was looked at on the way to the root need not be looked at again in this round */
static void mark(struct bk *k, uint32_t i, uint32_t d)
{
	struct flow *f = k->f;

	for (; f->x[i].time != k->time; i = f->e[f->x[i].parent].to) {
		f->x[i].time = k->time;
		f->x[i].dist = d--;
	}
}

/* Node i is not in the tree any more. Who could reach it has done with it, and has to look again; its children look for
 * another parent. */
static void let_go(struct bk *k, uint32_t i)
{
	struct flow *f = k->f;

	f->x[i].parent = NO_PARENT;
	f->x[i].time = 0;
	for (uint32_t a = f->first[i]; a < f->first[i + 1]; a++) {
		uint32_t j = f->e[a].to, parent = f->x[j].parent;

		if (parent == NO_PARENT)
			continue;
		if (f->e[f->e[a].rev].cap > 0)
			activate(k, j);
		if (parent < ORPHAN && f->e[parent].to == i)
			orphan(k, j);
	}
}

/* adopt - a new parent for an orphan: a neighbour that leads to the root, the nearest */
static void adopt(struct bk *k, uint32_t i)
{
	struct flow *f = k->f;
	uint32_t best = NO_PARENT, least = FAR;

	if (f->x[i].parent != ORPHAN)
		return; /* a root by now */
	k->visits += f->first[i + 1] - f->first[i];
	for (uint32_t a = f->first[i]; a < f->first[i + 1]; a++) {
		uint32_t j = f->e[a].to, d;

		if (f->x[j].parent == NO_PARENT || f->e[f->e[a].rev].cap <= 0)
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

/* node i has another room: it is a root, or none any more, or leads to the sink */
static void new_room(struct bk *k, uint32_t i)
{
	struct flow_node *x = &k->f->x[i];

	if (x->room > 0) {
		x->parent = ROOT;
		x->time = k->time;
		x->dist = 1;
		activate(k, i);
	} else if (x->room < 0) {
		if (x->parent != NO_PARENT)
			let_go(k, i);
	} else if (x->parent == ROOT) {
		orphan(k, i);
	}
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
