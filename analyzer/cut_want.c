/* SPDX-License-Identifier: MIT
 *
 * cut_want.c - backward: of which values something would have to be known if nothing were logged
 *
 * What gr_need does with the decisions, before there are any: the same roots, and each branch and each address besides;
 * whatever can be computed is, from its operands. So this is the part of the group that the cut is a
 * question of, and how many bytes each value would take.
 */
#include "cut_net.h"

bool cut_leaves(const struct gr *gr, uint32_t bi)
{
	return gr->g->block[bi].table == AN_NONE || glue_jump(gr->m, gr->g, bi) == JUMP_LEAVES;
}

uint16_t cut_clobber(const struct gr *gr, uint32_t bi, uint32_t to)
{
	switch (gr_flow(gr, bi)) {
	case FLOW_SYSCALL:
		return 1u << SEM_RAX | 1u << SEM_RCX | 1u << SEM_R11;
	case FLOW_CALL:
	case FLOW_ICALL:
		return gr->b[to].stub == STUB_RESYNC ? 0xffff : (uint16_t)gr_ret_clobber(gr, bi);
	default:
		return 0;
	}
}

uint32_t cut_callee(const struct gr *gr, uint32_t bi)
{
	uint32_t last = gr->g->block[bi].first + gr->g->block[bi].n - 1;
	uint8_t flow = gr_flow(gr, bi);
	const struct an_callee *c = NULL;

	if (flow == FLOW_CALL || flow == FLOW_JMP || flow == FLOW_JCC || flow == FLOW_IJMP)
		c = glue_callee(gr->g, last);
	return c ? gr->m->group[c->group].sum->needs & ~(1u << SEM_RSP) : 0;
}

/* what is wanted at a block's end */
static void at_end(const struct cut *c, uint32_t bi, struct gr_set *n)
{
	const struct gr *gr = c->gr;
	const struct an_block *b = &gr->g->block[bi];
	uint32_t regs = cut_callee(gr, bi);
	uint8_t flow = gr_flow(gr, bi);

	memset(n, 0, sizeof(*n));
	if (b->succ[1] != AN_NONE && c->b[bi].clob != 0xffff) {
		*n = c->want[b->succ[1]];
		for (uint32_t r = c->b[bi].clob; r; r &= r - 1)
			gr_del_gpr(n, (unsigned)__builtin_ctz(r));
	}
	if (b->succ[0] != AN_NONE)
		gr_or(n, &c->want[b->succ[0]]);
	if (flow == FLOW_IJMP && !cut_leaves(gr, bi)) {
		gr_or(n, &gr->meet[gr->class[b->table]]);
		if (gr->b[bi].ctl_can)
			gr_add(n, SEM_T0);
	}
	if (flow == FLOW_JCC && gr->b[bi].ctl_can)
		gr_add(n, SEM_T0);
	for (; regs; regs &= regs - 1)
		gr_add_gpr(n, (unsigned)__builtin_ctz(regs), 8);
}

/* a variable that is no general register */
static void want(struct cut *c, struct gr_set *n, unsigned var)
{
	gr_add(n, var);
	c->words |= (uint16_t)(1u << (var >> 6));
}

static void use(struct cut *c, struct gr_set *n, unsigned reg, unsigned w)
{
	if (cut_known(reg))
		return;
	if (reg < SEM_NGPR)
		gr_add_gpr(n, reg, w);
	else if (reg < SEM_NREGS)
		want(c, n, reg);
}

static uint8_t value(struct cut *c, uint32_t k, struct gr_set *n)
{
	const struct gr *gr = c->gr;
	const struct sem_op *op = &gr->op[k];
	uint16_t flags = gr->note[k].flags;
	bool known = op->dst < 64 && CUT_WANTED >> op->dst & 1;
	struct sem_use u[4];
	unsigned nw = 8;
	int nu;

	if (!gr_has(n, op->dst) && !known)
		return 0;
	if (op->dst >= SEM_NGPR) {
		gr_del(n, op->dst);
	} else {
		nw = known ? 8 : gr_gpr(n, op->dst);
		gr_del_gpr(n, op->dst);
	}
	if (!(flags & GN_COMP))
		return (uint8_t)nw;
	if (op->op == SEM_LOAD && !(flags & (GN_RO | GN_SELF)))
		want(c, n, GR_SLOT + gr->note[k].slot);
	nu = gr_op_uses(gr, k, nw, u);
	for (int i = 0; i < nu; i++)
		use(c, n, u[i].reg, u[i].w);
	return (uint8_t)nw;
}

