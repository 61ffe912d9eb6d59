/* SPDX-License-Identifier: MIT
 *
 * cut_net.c - the network that is cut: what is wanted, from where it is used back to where it comes from
 *
 *   source ─▶ [what is unknown] ─▶ … values computed from it … ─▶ [roots] ─▶ sink
 *
 * A value that can be logged is an edge whose capacity is the cost of that: bytes times how often the place is expected
 * to run (cut_freq.c). Blocks are visited backward, what they lead to first, and of each variable it is
 * known where it goes from here (struct way). As long as a value goes one way only it needs no node: where
 * two edges follow each other, with nothing else between them, the narrower one is both of them. So nodes are made
 * where ways part or meet:
 *
 *   - a value with several uses; an op with several operands;
 *   - a variable at the start of a block that several blocks lead to, or the source;
 *   - what is needed before its block has been visited: where control goes back.
 *
 * All this changes no cut: of edges equally narrow it is the one next to the source that counts, as in the smallest source's
 * side that flow_run finds.
 */
#include "cut_net.h"
#include "graph_range.h"

#define NOWHERE 0xffffffffu /* of a way: nobody has asked for it; */
#define NO_USE 0xfffffffeu /* nothing uses the value */
#define MAX_WAYS 400000u
#define MAX_EA 8 /* records of an instruction whose addresses can be logged */
enum { SRC = FLOW_SOURCE, SINK = FLOW_SINK };

struct net {
	struct cut *c;
	struct gr *gr;
	struct gr_set has; /* variables with a way from here */
	struct way at[NVAR];
	uint32_t bi, insn; /* where we are; the instruction that ea[] is about */
	int64_t freq;
	struct ea {
		uint32_t first, last; /* records on the same address */
		struct way way;
	} ea[MAX_EA];
	uint32_t nea;
	uint32_t *seen; /* per block: class it was last seen as a target of, plus one */
};

/* A log at a block's start, or of an address, counts for an eighth more than one at a definition: what is gained
 * by logging late rests on estimated frequencies of more blocks, and where the estimates say that it is nearly
 * the same, it mostly is more. (lua: 593 -> 554 bytes per 1,000 instructions, others within 0.5 % either way) */
static int64_t late(int64_t cost)
{
	return cost + cost / 8;
}

/* ---- ways ---- */

static uint32_t new_node(struct net *n)
{
	return n->c->nnode++;
}

static void edge(struct net *n, uint32_t from, uint32_t to, int64_t cap, struct cut_tag tag)
{
	if (from != to && from != SINK)
		flow_edge(&n->c->f, (struct flow_arc){from, to, cap, tag});
}

static void lead(struct net *n, uint32_t from, const struct way *w)
{
	if (w->cap)
		edge(n, from, w->to, w->cap, w->tag);
	else
		edge(n, from, w->to, CUT_INF, (struct cut_tag){0});
}

/* a node from which the way goes on, for all who come here */
static uint32_t land(struct net *n, struct way *w)
{
	if (w->cap) {
		uint32_t x = new_node(n);

		lead(n, x, w);
		*w = (struct way){.to = x};
	}
	w->own = false;
	return w->to;
}

/* one more edge on the way, before those that are there */
static void narrow(struct way *w, int64_t cap, struct cut_tag tag)
{
	if (w->cap && w->cap < cap)
		return;
	*w = (struct way){cap, w->to, tag, false};
}

static bool is_sink(const struct way *w)
{
	return !w->cap && w->to == SINK;
}

/* the variable goes this way, too */
static void join(struct net *n, unsigned var, struct way w)
{
	struct way *t = &n->at[var];

	if (!gr_has(&n->has, var)) {
		gr_add(&n->has, var);
		*t = w;
		return;
	}
	if (is_sink(t) || (!t->cap && !w.cap && t->to == w.to))
		return;
	if (is_sink(&w)) { /* it is known, then: nobody else has to ask */
		*t = w;
		return;
	}
	if (!t->own) {
		uint32_t x = new_node(n);

		lead(n, x, t);
		*t = (struct way){.to = x, .own = true};
	}
	lead(n, t->to, &w);
}

static const struct way sink = {.to = SINK};

