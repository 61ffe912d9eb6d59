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
		return gr_begins(gr, bi) ? 1u << SEM_RAX : 0;
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
static void at_end(const struct gr *gr, uint32_t bi, struct gr_set *n)
{
	const struct wants *w = gr->wants;
	const struct an_block *b = &gr->g->block[bi];
	uint8_t flow = gr_flow(gr, bi);

	memset(n, 0, sizeof(*n));
	if (b->succ[1] != AN_NONE && w->clob[bi] != 0xffff) {
		*n = w->start[b->succ[1]];
		gr_del_gprs(n, w->clob[bi]);
	}
	if (b->succ[0] != AN_NONE) {
		struct gr_set taken = w->start[b->succ[0]];

		gr_del_gprs(&taken, w->clob[bi]); /* xbegin's */
		gr_or(n, &taken);
	}
	if (flow == FLOW_IJMP && !cut_leaves(gr, bi)) {
		gr_or(n, &gr->meet[gr->class[b->table]]);
		if (gr->b[bi].ctl_can)
			gr_add(n, SEM_T0);
	}
	if (flow == FLOW_JCC && gr->b[bi].ctl_can)
		gr_add(n, SEM_T0);
	gr_add_gprs(n, w->callee[bi]);
}

/* a variable that is no general register */
static void want(const struct gr *gr, struct gr_set *n, unsigned var)
{
	gr_add(n, var);
	gr->wants->words |= (uint16_t)(1u << (var >> 6));
}

static void use(const struct gr *gr, struct gr_set *n, unsigned reg, unsigned w)
{
	if (cut_known(reg))
		return;
	if (reg < SEM_NGPR)
		gr_add_gpr(n, reg, w);
	else if (reg < SEM_NREGS)
		want(gr, n, reg);
}

static uint8_t value(const struct gr *gr, uint32_t k, struct gr_set *n)
{
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
	/* what popf takes off the stack can be logged, wherever it is */
	if (op->op == SEM_LOAD && gr->note[k].slot != GR_NOSLOT && !(flags & (GN_RO | GN_SELF)))
		want(gr, n, GR_SLOT + gr->note[k].slot);
	nu = gr_op_uses(gr, k, nw, u);
	for (int i = 0; i < nu; i++)
		use(gr, n, u[i].reg, u[i].w);
	return (uint8_t)nw;
}

static uint8_t store(const struct gr *gr, uint32_t k, struct gr_set *n)
{
	const struct sem_op *op = &gr->op[k];
	uint8_t slot = gr->note[k].slot;

	if (slot == GR_NOSLOT || !gr->forward || !gr_has(n, GR_SLOT + slot))
		return 0;
	gr_del(n, GR_SLOT + slot);
	use(gr, n, op->a, 8);
	use(gr, n, op->b, op->w == 2 ? 4 : op->w);
	return 1;
}

static uint8_t record(const struct gr *gr, uint32_t k, struct gr_set *n)
{
	if (!cut_rec(gr, k))
		return 0;
	use(gr, n, gr->op[k].a, 8);
	use(gr, n, gr->op[k].b, 8);
	return 1;
}

static uint8_t records(const struct gr *gr, uint32_t k, struct gr_set *n)
{
	uint16_t r[4];
	int nr = cut_reads(gr, k, r);

	for (int i = 0; i < nr; i++)
		use(gr, n, r[i], 8);
	if (gr->note[k].flags & GN_MASKCAN)
		want(gr, n, gr_mask(&gr->op[k]));
	return 1;
}

static uint8_t back_op(const struct gr *gr, uint32_t k, struct gr_set *n)
{
	switch (gr->note[k].kind) {
	case GK_NONE:
		return 0;
	case GK_STORE:
		return store(gr, k, n);
	case GK_REC:
		return record(gr, k, n);
	case GK_GROUP:
		return records(gr, k, n);
	default:
		return value(gr, k, n);
	}
}

/* Only variables cross the bounds of blocks, and no temporaries. */
static void only_variables(struct gr_set *n)
{
	_Static_assert(SEM_TLAST == 63, "temporaries are the end of the first word");
	n->w[0] &= ~(~0ull << SEM_T0);
}

static void back(const struct gr *gr, uint32_t bi, struct gr_set *n)
{
	const struct an_block *b = &gr->g->block[bi];
	uint32_t first = gr->in[b->first].op;
	uint8_t *nw = gr->wants->nw;

	for (uint32_t k = gr->in [b->first + b->n].op; k-- > first;)
		nw[k] = back_op(gr, k, n);
	only_variables(n);
}

/* what block bi wants at its start, its classes want, too */
static void meet(struct gr *gr, uint32_t bi)
{
	for (uint32_t k = gr->offirst[bi]; k < gr->offirst[bi + 1]; k++)
		gr_or(&gr->meet[gr->of[k]], &gr->wants->start[bi]);
}

static bool open_wants(struct gr *gr)
{
	uint32_t nb = gr->g->nblock;
	struct wants *w = scratch_zero(sizeof(*w));

	gr->wants = w;
	if (!w)
		return false;
	w->words = 1;
	w->nw = scratch(gr->nop + 1);
	w->start = scratch_zero(nb * sizeof(*w->start));
	w->callee = scratch_zero(nb * sizeof(*w->callee));
	w->clob = scratch(nb * sizeof(*w->clob));
	if (!w->nw || !w->start || !w->callee || !w->clob)
		return false;
	for (uint32_t i = 0; i < nb; i++) {
		uint32_t to = gr->g->block[i].succ[1];

		w->clob[i] = to == AN_NONE ? 0 : cut_clobber(gr, i, to);
	}
	return true;
}

/* blocks whose callee needs more than it did are to be visited: todo; true: there are any */
static bool callees(const struct gr *gr, uint8_t *todo)
{
	bool any = false;

	for (uint32_t i = 0; i < gr->g->nblock; i++) {
		uint32_t regs = cut_callee(gr, i);

		if (regs == gr->wants->callee[i])
			continue;
		gr->wants->callee[i] = (uint16_t)regs;
		todo[i] = 1;
		any = true;
	}
	return any;
}

static void solve(struct gr *gr, uint8_t *todo)
{
	const struct an_group *g = gr->g;
	bool again = true;
	struct gr_set n;

	while (again) {
		again = false;
		for (uint32_t i = 0; i < g->nblock; i++) {
			uint32_t bi = gr->backward[i];

			if (!todo[bi])
				continue;
			todo[bi] = 0;
			at_end(gr, bi, &n);
			back(gr, bi, &n);
			if (!gr_or(&gr->wants->start[bi], &n))
				continue;
			meet(gr, bi);
			for (uint32_t k = 0; k < g->block[bi].npred; k++)
				todo[g->block[bi].pred[k]] = 1;
			again = true;
		}
	}
}

int cut_want(struct gr *gr)
{
	uint32_t nb = gr->g->nblock;
	bool first = !gr->wants;
	struct scratch_mark mark;
	uint8_t *todo;

	if (first && !open_wants(gr))
		return -1;
	mark = scratch_mark();
	todo = scratch(nb);
	if (!todo)
		return -1;
	memset(todo, first, nb);
	memset(gr->meet, 0, gr->g->ntable * sizeof(*gr->meet));
	for (uint32_t i = 0; i < nb && !first; i++)
		meet(gr, i);
	if (callees(gr, todo) || first)
		solve(gr, todo);
	scratch_release(mark);
	return 0;
}
