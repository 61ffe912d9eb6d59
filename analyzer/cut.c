/* SPDX-License-Identifier: MIT
 *
 * cut.c - the cheapest set of values to log, by a minimum cut of the value graph
 *
 *   source ─▶ [what is unknown] ─▶ … values computed from it … ─▶ [roots] ─▶ sink
 *
 * Every value is a pair of nodes joined by an edge whose capacity is the cost of logging it there:
 * bytes times how often the place is expected to run (cut_freq.c). A branch costs its
 * one byte, an indirect target four, an address eight whatever it is made of. Values that cannot
 * be logged have infinite capacity. The edges of a minimum cut are the logs; whatever is behind them
 * is recomputed. The result goes into the decisions (gr_insn.logged, .ea, gr_block.blklog, .ctl_log),
 * which gr_need follows; an error here could cost bytes but not correctness.
 */
#include <stdlib.h>
#include "cut.h"

#define MAX_OPS 600000u
#define BUDGET 40000000u

struct cut {
	struct gr *gr;
	struct vg v;
	struct flow f;
	int64_t *freq; /* per block: how often it runs */
	uint32_t *node; /* of op k at k, of in i at nop + i: its near side << 1 | has a far side */
	uint32_t extra; /* next free node */
	uint32_t to; /* node whose operands are being linked */
	struct {
		uint32_t node, insn, block;
		uint8_t kind, rec;
	} * root;
	uint32_t nroot, caproot;
	bool build; /* second pass: edges, not demands */
};
enum { ROOT_EA, ROOT_CTL };
enum { SRC, SINK };

static int64_t weight(const struct cut *c, uint32_t block)
{
	return c->freq[block];
}

static uint32_t near(const struct cut *c, uint32_t ref)
{
	return c->node[ref & VG_IN ? c->gr->nop + (ref & ~VG_IN) : ref] >> 1;
}

static uint32_t far(const struct cut *c, uint32_t ref)
{
	return near(c, ref) + (c->node[ref & VG_IN ? c->gr->nop + (ref & ~VG_IN) : ref] & 1);
}

/* is logging this value part of the cut? The source's side has levels. */
static bool is_cut(const struct cut *c, uint32_t ref)
{
	return c->f.level[near(c, ref)] != AN_NONE && c->f.level[far(c, ref)] == AN_NONE;
}

static void link_operand(void *ctx, uint32_t ref, unsigned w)
{
	struct cut *c = ctx;

	(void)w;
	if (ref != VG_NOREF)
		flow_edge(&c->f, far(c, ref), c->to, CUT_INF);
}

/* root - ref must be known (w bytes) at `to`, a node; or just demanded in the first pass */
static void root(struct cut *c, uint32_t ref, unsigned w, uint32_t to)
{
	if (ref == VG_NOREF)
		return;
	if (!c->build) {
		vg_demand(&c->v, ref, w);
		return;
	}
	c->to = to;
	link_operand(c, ref, w);
}

/* paid_root - a node that can be logged itself for `cost`: returns it */
static uint32_t paid_root(struct cut *c, uint8_t kind, uint32_t insn, uint32_t block, uint8_t rec,
			  int64_t cost)
{
	if (!c->build)
		return 0;
	if (c->nroot == c->caproot) {
		uint32_t n = c->caproot ? c->caproot * 2 : 256;
		void *p = realloc(c->root, n * sizeof(*c->root));

		if (!p) {
			c->f.fail = true;
			return SINK;
		}
		c->root = p;
		c->caproot = n;
	}
	c->root[c->nroot].node = c->extra;
	c->root[c->nroot].insn = insn;
	c->root[c->nroot].block = block;
	c->root[c->nroot].kind = kind;
	c->root[c->nroot++].rec = rec;
	flow_edge(&c->f, c->extra, SINK, cost);
	return c->extra++;
}

static bool leaf(unsigned reg)
{
	return reg == SEM_NONE || reg == SEM_RSP || reg == SEM_FSBASE || reg == SEM_GSBASE;
}

