/* SPDX-License-Identifier: MIT
 *
 * cut.h - minimum cuts, and how often blocks run
 */
#ifndef CUT_H
#define CUT_H

#include "plan.h"

/* ---- minimum cut (cut_flow.c) --------------------------------------------------------------- */

#define CUT_INF (1ll << 40)
enum { FLOW_SOURCE, FLOW_SINK }; /* nodes from 2 on are the caller's */
struct flow_edge {
	uint32_t to, rev; /* rev: index of the reverse */
	int64_t cap; /* what is left of it */
};
struct flow_arc {
	uint32_t from, to;
	int64_t cap;
	struct cut_tag {
		uint32_t what;
		uint8_t kind, arg;
	} tag; /* the caller's */
};
struct flow_node {
	int64_t room; /* from the source, or minus that to the sink */
	uint32_t parent; /* edge that leads to it */
	uint32_t time, dist; /* in which round it was seen to lead to the root, and how far that is */
	bool active; /* waits for growing */
	bool changed; /* its room, since the last run */
};
struct flow {
	struct flow_arc *arc; /* as added; */
	struct flow_edge *e; /* those between nodes and their reverses, by node: first[x] .. first[x + 1] */
	uint32_t narc, caparc;
	uint32_t *first, *active, *orphan;
	struct flow_node *x;
	uint32_t n;
	uint32_t time; /* of the last run's last round; */
	bool grown; /* its tree stands */
	bool fail;
};
bool flow_more(struct flow *f); /* room for more arcs */
/* not from the sink or to the source */
static inline void flow_edge(struct flow *f, struct flow_arc a)
{
	if (f->narc < f->caparc || flow_more(f))
		f->arc[f->narc++] = a;
}
/* all edges are there; 0, -1 no memory. The graph is in scratch memory */
int flow_seal(struct flow *f, uint32_t nodes);
/* adds cap, which may be negative, to the edge from the source to a node: then run again. The sum must not be
 * negative. (Where more flows than is left, the node gets an edge to the sink that takes it: as much for every cut) */
void flow_add(struct flow *f, uint32_t node, int64_t cap);
/* Largest flow, from the flow and the tree there are. false when it took more than `budget` visits of edges and nodes. */
bool flow_run(struct flow *f, uint64_t budget);
/* after it: is the node on the source's side of the cut? */
static inline bool flow_source_side(const struct flow *f, uint32_t node)
{
	return node == FLOW_SOURCE || f->x[node].parent != 0xffffffffu;
}

#endif
