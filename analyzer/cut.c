/* SPDX-License-Identifier: MIT
 *
 * cut.c - the cheapest set of values to log, by a minimum cut of the value graph
 *
 *   source ─▶ [what is unknown] ─▶ … values computed from it … ─▶ [roots] ─▶ sink
 *
 * Every value is a pair of nodes joined by an edge whose capacity is the cost of logging it there:
 * bytes times how often the place is expected to run (cut_freq.c). A branch costs its
 * one byte, an indirect target four, an address six whatever it is made of, a vector's mask its own. Values that cannot
 * be logged have infinite capacity. The edges of a minimum cut are the logs; whatever is behind them
 * is recomputed. The result goes into the decisions (gr_insn.logged, .ea, gr_block.blklog, .ctl_log),
 * which gr_need follows; an error here could cost bytes but not correctness.
 */
#include <stdlib.h>
#include "cut.h"

#define MAX_OPS 600000u
#define BUDGET 40000000u

/* What a value is linked to: a reference (its index, see at()), the sink, or a paid root. */
#define TO_SINK 0xfffffffeu
#define TO_ROOT 0x80000000u
#define NOBODY 0xffffffffu
#define SEVERAL 0xfffffffdu

struct cut {
	struct gr *gr;
	struct vg v;
	struct flow f;
	int64_t *freq; /* per block: how often it runs */
	uint32_t *near, *far; /* nodes of op k at k, of in i at nop + i; equal where it cannot be logged */
	uint32_t *user; /* same index: the one thing linked to it, NOBODY or SEVERAL */
	struct link {
		uint32_t from, to;
	} * link; /* from a value to what it is used for */
	uint32_t nlink, caplink;
	uint32_t to; /* whose operands are being linked */
	struct root {
		uint32_t node, insn, block;
		int64_t cost;
		uint8_t kind, rec;
		uint32_t op; /* ROOT_MASK */
	} * root;
	uint32_t nroot, caproot, npaid;
	struct {
		uint32_t in;
		int64_t cost;
	} * entry; /* edges from the source whose capacity depends on the round */
	uint32_t nentry, capentry;
	uint8_t *side; /* per node: on the source's side of the last cut */
	uint32_t nnode;
	bool fail;
};
enum { ROOT_EA, ROOT_CTL, ROOT_MASK };
enum { SRC = FLOW_SOURCE, SINK = FLOW_SINK };

static int64_t weight(const struct cut *c, uint32_t block)
{
	return c->freq[block];
}

/* A log at a block's start, or of an address, counts for an eighth more than one at a definition: what is gained
 * by logging late rests on estimated frequencies of more blocks, and where the estimates say that it is nearly
 * the same, it mostly is more. (lua: 593 -> 554 bytes per 1,000 instructions, others within 0.5 % either way) */
static int64_t late(int64_t cost)
{
	return cost + cost / 8;
}

static uint32_t at(const struct cut *c, uint32_t ref)
{
	return ref & VG_IN ? c->gr->nop + (ref & ~VG_IN) : ref;
}

/* is logging this value part of the cut? */
static bool is_cut(const struct cut *c, uint32_t ref)
{
	return c->side[c->near[at(c, ref)]] && !c->side[c->far[at(c, ref)]];
}

static bool room(void *arr, uint32_t n, uint32_t *cap, size_t size)
{
	uint32_t c = *cap ? *cap * 2 : 256;
	void *p;

	if (n < *cap)
		return true;
	p = realloc(*(void **)arr, c * size);
	if (!p)
		return false;
	*(void **)arr = p;
	*cap = c;
	return true;
}

static void add_link(struct cut *c, uint32_t from, uint32_t to)
{
	if (room(&c->link, c->nlink, &c->caplink, sizeof(*c->link)))
		c->link[c->nlink++] = (struct link){from, to};
	else
		c->fail = true;
}

/* root - ref must be known (w bytes) at `to` */
static void root(struct cut *c, uint32_t ref, unsigned w, uint32_t to)
{
	if (ref == VG_NOREF)
		return;
	vg_demand(&c->v, ref, w);
	add_link(c, ref, to); /* the index follows when all references exist */
}

/* add_root - something that can be logged itself; node: TO_ROOT | number of its node */
static void add_root(struct cut *c, struct root r)
{
	if (room(&c->root, c->nroot, &c->caproot, sizeof(*c->root)))
		c->root[c->nroot++] = r;
	else
		c->fail = true;
}

static uint32_t paid_root(struct cut *c, struct root r)
{
	r.node = c->npaid++;
	add_root(c, r);
	return TO_ROOT | r.node;
}