/* the variable is not known before this op; where it goes: false, nowhere */
static bool take(struct net *n, unsigned var, struct way *w)
{
	if (!gr_has(&n->has, var))
		return false;
	gr_del(&n->has, var);
	*w = n->at[var];
	return true;
}

/* all operands lead where the result does */
static void spread(struct net *n, const uint16_t *var, int nvar, struct way w)
{
	if (nvar > 1)
		land(n, &w);
	for (int i = 0; i < nvar; i++)
		join(n, var[i], w);
}

static int add_var(uint16_t *var, int n, unsigned v)
{
	if (v >= NVAR || cut_known(v))
		return n;
	for (int i = 0; i < n; i++)
		if (var[i] == v)
			return n;
	var[n] = (uint16_t)v;
	return n + 1;
}

/* ---- ops ---- */

static void value(struct net *n, uint32_t i, uint32_t k)
{
	struct gr *gr = n->gr;
	const struct sem_op *op = &gr->op[k];
	uint16_t flags = gr->note[k].flags, var[5];
	struct sem_use u[4];
	struct way w;
	int nu, nvar = 0;
	bool sx;

	if (!take(n, op->dst, &w) && !(op->dst < 64 && CUT_WANTED >> op->dst & 1))
		return;
	if (op->dst < 64 && CUT_WANTED >> op->dst & 1)
		w = sink;
	if (flags & GN_COUNT)
		narrow(&w, 8 * n->freq,
		       op->dst < SEM_NGPR ? (struct cut_tag){i, TAG_DEF, (uint8_t)op->dst}
					  : (struct cut_tag){0});
	else if (op->dst < SEM_NGPR)
		narrow(&w, gr_logwidth(gr, i, k, n->c->wants->nw[k], &sx) * n->freq,
		       (struct cut_tag){i, TAG_DEF, (uint8_t)op->dst});
	if (!(flags & GN_COMP) || (flags & GN_COUNT)) {
		lead(n, SRC, &w);
		return;
	}
	if (op->op == SEM_LOAD && !(flags & (GN_RO | GN_SELF)))
		nvar = add_var(var, nvar, GR_SLOT + gr->note[k].slot);
	nu = gr_op_uses(gr, k, n->c->wants->nw[k], u);
	for (int j = 0; j < nu; j++)
		nvar = add_var(var, nvar, u[j].reg);
	spread(n, var, nvar, w);
}

static void store(struct net *n, uint32_t k)
{
	const struct sem_op *op = &n->gr->op[k];
	uint16_t var[2];
	struct way w;

	if (take(n, GR_SLOT + n->gr->note[k].slot, &w))
		spread(n, var, add_var(var, add_var(var, 0, op->a), op->b), w);
}

static void records(struct net *n, uint32_t k)
{
	struct gr *gr = n->gr;
	const struct sem_op *op = &gr->op[k];
	const struct sem_vec *v = (const struct sem_vec *)(op + 1);
	uint16_t r[4];
	int nr = cut_reads(gr, k, r);

	for (int j = 0; j < nr; j++)
		join(n, r[j], sink);
	if (gr->note[k].flags &
	    GN_MASKCAN) { /* can be logged itself: the edge has to be there, so that it is decided */
		struct way w = {.to = new_node(n)};

		edge(n, w.to, SINK, v->mask_bytes * n->freq, (struct cut_tag){k, TAG_MASK, 0});
		join(n, gr_mask(op), w);
	}
}

static bool same_address(const struct sem_op *x, const struct sem_op *y)
{
	return x->a == y->a && x->b == y->b && x->imm == y->imm;
}

/* The addresses of the instruction's records that can be logged. Read and write of one operand are one address: one log
 * serves both. */
