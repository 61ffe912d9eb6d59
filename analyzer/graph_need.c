/* SPDX-License-Identifier: MIT
 *
 * graph_need.c - backward: what the decoder must know where, and so what is emitted and logged
 *
 * Roots are the operands of the access records, rsp, computed branch conditions and targets, and
 * what direct callees need. Going backward over the ops, a needed value is either computed
 * (GN_COMP: its operands become needed) or logged where it is defined. Needs run over bytes:
 * the low byte, the next three and the last four of a general register are needed separately, so
 * that a comparison of a byte or an int does not drag in (or log) the rest.
 */
#include "plan.h"

uint32_t gr_ret_clobber(const struct gr *gr, uint32_t b)
{
	const struct an_block *ab = &gr->g->block[b];
	uint8_t flow = gr_flow(gr, b);

	if (flow == FLOW_SYSCALL)
		return 0;
	return gr_call_clobber(gr, ab->first + ab->n - 1);
}

static void always(const struct gr *gr, struct gr_set *n)
{
	gr_add_gpr(n, SEM_RSP, 8);
	gr_add(n, SEM_FSBASE);
	gr_add(n, SEM_GSBASE);
	if (gr->writes_df)
		gr_add(n, SEM_DF);
}

static void callee_needs(const struct gr *gr, uint32_t insn, struct gr_set *n)
{
	const struct an_callee *c = glue_callee(gr->g, insn);

	if (c)
		gr_add_gprs(n, gr->m->group[c->group].sum->needs & GR_GPRS);
}

/* needs after a call or system call, at its return site's block, that hold from before it */
static void from_return(const struct gr *gr, uint32_t bi, struct gr_set *n)
{
	uint32_t to = gr->g->block[bi].succ[1], clob;
	struct gr_set s;

	if (to == AN_NONE || gr->b[to].stub == STUB_RESYNC)
		return;
	s = gr->b[to].need;
	clob = gr_flow(gr, bi) == FLOW_SYSCALL ? 1u << SEM_RAX | 1u << SEM_RCX : gr_ret_clobber(gr, bi);
	gr_del_gprs(&s, clob & GR_GPRS);
	gr_or(n, &s);
}

bool gr_switches(const struct gr *gr, uint32_t bi)
{
	const struct an_block *b = &gr->g->block[bi];

	if (gr_flow(gr, bi) == FLOW_RET)
		return !gr->lifo || !gr->g->sum->lifo;
	return gr_flow(gr, bi) == FLOW_IJMP && b->table == AN_NONE && !gr->b[bi].sp_base;
}

/* Where a pushed address is returned to may be a label of this group. */
static void switch_needs(const struct gr *gr, struct gr_set *n)
{
	for (uint32_t i = 0; i < gr->g->nblock; i++)
		if (gr->g->block[i].flags & AN_B_ANYTARGET)
			gr_or(n, &gr->b[i].need);
	gr_add_gprs(n, GR_CALLEE_SAVED);
}

/* needs at the end of a block, after its last instruction's data effects */
static void out_needs(struct gr *gr, uint32_t bi, struct gr_set *n)
{
	const struct an_block *b = &gr->g->block[bi];
	uint32_t last = b->first + b->n - 1;

	memset(n, 0, sizeof(*n));
	switch (gr_flow(gr, bi)) {
	case FLOW_NEXT:
		if (b->succ[1] != AN_NONE)
			gr_or(n, &gr->b[b->succ[1]].need);
		break;
	case FLOW_JMP:
	case FLOW_JCC:
		if (b->succ[0] != AN_NONE)
			gr_or(n, &gr->b[b->succ[0]].need);
		else
			callee_needs(gr, last, n);
		if (b->succ[1] != AN_NONE)
			gr_or(n, &gr->b[b->succ[1]].need);
		if (gr_flow(gr, bi) == FLOW_JCC && !gr->b[bi].ctl_log)
			gr_add(n, SEM_T0);
		break;
	case FLOW_IJMP:
		if (glue_jump(gr->m, gr->g, bi) == JUMP_LEAVES) {
			callee_needs(gr, last, n); /* nothing but for glue_link */
			break;
		}
		gr_or(n, &gr->meet[gr->class[b->table]]);
		if (!gr->b[bi].ctl_log)
			gr_add(n, SEM_T0);
		break;
	case FLOW_CALL:
		if (glue_call(gr->m, gr->g, last) != CALL_EXT)
			callee_needs(gr, last, n);
		from_return(gr, bi, n);
		break;
	case FLOW_ICALL:
	case FLOW_SYSCALL:
		from_return(gr, bi, n);
		break;
	default:
		break;
	}
	if (gr_switches(gr, bi))
		switch_needs(gr, n);
	always(gr, n);
}