static uint8_t store(struct cut *c, uint32_t k, struct gr_set *n)
{
	const struct gr *gr = c->gr;
	const struct sem_op *op = &gr->op[k];
	uint8_t slot = gr->note[k].slot;

	if (slot == GR_NOSLOT || !gr->forward || !gr_has(n, GR_SLOT + slot))
		return 0;
	gr_del(n, GR_SLOT + slot);
	use(c, n, op->a, 8);
	use(c, n, op->b, op->w == 2 ? 4 : op->w);
	return 1;
}

static uint8_t record(struct cut *c, uint32_t k, struct gr_set *n)
{
	const struct gr *gr = c->gr;
	if (!cut_rec(gr, k))
		return 0;
	use(c, n, gr->op[k].a, 8);
	use(c, n, gr->op[k].b, 8);
	return 1;
}

static uint8_t records(struct cut *c, uint32_t k, struct gr_set *n)
{
	const struct gr *gr = c->gr;
	uint16_t r[4];
	int nr = cut_reads(gr, k, r);

	for (int i = 0; i < nr; i++)
		use(c, n, r[i], 8);
	if (gr->note[k].flags & GN_MASKCAN)
		want(c, n, gr_mask(&gr->op[k]));
	return 1;
}

static uint8_t back_op(struct cut *c, uint32_t k, struct gr_set *n)
{
	const struct gr *gr = c->gr;
	switch (gr->note[k].kind) {
	case GK_NONE:
		return 0;
	case GK_STORE:
		return store(c, k, n);
	case GK_REC:
		return record(c, k, n);
	case GK_GROUP:
		return records(c, k, n);
	default:
		return value(c, k, n);
	}
}

/* Only variables cross the bounds of blocks, and no temporaries. */
static void only_variables(struct gr_set *n)
{
	_Static_assert(SEM_TLAST == 63, "temporaries are the end of the first word");
	n->w[0] &= ~(~0ull << SEM_T0);
}

static void back(struct cut *c, uint32_t bi, struct gr_set *n)
{
	const struct gr *gr = c->gr;
	const struct an_block *b = &gr->g->block[bi];
	uint32_t first = gr->in[b->first].op;

	for (uint32_t k = gr->in [b->first + b->n].op; k-- > first;)
		c->nw[k] = back_op(c, k, n);
	only_variables(n);
}

/* more is wanted at block bi's start: so it is at the ends of those that lead to it */
static void wants_more(struct cut *c, uint32_t bi, uint8_t *todo)
{
	const struct gr *gr = c->gr;
	const struct an_block *b = &gr->g->block[bi];

	for (uint32_t k = gr->offirst[bi]; k < gr->offirst[bi + 1]; k++)
		gr_or(&gr->meet[gr->of[k]], &c->want[bi]);
	for (uint32_t k = 0; k < b->npred; k++)
		todo[b->pred[k]] = 1;
}

int cut_want(struct cut *c)
{
	struct gr *gr = c->gr;
	uint32_t nb = gr->g->nblock;
	struct scratch_mark mark;
	bool again = true;
	struct gr_set n;
	uint8_t *todo;

	c->nw = scratch(gr->nop + 1);
	c->want = scratch_zero(nb * sizeof(*c->want));
	mark = scratch_mark();
	todo = scratch(nb);
	if (!c->nw || !c->want || !todo)
		return -1;
	memset(todo, 1, nb);
	c->words = 1;
	memset(gr->meet, 0, gr->g->ntable * sizeof(*gr->meet));
	while (again) {
		again = false;
		for (uint32_t i = 0; i < nb; i++) {
			uint32_t bi = c->order[i];

			if (!todo[bi])
				continue;
			todo[bi] = 0;
			at_end(c, bi, &n);
			back(c, bi, &n);
			if (gr_or(&c->want[bi], &n)) {
				wants_more(c, bi, todo);
				again = true;
			}
		}
	}
	scratch_release(mark);
	return 0;
}