static void find_ea(struct net *n, uint32_t i)
{
	struct gr *gr = n->gr;
	const struct sem_op *before = NULL;
	struct ea *e = NULL;
	uint32_t rec = 0, uses = 0;
	struct plan_log l;

	n->insn = i;
	n->nea = 0;
	for (uint32_t k = gr->in[i].op; k < gr->in[i + 1].op; k++) {
		const struct sem_op *op = &gr->op[k];

		if (gr->note[k].kind != GK_REC)
			continue;
		if (cut_rec(gr, k)) {
			bool same = before && same_address(before, op);

			if (!same)
				e = NULL;
			if (!same && rec < MAX_EA && pe_ea(gr, i, k, &l)) {
				e = &n->ea[n->nea++];
				*e = (struct ea){.first = k};
				e->way = (struct way){
					late(gr_eawidth(gr, k) * n->freq), SINK, {i, TAG_EA, 0}, false};
				uses = 0;
			}
			if (e) {
				e->last = k;
				e->way.tag.arg |= rec < MAX_EA ? (uint8_t)(1u << rec) : 0;
				uses += (op->a < SEM_NREGS && !cut_known(op->a)) +
					(op->b < SEM_NREGS && !cut_known(op->b));
				e->way.own = uses > 1; /* for now */
			}
			before = op;
		}
		rec++;
	}
	for (uint32_t j = 0; j < n->nea; j++)
		if (n->ea[j].way.own)
			land(n, &n->ea[j].way);
}

static void record(struct net *n, uint32_t i, uint32_t k)
{
	const struct sem_op *op = &n->gr->op[k];
	struct way w = sink;
	uint16_t var[2];
	int nvar;

	if (n->insn != i)
		find_ea(n, i);
	for (uint32_t j = 0; j < n->nea; j++)
		if (k >= n->ea[j].first && k <= n->ea[j].last)
			w = n->ea[j].way;
	nvar = add_var(var, add_var(var, 0, op->a), op->b);
	for (int j = 0; j < nvar; j++)
		join(n, var[j], w);
}

static inline void step(struct net *n, uint32_t i, uint32_t k)
{
	switch (n->gr->note[k].kind) {
	case GK_STORE:
		store(n, k);
		break;
	case GK_REC:
		record(n, i, k);
		break;
	case GK_GROUP:
		records(n, k);
		break;
	default:
		value(n, i, k);
		break;
	}
}

static void ops(struct net *n)
{
	const struct gr *gr = n->gr;
	const struct an_block *b = &gr->g->block[n->bi];
	const uint8_t *nw = n->c->wants->nw;

	for (uint32_t i = b->first + b->n; i-- > b->first;)
		for (uint32_t k = gr->in [i + 1].op, first = gr->in[i].op; k-- > first;)
			if (nw[k])
				step(n, i, k);
}

/* ---- blocks ---- */

/* the ways of n variables from the first one on, but for the registers in `not` */
static void join_all(struct net *n, uint32_t first, uint32_t nvar, uint16_t not )
{
	const uint16_t *var = n->c->var + first;
	struct way *w = n->c->way + first;

	for (uint32_t i = 0; i < nvar; i++) {
		if (w[i].to == NOWHERE)
			w[i] = (struct way){.to = new_node(n)};
		if (w[i].to != NO_USE && !(var[i] < SEM_NGPR && not >> var[i] & 1))
			join(n, var[i], w[i]);
	}
}

/* what block `to` wants at its start */
static void join_block(struct net *n, uint32_t to, uint16_t not )
{
	join_all(n, n->c->b[to].first, n->c->b[to].n, not );
}

/* the ways of a class of jump tables: what all targets want. Leaves them in at[] */
static void first_jump(struct net *n, uint32_t class)
{
	const struct an_table *t = &n->gr->g->table[class];
	const struct cut_class *k = &n->c->class[class];
	const uint16_t *var = n->c->var + k->first;
	struct way *w = n->c->way + k->first;

	for (uint32_t i = 0; i < t->ntarget; i++) {
		uint32_t to = t->target[i];

		if (n->seen[to] == class + 1)
			continue;
		n->seen[to] = class + 1;
		join_block(n, to, 0);
	}
	for (uint32_t i = 0; i < k->n; i++) {
		if (gr_has(&n->has, var[i])) {
			land(n, &n->at[var[i]]);
			w[i] = n->at[var[i]];
		} else {
			w[i].to = NO_USE;
		}
	}
}

static void jump(struct net *n)
{
	const struct gr *gr = n->gr;
	uint32_t class = gr->class[gr->g->block[n->bi].table];
	struct cut_class *k = &n->c->class[class];

	if (k->done)
		join_all(n, k->first, k->n, 0);
	else
		first_jump(n, class);
	k->done = true;
}

/* where control goes at the block's end, if that is computable */
static void control(struct net *n, int64_t bytes)
{
	if (n->gr->b[n->bi].ctl_can)
		join(n, SEM_T0, (struct way){bytes * n->freq, SINK, {n->bi, TAG_CTL, 0}, false});
}