static bool leaf(unsigned reg)
{
	return reg == SEM_NONE || reg == SEM_RSP || reg == SEM_FSBASE || reg == SEM_GSBASE;
}

/* a group of records: base and index, count and DF; a mask can be logged instead */
static void roots_group(struct cut *c, uint32_t bi, uint32_t i, uint32_t k)
{
	const struct sem_op *op = &c->gr->op[k];
	const struct sem_vec *v = (const struct sem_vec *)(op + 1);
	uint32_t to;

	for (int j = 0; j < 4; j++)
		if (j != 2 || gr_mask(op) == SEM_NONE)
			root(c, c->v.src[k][j], 8, TO_SINK);
	if (!(c->gr->note[k].flags & GN_MASKCAN))
		return;
	to = paid_root(c, (struct root){.insn = i,
					.block = bi,
					.cost = v->mask_bytes * weight(c, bi),
					.kind = ROOT_MASK,
					.op = k});
	root(c, c->v.src[k][2], 8, to);
}

static void roots_insn(struct cut *c, uint32_t bi, uint32_t i)
{
	struct gr *gr = c->gr;
	uint32_t rec = 0, to = TO_SINK;
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
				to = TO_SINK;
				if (n < 8 && pe_ea(gr, i, k, &l))
					to = paid_root(c,
						       (struct root){0, i, bi,
								     late(gr_eawidth(gr, k) * weight(c, bi)),
								     ROOT_EA, (uint8_t)n, k});
			} else if (to != TO_SINK && n < 8) {
				add_root(c, (struct root){to & ~TO_ROOT, i, bi, 0, ROOT_EA, (uint8_t)n, k});
			}
			before = op;
			if (!leaf(op->a))
				root(c, c->v.src[k][0], 8, to);
			if (!leaf(op->b))
				root(c, c->v.src[k][1], 8, to);
		} else if (gr_has_slot2(op)) {
			roots_group(c, bi, i, k);
		} else if (gr_is_value(op) &&
			   (op->dst == SEM_RSP || op->dst == SEM_FSBASE || op->dst == SEM_GSBASE ||
			    (op->dst == SEM_DF && gr->writes_df))) {
			root(c, k, 8, TO_SINK);
		}
	}
}

static void roots_callee(struct cut *c, uint32_t bi, uint32_t insn)
{
	const struct an_callee *ca = glue_callee(c->gr->g, insn);
	uint32_t need = ca ? c->gr->m->group[ca->group].sum->needs : 0;

	for (int r = 0; r < SEM_NGPR; r++)
		if ((need >> r & 1) && r != SEM_RSP)
			root(c, vg_end(&c->v, bi, r), 8, TO_SINK);
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
		to = paid_root(c, (struct root){0, insn, bi, cost, ROOT_CTL, 0, 0});
		root(c, vg_end(&c->v, bi, SEM_T0), 8, to);
	} else if (flow == FLOW_IJMP && gr->b[bi].ctl_can) {
		kind = glue_jump(gr->m, gr->g, bi);
		if (kind != JUMP_LEAVES) {
			cost *= kind == JUMP_MIXED ? 8 : 4;
			to = paid_root(c, (struct root){0, insn, bi, cost, ROOT_CTL, 0, 0});
			root(c, vg_end(&c->v, bi, SEM_T0), 8, to);
		}
	}
	if (flow == FLOW_CALL || flow == FLOW_JMP || flow == FLOW_JCC || glue_link(gr->g, bi))
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

static void link_operand(void *ctx, uint32_t ref, unsigned w)
{
	struct cut *c = ctx;

	(void)w;
	if (ref != VG_NOREF)
		add_link(c, at(c, ref), c->to);
}

/* all uses of all demanded values; and who has just one */
static void link_all(struct cut *c)
{
	uint32_t nop = c->gr->nop, n = nop + c->v.nin;

	for (uint32_t i = 0; i < c->nlink; i++)
		c->link[i].from = at(c, c->link[i].from);
	for (uint32_t x = 0; x < n; x++) {
		if (!(x < nop ? c->v.nw[x] : c->v.in[x - nop].nw))
			continue;
		c->to = x;
		vg_operands(&c->v, x < nop ? x : VG_IN | (x - nop), link_operand, c);
	}
	for (uint32_t x = 0; x < n; x++)
		c->user[x] = NOBODY;
	for (uint32_t i = 0; i < c->nlink; i++) {
		uint32_t *u = &c->user[c->link[i].from];

		*u = *u == NOBODY || *u == c->link[i].to ? c->link[i].to : SEVERAL;
	}
}