static void use(struct gr_set *n, unsigned reg, unsigned w)
{
	if (reg < SEM_NGPR)
		gr_add_gpr(n, reg, w);
	else if (reg < SEM_NREGS)
		gr_add(n, reg);
}

/* op k, of instruction i, gives what is needed of its result, nw bytes */
static void back_value(struct gr *gr, uint32_t i, uint32_t k, struct gr_set *n, unsigned nw)
{
	const struct sem_op *op = &gr->op[k];
	struct gr_note *note = &gr->note[k];
	struct sem_use u[4];
	int nu;

	if (op->dst < SEM_NGPR)
		gr_del_gpr(n, op->dst);
	else
		gr_del(n, op->dst);
	if (!(note->flags & GN_COMP) || (op->dst < SEM_NGPR && (gr->in[i].logged >> op->dst & 1))) {
		if (op->dst >= SEM_NGPR)
			gr->broken = true;
		note->flags |= GN_LOG;
		note->nw = (uint8_t)nw;
		return;
	}
	note->flags |= note->flags & GN_COUNT ? GN_LOG : GN_EMIT;
	if (note->flags & GN_COUNT)
		return;
	if (op->op == SEM_LOAD && !(note->flags & (GN_RO | GN_SELF)))
		gr_add(n, GR_SLOT + note->slot);
	nu = gr_op_uses(gr, k, nw, u);
	for (int j = 0; j < nu; j++)
		use(n, u[j].reg, u[j].w);
}

/* is the address of record k, of instruction i, in the log? */
static bool address_logged(const struct gr *gr, uint32_t i, uint32_t k)
{
	uint32_t rec = 0;

	if ((gr->note[k].flags & GN_EA) || !gr->in[i].ea)
		return gr->note[k].flags & GN_EA;
	for (uint32_t j = gr->in[i].op; j < k; j++)
		rec += gr->note[j].kind == GK_REC;
	return rec < 8 && (gr->in[i].ea >> rec & 1);
}

static void back_store(struct gr *gr, uint32_t k, struct gr_set *n)
{
	const struct sem_op *op = &gr->op[k];
	struct gr_note *note = &gr->note[k];

	if (note->slot == GR_NOSLOT || !gr_has(n, GR_SLOT + note->slot))
		return;
	gr_del(n, GR_SLOT + note->slot);
	note->flags |= GN_EMIT;
	use(n, op->a, 8);
	use(n, op->b, op->w);
}

static void back_records(const struct gr *gr, uint32_t k, struct gr_set *n)
{
	const struct sem_op *op = &gr->op[k];
	const struct sem_vec *v = (const struct sem_vec *)(op + 1);

	use(n, op->a, 8);
	use(n, op->b, 8);
	if (op->op != SEM_RECVEC) {
		use(n, v->count, 8);
		use(n, v->df, 8);
	} else if (gr->note[k].flags & GN_MASK) {
		use(n, gr_mask(op), 8);
	}
}