static void at_end(struct net *n)
{
	const struct gr *gr = n->gr;
	const struct an_block *b = &gr->g->block[n->bi];
	const struct cut *c = n->c;
	uint8_t flow = gr_flow(gr, n->bi);

	memset(&n->has, 0, sizeof(n->has));
	if (flow == FLOW_IJMP && !cut_leaves(gr, n->bi)) {
		jump(n);
		control(n, glue_jump(gr->m, gr->g, n->bi) == JUMP_MIXED ? 8 : 4);
	} else if (flow == FLOW_JCC) {
		control(n, 1);
	}
	if (b->succ[1] != AN_NONE && c->wants->clob[n->bi] != 0xffff)
		join_block(n, b->succ[1], c->wants->clob[n->bi]);
	if (b->succ[0] != AN_NONE && b->succ[0] != b->succ[1])
		join_block(n, b->succ[0], c->wants->clob[n->bi]);
	for (uint32_t r = c->wants->callee[n->bi]; r; r &= r - 1)
		join(n, (unsigned)__builtin_ctz(r), sink);
}

int64_t cut_entry_cost(const struct cut *c, const struct cut_entry *e)
{
	const struct gr *gr = c->gr;

	if (gr->round1)
		return e->w * (gr->g->sum->callers ? CUT_ONCE / 2 : CUT_ONCE);
	return gr->g->sum->needs >> e->reg & 1 ? 1 : e->w * c->freq[e->block];
}

/* What only a mark, a return or an entry makes unknown is logged in their stubs. An entry runs once an
 * activation; only direct callers may know the value without logging it. */
static int64_t from_outside(struct net *n, unsigned reg, unsigned w, struct cut_entry *e)
{
	const struct cut_block *b = &n->c->b[n->bi];
	int64_t cost = 0;

	*e = (struct cut_entry){0, n->bi, (uint8_t)reg, (uint8_t)w, 0};
	if (b->from & FROM_ENTRY)
		cost += e->cost = cut_entry_cost(n->c, e);
	if (b->from & FROM_MARK)
		cost += w;
	if (b->ret >> reg & 1)
		cost += w * n->freq;
	return cost;
}

/* a general register at the block's start: can be logged there */
static int64_t reg_at_start(struct net *n, unsigned reg, struct way *w, struct cut_entry *e)
{
	unsigned wanted = gr_gpr(&n->c->wants->start[n->bi], reg);
	bool sx;
	unsigned width = gr_inwidth(n->gr, n->bi, reg, wanted, &sx);

	narrow(w, late(width * n->freq), (struct cut_tag){n->bi, TAG_START, (uint8_t)reg});
	if (!n->c->b[n->bi].from && !(n->c->b[n->bi].ret >> reg & 1))
		return 0;
	return from_outside(n, reg, width, e);
}

static void at_start(struct net *n)
{
	struct cut *c = n->c;
	const struct cut_block *b = &c->b[n->bi];
	const uint16_t *var = c->var + b->first;

	for (uint32_t i = 0; i < b->n; i++) {
		struct way w, *in = &c->way[b->first + i];
		struct cut_entry e;
		int64_t outside = 0;

		if (!take(n, var[i], &w)) {
			if (in->to == NOWHERE)
				in->to = NO_USE;
			continue;
		}
		if (var[i] < SEM_NGPR)
			outside = reg_at_start(n, var[i], &w, &e);
		if (in->to != NOWHERE) { /* somebody has asked before */
			lead(n, in->to, &w);
		} else {
			if (outside || b->several)
				land(n, &w);
			*in = w;
		}
		if (outside)
			edge(n, SRC, in->to, outside, (struct cut_tag){0});
		if (outside && e.cost) {
			e.node = in->to;
			c->entry[c->nentry++] = e;
		}
	}
}

