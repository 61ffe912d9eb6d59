/* SPDX-License-Identifier: MIT
 *
 * cut.h - the value graph of a group, and minimum cuts
 */
#ifndef CUT_H
#define CUT_H

#include "plan.h"

/* ---- value graph (graph_ssa.c): SSA on registers, flags, lanes and slots ------------------- */

#define VG_NVAR (SEM_NREGS + GR_NSLOT) /* variable: a register, or SEM_NREGS + slot */
#define VG_IN 0x80000000u /* a reference is an op, or VG_IN | index into in[] */
#define VG_NOREF 0xffffffffu

struct vg_in { /* a variable at the start of a block, or on the way to a class of jump tables */
	uint32_t block; /* block, or nblock + class */
	uint16_t var;
	uint8_t nw; /* bytes demanded */
};
struct vg_out {
	uint32_t op;
	uint16_t var;
};

struct vg {
	struct scratch_mark mark; /* its arrays are scratch memory from here on */
	struct gr *gr;
	uint32_t (*src)[4]; /* per op: where a, b, the third operand and the slot come from */
	uint8_t *nw; /* per op: bytes demanded of what it defines */
	struct vg_in *in;
	uint32_t nin, capin;
	uint32_t *hash; /* of in[], open addressing */
	uint32_t nhash;
	struct vg_out *out; /* per block: last definitions, by variable */
	uint32_t nout, capout;
	uint32_t *outfirst; /* nblock + 1 */
	uint32_t *jump, *jumpfirst; /* blocks that jump through tables, by class: ntable + 1 */
	uint32_t *work; /* references whose operands are to be demanded */
	uint32_t nwork, capwork;
	bool fail; /* out of memory or over the limit */
};

int vg_open(struct vg *v, struct gr *gr);
void vg_close(struct vg *v);
/* all operands of a reference, with the bytes wanted: calls f(ctx, operand, bytes) */
typedef void (*vg_visit)(void *ctx, uint32_t ref, unsigned w);
void vg_operands(struct vg *v, uint32_t ref, vg_visit f, void *ctx);
void vg_demand(struct vg *v, uint32_t ref, unsigned w); /* mark ref and all it is computed from */
uint32_t vg_end(struct vg *v, uint32_t block, unsigned var); /* a variable at a block's end */
/* what makes a variable unknown at the start of a block apart from its predecessors */
enum vg_from { VG_ENTRY = 1, VG_MARK = 2, VG_RET = 4, VG_KERNEL = 8 };
unsigned vg_from(const struct vg *v, uint32_t in);

/* ---- minimum cut (cut_flow.c) --------------------------------------------------------------- */

#define CUT_INF (1ll << 40)
#define CUT_ONCE 128 /* weight of what runs once an activation */
int64_t *cut_freq(const struct gr *gr, uint32_t **order); /* cut_freq.c */
enum { FLOW_SOURCE, FLOW_SINK }; /* nodes from 2 on are the caller's */
struct flow_edge {
	uint32_t to, rev; /* rev: index of the reverse */
	int64_t cap; /* what is left of it */
};
struct flow_arc {
	uint32_t from, to;
	int64_t cap;
};
struct flow_node {
	int64_t room; /* from the source, or minus that to the sink */
	uint32_t parent; /* edge that leads to it */
	uint32_t time, dist; /* in which round it was seen to lead to the root, and how far that is */
	bool sink, active; /* which tree it is in; waits for growing */
	bool changed; /* its room, since the last run */
};
struct flow {
	struct flow_arc *arc; /* as added; until sealed */
	struct flow_edge *e; /* the same and their reverses, by node: first[x] .. first[x + 1] */
	uint32_t narc, caparc;
	uint32_t *first, *active, *orphan;
	struct flow_node *x;
	uint32_t n;
	uint32_t time; /* of the last run's last round; */
	bool grown; /* its trees stand */
	bool fail;
};
void flow_edge(struct flow *f, uint32_t from, uint32_t to,
	       int64_t cap); /* not from the sink or to the source */
int flow_seal(struct flow *f, uint32_t nodes); /* all edges are there; 0, -1 no memory */
/* adds cap, which may be negative, to the edge from the source to a node: then run again. The sum must not be
 * negative. (Where more flows than is left, the node gets an edge to the sink that takes it: as much for every cut) */
void flow_add(struct flow *f, uint32_t node, int64_t cap);
void flow_close(struct flow *f);
/* Largest flow, from the flow and the trees there are. false when it took more than `budget` visits of edges and nodes. */
bool flow_run(struct flow *f, uint64_t budget);
/* after it: is the node on the source's side of the cut? */
static inline bool flow_source_side(const struct flow *f, uint32_t node)
{
	return node == FLOW_SOURCE || (f->x[node].parent != 0xffffffffu && !f->x[node].sink);
}

#endif