static void roots_insn(struct cut *c, uint32_t bi, uint32_t i)
{
	struct gr *gr = c->gr;
	uint32_t rec = 0, to = SINK;
	const struct sem_op *before = NULL;
	struct plan_log l;

	for (uint32_t k = gr->in[i].op; k < gr->in[i + 1].op; k++) {
		const struct sem_op *op = &gr->op[k];

		if (gr->note[k].flags & GN_SLOT2)
			continue;
		if (op->op == SEM_REC) {
			uint32_t n = rec++;

			if ((gr->note[k].flags & GN_EA) || (leaf(op->a) && leaf(op->b)))
				continue;
			/* read and write of one operand are one address: one log serves both */
			if (!before || before->a != op->a || before->b != op->b || before->imm != op->imm) {
				to = SINK;
				if (n < 8 && pe_ea(gr, i, k, &l))
					to = paid_root(c, ROOT_EA, i, bi, (uint8_t)n, 8 * weight(c, bi));
			} else if (c->build && to != SINK && n < 8) {
				paid_root(c, ROOT_EA, i, bi, (uint8_t)n, 0);
				c->root[c->nroot - 1].node = to;
			}
			before = op;
			if (!leaf(op->a))
				root(c, c->v.src[k][0], 8, to);
			if (!leaf(op->b))
				root(c, c->v.src[k][1], 8, to);
		} else if (gr_has_slot2(op)) {
			for (int j = 0; j < 4; j++)
				root(c, c->v.src[k][j], 8, SINK);
		} else if (gr_is_value(op) &&
			   (op->dst == SEM_RSP || op->dst == SEM_FSBASE || op->dst == SEM_GSBASE ||
			    (op->dst == SEM_DF && gr->writes_df))) {
			root(c, k, 8, SINK);
		}
	}
}

static void roots_callee(struct cut *c, uint32_t bi, uint32_t insn)
{
	const struct an_callee *ca = glue_callee(c->gr->g, insn);
	uint32_t need = ca ? c->gr->m->group[ca->group].sum->needs : 0;

	for (int r = 0; r < SEM_NGPR; r++)
		if ((need >> r & 1) && r != SEM_RSP)
			root(c, vg_end(&c->v, bi, r), 8, SINK);
}

static void roots_control(struct cut *c, uint32_t bi)
{
	struct gr *gr = c->gr;
	const struct an_block *b = &gr->g->block[bi];
	uint32_t insn = b->first + b->n - 1;
	uint8_t flow = gr_flow(gr, bi);
	int64_t cost = weight(c, bi);
	enum jumpkind kind;
	uint32_t to;

	if (flow == FLOW_JCC && gr->b[bi].ctl_can) {
		to = gr->in[insn].cc == 0xff ? (uint32_t)SINK : paid_root(c, ROOT_CTL, insn, bi, 0, cost);
		root(c, vg_end(&c->v, bi, SEM_T0), 8, to);
	} else if (flow == FLOW_IJMP && gr->b[bi].ctl_can) {
		kind = glue_jump(gr->m, gr->g, bi);
		if (kind == JUMP_LEAVES)
			return;
		to = paid_root(c, ROOT_CTL, insn, bi, 0, cost * (kind == JUMP_MIXED ? 8 : 4));
		root(c, vg_end(&c->v, bi, SEM_T0), 8, to);
	}
	if (flow == FLOW_CALL || flow == FLOW_JMP || flow == FLOW_JCC)
		roots_callee(c, bi, insn);
}

static void all_roots(struct cut *c)
{
	for (uint32_t bi = 0; bi < c->gr->g->nblock && !c->v.fail; bi++) {
		const struct an_block *b = &c->gr->g->block[bi];

		for (uint32_t i = b->first; i < b->first + b->n; i++)
			roots_insn(c, bi, i);
		roots_control(c, bi);
	}
}

/* the cost of logging what op k defines, after its instruction */
static int64_t op_cost(const struct cut *c, uint32_t insn, uint32_t k)
{
	const struct gr *gr = c->gr;
	const struct sem_op *op = &gr->op[k];
	bool sx;

	if (gr->note[k].flags & GN_COUNT)
		return 8 * weight(c, gr->g->insn[insn].block);
	if (op->op == SEM_STORE || op->dst >= SEM_NGPR)
		return CUT_INF;
	return gr_logwidth(gr, insn, k, c->v.nw[k], &sx) * weight(c, gr->g->insn[insn].block);
}

/* number the demanded values; those that cannot be logged need no far side */
static void number(struct cut *c)
{
	struct gr *gr = c->gr;
	uint32_t n = 2;

	for (uint32_t k = 0; k < gr->nop; k++) {
		bool two = gr->op[k].op != SEM_STORE && gr->op[k].dst < SEM_NGPR;

		if (!c->v.nw[k])
			continue;
		two |= (gr->note[k].flags & GN_COUNT) != 0;
		c->node[k] = n << 1 | two;
		n += 1 + two;
	}
	for (uint32_t i = 0; i < c->v.nin; i++) {
		bool two = c->v.in[i].var < SEM_NGPR && c->v.in[i].block < gr->g->nblock;

		if (!c->v.in[i].nw)
			continue;
		c->node[gr->nop + i] = n << 1 | two;
		n += 1 + two;
	}
	c->extra = n;
}