static bool unknown_op(const struct gr *gr, uint32_t k)
{
	return gr->op[k].op != SEM_STORE &&
	       (!(gr->note[k].flags & GN_COMP) || (gr->note[k].flags & GN_COUNT));
}

/* can the value be logged where it is defined? */
static bool loggable(const struct cut *c, uint32_t x)
{
	const struct gr *gr = c->gr;

	if (x < gr->nop)
		return (gr->op[x].op != SEM_STORE && gr->op[x].dst < SEM_NGPR) ||
		       (gr->note[x].flags & GN_COUNT);
	x -= gr->nop;
	return c->v.in[x].var < SEM_NGPR && c->v.in[x].block < gr->g->nblock;
}

/* The node of what has one and cannot be logged and has one user is that user's: no cut separates them.
 * Temporaries, mostly, and half of the graph. */
static uint32_t node_of(const struct cut *c, uint32_t x, uint32_t paid)
{
	while (c->near[x] == NOBODY) {
		if (c->far[x] != SRC)
			return c->far[x]; /* found before */
		x = c->user[x];
		if (x == TO_SINK)
			return SINK;
		if (x & TO_ROOT)
			return paid + (x & ~TO_ROOT);
	}
	return c->near[x];
}

/* Nodes of the demanded values. What cannot be computed is the source's own. */
static uint32_t number(struct cut *c)
{
	uint32_t nop = c->gr->nop, n = nop + c->v.nin, node = 2, paid;

	for (uint32_t x = 0; x < n; x++) {
		c->near[x] = c->far[x] = SRC;
		if (!(x < nop ? c->v.nw[x] : c->v.in[x - nop].nw))
			continue;
		if (x < nop && unknown_op(c->gr, x)) {
			c->far[x] = loggable(c, x) ? node++ : (uint32_t)SRC;
		} else if (loggable(c, x)) {
			c->near[x] = node++;
			c->far[x] = node++;
		} else if (c->user[x] != NOBODY && c->user[x] != SEVERAL) {
			c->near[x] = NOBODY;
		} else {
			c->near[x] = c->far[x] = node++;
		}
	}
	paid = node;
	for (uint32_t x = n; x-- > 0;) /* users come after, mostly: short ways */
		if (c->near[x] == NOBODY)
			c->far[x] = node_of(c, x, paid);
	for (uint32_t x = 0; x < n; x++)
		if (c->near[x] == NOBODY)
			c->near[x] = c->far[x];
	for (uint32_t i = 0; i < c->nroot; i++)
		c->root[i].node += paid;
	for (uint32_t i = 0; i < c->nlink; i++)
		if (c->link[i].to != TO_SINK && (c->link[i].to & TO_ROOT))
			c->link[i].to = TO_ROOT | (paid + (c->link[i].to & ~TO_ROOT));
	return node + c->npaid;
}

/* bytes to log of a variable at a block's start */
static int64_t in_width(const struct cut *c, const struct vg_in *in)
{
	bool sx;

	return in->var < SEM_NGPR && in->block < c->gr->g->nblock
		       ? gr_inwidth(c->gr, in->block, in->var, in->nw, &sx)
		       : in->nw;
}

/* What only a mark, a return or an entry makes unknown is logged in their stubs. An entry runs once an
 * activation; only direct callers may know the value without logging it. */
static int64_t entry_cost(const struct cut *c, uint32_t i)
{
	const struct gr *gr = c->gr;
	const struct vg_in *in = &c->v.in[i];

	if (gr->round1)
		return in_width(c, in) * (gr->g->sum->callers ? CUT_ONCE / 2 : CUT_ONCE);
	return gr->g->sum->needs >> in->var & 1 ? 1 : in_width(c, in) * weight(c, in->block);
}

/* a variable at a block's start: what logging it there costs, and in the stubs on the way to it */
static void in_node(struct cut *c, uint32_t i)
{
	const struct vg_in *in = &c->v.in[i];
	uint32_t x = c->gr->nop + i;
	unsigned from;
	int64_t side = 0, cost = 0;

	if (in->var >= SEM_NGPR)
		return; /* entered through a mark it would not be computable, and is not demanded */
	if (c->near[x] != c->far[x])
		flow_edge(&c->f, c->near[x], c->far[x], late(in_width(c, in) * weight(c, in->block)));
	from = vg_from(&c->v, i);
	if (from & VG_ENTRY)
		side += cost = entry_cost(c, i);
	if (from & VG_MARK)
		side += in_width(c, in);
	if (from & VG_RET)
		side += in_width(c, in) * weight(c, in->block);
	if (!side)
		return;
	flow_edge(&c->f, SRC, c->near[x], side);
	if (!(from & VG_ENTRY))
		return;
	if (!room(&c->entry, c->nentry, &c->capentry, sizeof(*c->entry))) {
		c->fail = true;
		return;
	}
	c->entry[c->nentry].in = i;
	c->entry[c->nentry++].cost = cost;
}

