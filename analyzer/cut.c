/* SPDX-License-Identifier: MIT
 *
 * cut.c - the cheapest set of values to log, by a minimum cut of the value graph
 *
 *   source ─▶ [what is unknown] ─▶ … values computed from it … ─▶ [roots] ─▶ sink
 *
 * Logging a value is an edge whose capacity is the cost of that: bytes times how often the place is expected to run
 * (cut_freq.c). A branch costs its one byte, an indirect target four, an address six whatever it is made of, a
 * vector's mask its own. Values that cannot be logged have infinite capacity. The edges of a minimum cut
 * are the logs; whatever is behind them is recomputed.
 *
 *   cut_want.c  which values are a question of logs at all
 *   cut_net.c   their network
 *   cut_flow.c  its minimum cut
 *
 * The result goes into the decisions (gr_insn.logged, .ea, gr_block.blklog, .ctl_log), which gr_need follows;
 * an error here could cost bytes but not correctness.
 */
#include "cut_net.h"

#define MAX_OPS 600000u
#define BUDGET 40000000u

static void decide_none(struct gr *gr)
{
	for (uint32_t i = 0; i < gr->g->ninsn; i++) {
		gr->in[i].ea = 0;
		gr->in[i].logged = 0;
	}
	for (uint32_t i = 0; i < gr->g->nblock; i++) {
		gr->b[i].blklog = 0;
		if (gr->b[i].ctl_can)
			gr->b[i].ctl_log = 0;
	}
}

/* read the decisions off the cut */
static void decide(struct cut *c)
{
	struct gr *gr = c->gr;

	decide_none(gr);
	for (const struct flow_arc *a = c->f.arc; a < c->f.arc + c->f.narc; a++) {
		struct cut_tag t = a->tag;
		bool cut;

		if (t.kind == TAG_NONE)
			continue;
		cut = c->side[a->from] && !c->side[a->to];
		if (t.kind == TAG_MASK && !cut)
			gr->note[t.what].flags |= GN_MASK;
		if (!cut)
			continue;
		switch (t.kind) {
		case TAG_DEF:
			gr->in[t.what].logged |= (uint16_t)(1u << t.arg);
			break;
		case TAG_START:
			gr->b[t.what].blklog |= (uint16_t)(1u << t.arg);
			break;
		case TAG_EA:
			gr->in[t.what].ea |= t.arg;
			break;
		case TAG_CTL:
			gr->b[t.what].ctl_log = 1;
			break;
		case TAG_MASK:
			gr->note[t.what].flags &= (uint16_t)~GN_MASK;
			break;
		default:
			break;
		}
	}
}

static int build(struct cut *c)
{
	uint32_t nb = c->gr->g->nblock;
	int r;

	c->freq = c->gr->freq;
	c->order = c->gr->backward;
	c->wants = c->gr->wants;
	c->b = scratch_zero(nb * sizeof(*c->b));
	if (!c->b)
		return -1;
	r = cut_net(c);
	if (r)
		return r;
	if (flow_seal(&c->f, c->nnode) < 0)
		return -1;
	c->side = scratch_zero(c->nnode);
	return c->side ? 0 : -1;
}

/* This round's capacities. false: the cut is the same, as all that is dearer was not cut, and what is cheaper was: of any
 * other cut this takes no more than of that one. */
static bool new_costs(struct cut *c)
{
	bool ch = false;

	for (uint32_t i = 0; i < c->nentry; i++) {
		struct cut_entry *e = &c->entry[i];
		int64_t cost = cut_entry_cost(c, e);

		if (cost == e->cost)
			continue;
		flow_add(&c->f, e->node, cost - e->cost);
		ch |= c->side[e->node] ? cost < e->cost : cost > e->cost;
		e->cost = cost;
	}
	return ch;
}

/* is the cut another one? */
static bool new_sides(struct cut *c)
{
	bool ch = false;

	for (uint32_t x = 0; x < c->nnode; x++) {
		uint8_t s = flow_source_side(&c->f, x);

		ch |= s != c->side[x];
		c->side[x] = s;
	}
	return ch;
}

int cut_run(struct gr *gr, bool *same)
{
	bool first = !gr->cut;
	int r = 0;

	*same = false;
	if (first) {
		struct scratch_mark mark;

		if (gr->nop > MAX_OPS)
			return 1;
		if (cut_freq(gr) < 0 || cut_want(gr) < 0)
			return -1;
		mark = scratch_mark();
		gr->cut = scratch_zero(sizeof(*gr->cut));
		if (!gr->cut)
			return -1;
		gr->cut->mark = mark;
		gr->cut->gr = gr;
		r = build(gr->cut);
	}
	if (!r && !first && !new_costs(gr->cut)) {
		*same = true;
		return 0;
	}
	if (!r && !flow_run(&gr->cut->f, BUDGET))
		r = 1;
	if (r)
		cut_close(gr);
	else if (new_sides(gr->cut) || first)
		decide(gr->cut);
	else
		*same = true;
	return r;
}

void cut_close(struct gr *gr)
{
	if (gr->cut)
		scratch_release(gr->cut->mark);
	gr->cut = NULL;
}