static inline void back_op(struct gr *gr, uint32_t i, uint32_t k, struct gr_set *n)
{
	const struct sem_op *op = &gr->op[k];
	uint8_t kind = gr->note[k].kind;

	if (gr->note[k].flags & (GN_EMIT | GN_LOG))
		gr->note[k].flags &= (uint16_t) ~(GN_EMIT | GN_LOG);
	if (kind >= GK_VALUES) {
		if (gr_has(n, op->dst))
			back_value(gr, i, k, n, op->dst < SEM_NGPR ? gr_gpr(n, op->dst) : 8);
	} else if (kind == GK_STORE) {
		back_store(gr, k, n);
	} else if (kind == GK_GROUP) {
		back_records(gr, k, n);
	} else if (kind == GK_REC && !address_logged(gr, i, k)) {
		use(n, op->a, 8);
		use(n, op->b, 8);
	}
}

/* needs from the block's end to its start. What is emitted and logged is marked on the way: the last visit's
 * marks stand, as the needs at the end only grow. */
static void back_block(struct gr *gr, uint32_t bi, struct gr_set *n)
{
	const struct an_block *b = &gr->g->block[bi];

	for (uint32_t i = b->first + b->n; i-- > b->first;)
		for (uint32_t k = gr->in [i + 1].op, first = gr->in[i].op; k-- > first;)
			back_op(gr, i, k, n);
}

/* registers logged at a block's start whoever comes: what a system call or a transaction that aborts makes unknown, and
 * what an entry needs beyond what its direct callers provide */
static uint32_t forced_blklog(const struct gr *gr, uint32_t bi)
{
	const struct an_block *b = &gr->g->block[bi];
	uint32_t set = 0;

	for (uint32_t k = 0; k < b->npred; k++)
		if (gr_flow(gr, b->pred[k]) == FLOW_SYSCALL)
			set |= 1u << SEM_R11;
		else if (gr_begins(gr, b->pred[k]))
			set |= 1u << SEM_RAX;
	if ((b->flags & AN_B_ENTRY) && !gr->round1)
		set |= 0xffffu & ~(1u << SEM_RSP) & ~gr->g->sum->needs;
	return set;
}

/* of n at block bi's start what is logged there goes to logneed */
static void take_logged(struct gr *gr, uint32_t bi, struct gr_set *n)
{
	uint32_t log = gr->b[bi].blklog | gr->b[bi].blkforce;
	struct gr_set *l = &gr->b[bi].logneed;

	memset(l, 0, sizeof(*l));
	gr_add_gprs(l, log);
	gr_and(l, n);
	gr_del_gprs(n, log);
}

/* block bi needs more: so do those that lead to it */
static void needs_more(struct gr *gr, uint32_t bi)
{
	const struct an_group *g = gr->g;

	for (uint32_t k = 0; k < g->block[bi].npred; k++)
		gr->b[g->block[bi].pred[k]].visited = 1;
	for (uint32_t k = gr->offirst[bi]; k < gr->offirst[bi + 1]; k++)
		gr_or(&gr->meet[gr->of[k]], &gr->b[bi].need);
	if (g->block[bi].flags & AN_B_ANYTARGET)
		for (uint32_t i = 0; i < g->nblock; i++)
			if (gr_switches(gr, i))
				gr->b[i].visited = 1;
}

int gr_need(struct gr *gr)
{
	const struct an_group *g = gr->g;
	bool again = true;
	struct gr_set n;

	memset(gr->meet, 0, g->ntable * sizeof(*gr->meet));
	for (uint32_t i = 0; i < g->nblock; i++) {
		memset(&gr->b[i].need, 0, sizeof(struct gr_set));
		gr->b[i].blkforce = (uint16_t)forced_blklog(gr, i);
		gr->b[i].visited = 1;
	}
	while (again) {
		again = false;
		for (uint32_t k = 0; k < g->nblock; k++) {
			uint32_t i = gr->backward ? gr->backward[k] : g->nblock - 1 - k;

			if (!gr->b[i].visited)
				continue;
			gr->b[i].visited = 0;
			out_needs(gr, i, &n);
			back_block(gr, i, &n);
			take_logged(gr, i, &n);
			if (!gr_or(&gr->b[i].need, &n))
				continue;
			again = true;
			needs_more(gr, i);
		}
	}
	return gr->broken ? -1 : 0;
}