static void op_nodes(struct cut *c)
{
	struct gr *gr = c->gr;

	for (uint32_t i = 0; i < gr->g->ninsn; i++)
		for (uint32_t k = gr->in[i].op; k < gr->in[i + 1].op; k++) {
			if (!c->v.nw[k])
				continue;
			if (c->node[k] & 1)
				flow_edge(&c->f, near(c, k), far(c, k), op_cost(c, i, k));
			if (gr->op[k].op != SEM_STORE &&
			    (!(gr->note[k].flags & GN_COMP) || (gr->note[k].flags & GN_COUNT)))
				flow_edge(&c->f, SRC, near(c, k), CUT_INF);
			c->to = near(c, k);
			vg_operands(&c->v, k, link_operand, c);
		}
}

/* A variable at a block's start: what it comes from, and what logging it there costs. What only
 * a mark, a return or an entry makes unknown is logged in their stubs: that is a node in between. */
static void in_node(struct cut *c, uint32_t i)
{
	struct gr *gr = c->gr;
	const struct vg_in *in = &c->v.in[i];
	uint32_t x = near(c, VG_IN | i), b = in->block;
	unsigned from = vg_from(&c->v, i);
	bool gpr = in->var < SEM_NGPR, real = b < gr->g->nblock;
	int64_t w = real ? weight(c, b) : 0, side = 0;

	if (c->node[gr->nop + i] & 1)
		flow_edge(&c->f, x, x + 1, in->nw * w);
	c->to = x;
	vg_operands(&c->v, VG_IN | i, link_operand, c);
	if (!gpr)
		return; /* entered through a mark it would not be computable, and is not demanded */
	if (from & VG_ENTRY) {
		bool provided = gr->g->sum->needs >> in->var & 1;

		/* once an activation; only direct callers may know it without logging it */
		side += !gr->round1 ? provided ? 1 : in->nw * w
				    : in->nw * (gr->g->sum->callers ? CUT_ONCE / 2 : CUT_ONCE);
	}
	if (from & VG_MARK)
		side += in->nw;
	if (from & VG_RET)
		side += in->nw * w;
	if (side)
		flow_edge(&c->f, SRC, x, side);
}

/* read the decisions off the cut */
static void decide(struct cut *c)
{
	struct gr *gr = c->gr;

	for (uint32_t i = 0; i < gr->g->ninsn; i++) {
		gr->in[i].ea = 0;
		gr->in[i].logged = 0;
		for (uint32_t k = gr->in[i].op; k < gr->in[i + 1].op; k++)
			if (c->v.nw[k] && gr->op[k].op != SEM_STORE && gr->op[k].dst < SEM_NGPR &&
			    is_cut(c, k))
				gr->in[i].logged |= 1u << gr->op[k].dst;
	}
	for (uint32_t i = 0; i < c->v.nin; i++)
		if (c->v.in[i].nw && (c->node[gr->nop + i] & 1) && is_cut(c, VG_IN | i))
			gr->b[c->v.in[i].block].blklog |= 1u << c->v.in[i].var;
	for (uint32_t i = 0; i < gr->g->nblock; i++)
		if (gr->b[i].ctl_can)
			gr->b[i].ctl_log = 0;
	for (uint32_t i = 0; i < c->nroot; i++) {
		if (c->f.level[c->root[i].node] == AN_NONE)
			continue;
		if (c->root[i].kind == ROOT_CTL)
			gr->b[c->root[i].block].ctl_log = 1;
		else
			gr->in[c->root[i].insn].ea |= 1u << c->root[i].rec;
	}
}

static int solve(struct cut *c)
{
	all_roots(c); /* demands */
	if (c->v.fail)
		return 1;
	c->node = calloc(c->gr->nop + c->v.nin + 1, sizeof(uint32_t));
	if (!c->node)
		return -1;
	number(c);
	/* and at most one node per root */
	if (flow_open(&c->f, c->extra + c->gr->nop + c->gr->g->nblock + 2) < 0)
		return -1;
	c->build = true;
	all_roots(c);
	op_nodes(c);
	for (uint32_t i = 0, nin = c->v.nin; i < nin; i++)
		if (c->v.in[i].nw)
			in_node(c, i);
	if (c->f.fail || c->v.fail)
		return -1;
	c->f.n = c->extra;
	if (!flow_run(&c->f, SRC, SINK, BUDGET))
		return 1;
	decide(c);
	return 0;
}

int cut_run(struct gr *gr)
{
	struct cut *c;
	int r = 1;

	if (gr->nop > MAX_OPS)
		return 1;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -1;
	c->gr = gr;
	c->freq = cut_freq(gr);
	if (c->freq && vg_open(&c->v, gr) == 0)
		r = solve(c);
	flow_close(&c->f);
	vg_close(&c->v);
	free(c->root);
	free(c->node);
	free(c->freq);
	free(c);
	return r;
}