static void edges(struct cut *c)
{
	struct gr *gr = c->gr;

	for (uint32_t i = 0; i < gr->g->ninsn; i++)
		for (uint32_t k = gr->in[i].op; k < gr->in[i + 1].op; k++)
			if (c->v.nw[k] && c->near[k] != c->far[k])
				flow_edge(&c->f, c->near[k], c->far[k], op_cost(c, i, k));
	for (uint32_t i = 0; i < c->v.nin; i++)
		if (c->v.in[i].nw)
			in_node(c, i);
	for (uint32_t i = 0; i < c->nroot; i++)
		if (c->root[i].cost)
			flow_edge(&c->f, c->root[i].node, SINK, c->root[i].cost);
	for (uint32_t i = 0; i < c->nlink; i++) {
		uint32_t to = c->link[i].to, from = c->far[c->link[i].from];

		to = to == TO_SINK ? (uint32_t)SINK : to & TO_ROOT ? to & ~TO_ROOT : c->near[to];
		/* out of the sink nothing flows; from source to sink is no question of cost */
		if (from != to && from != SINK && to != SRC && !(from == SRC && to == SINK))
			flow_edge(&c->f, from, to, CUT_INF);
	}
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
	for (uint32_t i = 0; i < gr->g->nblock; i++) {
		gr->b[i].blklog = 0;
		if (gr->b[i].ctl_can)
			gr->b[i].ctl_log = 0;
	}
	for (uint32_t i = 0; i < c->v.nin; i++)
		if (c->v.in[i].nw && is_cut(c, VG_IN | i))
			gr->b[c->v.in[i].block].blklog |= 1u << c->v.in[i].var;
	for (uint32_t i = 0; i < c->nroot; i++) {
		if (c->root[i].kind == ROOT_MASK)
			gr->note[c->root[i].op].flags |= GN_MASK;
		if (!c->side[c->root[i].node])
			continue;
		if (c->root[i].kind == ROOT_MASK)
			gr->note[c->root[i].op].flags &= (uint16_t)~GN_MASK;
		else if (c->root[i].kind == ROOT_CTL)
			gr->b[c->root[i].block].ctl_log = 1;
		else
			gr->in[c->root[i].insn].ea |= 1u << c->root[i].rec;
	}
}

static int build(struct cut *c)
{
	uint32_t n, *order;

	c->freq = cut_freq(c->gr, &order);
	if (!c->freq || vg_open(&c->v, c->gr) < 0)
		return 1;
	all_roots(c);
	if (c->v.fail)
		return 1;
	n = c->gr->nop + c->v.nin + 1;
	c->near = malloc(n * sizeof(*c->near));
	c->far = malloc(n * sizeof(*c->far));
	c->user = malloc(n * sizeof(*c->user));
	if (c->fail || !c->near || !c->far || !c->user)
		return -1;
	link_all(c);
	if (c->v.fail)
		return 1;
	if (c->fail)
		return -1;
	c->nnode = number(c);
	edges(c);
	free(c->link);
	c->link = NULL;
	c->side = calloc(c->nnode, 1);
	return c->fail || !c->side || flow_seal(&c->f, c->nnode) < 0 ? -1 : 0;
}

/* this round's capacities; false: they are what they were */
static bool new_costs(struct cut *c)
{
	bool ch = false;

	for (uint32_t i = 0; i < c->nentry; i++) {
		int64_t cost = entry_cost(c, c->entry[i].in);

		if (cost == c->entry[i].cost)
			continue;
		flow_add(&c->f, c->near[c->gr->nop + c->entry[i].in], cost - c->entry[i].cost);
		c->entry[i].cost = cost;
		ch = true;
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
		if (gr->nop > MAX_OPS)
			return 1;
		gr->cut = calloc(1, sizeof(*gr->cut));
		if (!gr->cut)
			return -1;
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
	struct cut *c = gr->cut;

	if (!c)
		return;
	flow_close(&c->f);
	vg_close(&c->v);
	free(c->root);
	free(c->link);
	free(c->entry);
	free(c->side);
	free(c->near);
	free(c->far);
	free(c->user);
	free(c);
	gr->cut = NULL;
}