/* how control comes to a block, apart from the blocks' ends */
static void find_from(struct cut *c, uint32_t bi)
{
	const struct gr *gr = c->gr;
	const struct an_block *b = &gr->g->block[bi];
	struct cut_block *cb = &c->b[bi];
	uint32_t ways = 0, class = AN_NONE;

	if (b->flags & AN_B_ENTRY)
		cb->from |= FROM_ENTRY;
	else if (gr->b[bi].stub == STUB_RESYNC || !b->npred)
		cb->from |= FROM_MARK;
	for (uint32_t k = 0; k < b->npred; k++) {
		uint32_t p = b->pred[k];
		uint8_t flow = gr_flow(gr, p);

		if (flow == FLOW_IJMP) {
			if (cut_leaves(gr, p)) {
				cb->from |= FROM_MARK;
				continue;
			}
			ways += gr->class[gr->g->block[p].table] != class;
			class = gr->class[gr->g->block[p].table];
			continue;
		}
		ways++;
		if (flow == FLOW_SYSCALL)
			cb->ret |= 1u << SEM_R11;
		else if (c->wants->clob[p] == 0xffff)
			cb->from |= FROM_MARK;
		else
			cb->ret |= c->wants->clob[p];
	}
	cb->several = ways > 1;
}

/* the variables of a set, from var[n] on; returns where they end */
static uint32_t list(struct cut *c, const struct gr_set *s, uint32_t n)
{
	_Static_assert(GR_X2 / 64 == 5 && GR_SLOT == GR_X2 + 32, "bytes of registers are bits of word 5");
	for (unsigned ws = c->wants->words; ws; ws &= ws - 1) {
		unsigned i = (unsigned)__builtin_ctz(ws);
		uint64_t m = s->w[i] & ~(i == 5 ? 0xffffffffull << (GR_X2 & 63) : 0);

		for (; m; m &= m - 1)
			c->var[n++] = (uint16_t)(i * 64 + (unsigned)__builtin_ctzll(m));
	}
	return n;
}

/* lists the variables of blocks and classes: returns how many, or MAX_WAYS + 1. *nentry: those at entries */
static uint32_t list_all(struct cut *c, uint32_t *nentry)
{
	const struct an_group *g = c->gr->g;
	uint32_t n = 0, cap = 0;

	for (uint32_t i = 0; i < g->nblock + g->ntable && n <= MAX_WAYS; i++) {
		uint32_t class = i - g->nblock, first = n;

		if (n + NVAR > cap) {
			c->var = scratch_more(c->var, n * sizeof(*c->var), (n + 4 * NVAR) * sizeof(*c->var));
			cap = n + 4 * NVAR;
		}
		if (!c->var)
			return 0;
		if (i < g->nblock) {
			find_from(c, i);
			n = list(c, &c->wants->start[i], n);
			c->b[i].first = first;
			c->b[i].n = n - first;
			*nentry += c->b[i].from & FROM_ENTRY ? n - first : 0;
			if (gr_flow(c->gr, i) == FLOW_IJMP && !cut_leaves(c->gr, i))
				c->class[c->gr->class[g->block[i].table]].jumps++;
		} else if (c->class[class].jumps > 1) {
			n = list(c, &c->gr->meet[class], n);
			c->class[class].first = first;
			c->class[class].n = n - first;
		}
	}
	return n;
}

static struct net *open_net(struct cut *c, uint32_t nway, uint32_t nentry)
{
	uint32_t nb = c->gr->g->nblock;
	struct net *n = scratch(sizeof(*n));

	c->way = scratch(nway * sizeof(*c->way));
	c->entry = scratch(nentry * sizeof(*c->entry));
	if (!n || !c->way || !c->entry)
		return NULL;
	n->c = c;
	n->gr = c->gr;
	n->insn = AN_NONE;
	n->seen = scratch_zero(nb * sizeof(*n->seen));
	for (uint32_t i = 0; i < nway; i++)
		c->way[i].to = NOWHERE;
	return n->seen ? n : NULL;
}

int cut_net(struct cut *c)
{
	uint32_t nb = c->gr->g->nblock, nway, nentry = 0;
	struct net *n;

	c->class = scratch_zero(c->gr->g->ntable * sizeof(*c->class));
	if (!c->class)
		return -1;
	nway = list_all(c, &nentry);
	if (!c->var)
		return -1;
	if (nway > MAX_WAYS)
		return 1;
	n = open_net(c, nway, nentry);
	if (!n)
		return -1;
	c->nnode = 2;
	for (uint32_t i = 0; i < nb; i++) {
		n->bi = c->order[i];
		n->freq = c->freq[n->bi];
		at_end(n);
		ops(n);
		at_start(n);
	}
	return c->f.fail ? -1 : 0;
}
