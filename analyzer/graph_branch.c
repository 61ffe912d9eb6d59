/* SPDX-License-Identifier: MIT
 *
 * graph_branch.c - forward: what the decoder knows anyhow, and so which branches cost nothing
 *
 * After a gr_need for the addresses alone, everything needed is known where it is needed. From
 * there knowledge is carried forward: an op on known operands gives a known result even if no
 * address needs it. A branch whose condition (or a jump whose target) is known this way is
 * computed instead of logged: a second gr_need then keeps the ops it takes, and adds no log. This
 * finds counted loops; what is worth logging more elsewhere to save branches is the cut's question.
 */
#include "graph_range.h"

static bool have(const struct gr_set *s, struct sem_use u)
{
	if (u.reg < SEM_NGPR)
		return gr_gpr(s, u.reg) >= u.w;
	return gr_has(s, u.reg);
}

/* bytes of op k's result that are known from s */
static unsigned known_bytes(const struct gr *gr, uint32_t k, const struct gr_set *s)
{
	static const unsigned try[] = {8, 4, 1};
	const struct sem_op *op = &gr->op[k];
	struct sem_use u[4];

	if (!(gr->note[k].flags & GN_COMP))
		return 0;
	if (op->op == SEM_LOAD && !(gr->note[k].flags & (GN_RO | GN_SELF)) &&
	    !gr_has(s, GR_SLOT + gr->note[k].slot))
		return 0;
	for (int t = 0; t < 3; t++) {
		int n = gr_op_uses(gr, k, try[t], u);
		bool ok = true;

		for (int i = 0; i < n; i++)
			ok &= have(s, u[i]);
		if (ok)
			return try[t];
		if (op->dst >= SEM_NGPR)
			break;
	}
	return 0;
}

static void step(const struct gr *gr, uint32_t i, uint32_t k, struct gr_set *s)
{
	const struct sem_op *op = &gr->op[k];
	const struct gr_note *note = &gr->note[k];
	unsigned nw;
	bool sx;

	if (op->op == SEM_REC) {
		gr_forget_slots(gr, k, s);
	} else if (op->op == SEM_STORE && note->slot != GR_NOSLOT) {
		if (have(s, (struct sem_use){op->a, 8}) &&
		    (op->b == SEM_NONE || have(s, (struct sem_use){op->b, op->w == 2 ? 4 : op->w})))
			gr_add(s, GR_SLOT + note->slot);
		else
			gr_del(s, GR_SLOT + note->slot);
	} else if (gr_is_value(op)) {
		nw = known_bytes(gr, k, s);
		if (op->dst >= SEM_NGPR) {
			if (nw)
				gr_add(s, op->dst);
			else
				gr_del(s, op->dst);
			return;
		}
		gr_del_gpr(s, op->dst);
		if (note->flags & GN_LOG) /* logged at its full natural width: all of it is known */
			nw = gr_logwidth(gr, i, k, 8, &sx) <= note->nw ? 8 : nw > note->nw ? nw : note->nw;
		if (nw)
			gr_add_gpr(s, op->dst, nw);
	}
}

/* what is needed at a place is known there: general registers of `need` */
static void add_needed(struct gr_set *s, const struct gr_set *need, uint32_t mask)
{
	for (int r = 0; r < SEM_NGPR; r++)
		if (mask >> r & 1 && gr_gpr(need, r) > gr_gpr(s, r))
			gr_add_gpr(s, r, gr_gpr(need, r));
}

static bool arrive(struct gr *gr, uint32_t to, const struct gr_set *s)
{
	struct gr_block *b;

	if (to == AN_NONE)
		return false;
	b = &gr->b[to];
	if (b->stub == STUB_RESYNC && (gr->g->block[to].flags & (AN_B_TWICE | AN_B_LANDING)))
		return false;
	if (!gr_and(&b->know, s))
		return false;
	b->visited = 1;
	return true;
}

static bool leave(struct gr *gr, uint32_t bi, struct gr_set *s)
{
	const struct an_block *b = &gr->g->block[bi];
	uint8_t flow = gr_flow(gr, bi);
	bool ch = false;

	if (flow == FLOW_CALL || flow == FLOW_ICALL) {
		uint32_t clob = gr_ret_clobber(gr, bi);

		gr_del_gprs(s, clob & GR_GPRS);
		gr_del(s, SEM_FC);
		gr_del(s, SEM_FR);
		if (b->succ[1] != AN_NONE)
			add_needed(s, &gr->b[b->succ[1]].need, clob);
	} else if (flow == FLOW_SYSCALL) {
		gr_add_gpr(s, SEM_RAX, 8);
		gr_add_gpr(s, SEM_RCX, 8);
		gr_del_gpr(s, SEM_R11);
	}
	ch |= arrive(gr, b->succ[0], s);
	ch |= arrive(gr, b->succ[1], s);
	if (b->table != AN_NONE)
		for (uint32_t k = 0; k < gr->g->table[b->table].ntarget; k++)
			ch |= arrive(gr, gr->g->table[b->table].target[k], s);
	return ch;
}

/* the state at a block where control comes in with a mark: what is needed there is logged */
static void from_mark(struct gr *gr, uint32_t bi)
{
	struct gr_set *s = &gr->b[bi].know;

	memset(s, 0, sizeof(*s));
	add_needed(s, &gr->b[bi].need, 0xffff);
	gr_add_gpr(s, SEM_RSP, 8);
	gr_add(s, SEM_DF);
	gr_add(s, SEM_FSBASE);
	gr_add(s, SEM_GSBASE);
}

static void run(struct gr *gr, uint32_t bi, struct gr_set *s)
{
	const struct an_block *b = &gr->g->block[bi];

	*s = gr->b[bi].know;
	add_needed(s, &gr->b[bi].logneed, 0xffff);
	for (uint32_t i = b->first; i < b->first + b->n; i++)
		for (uint32_t k = gr->in[i].op; k < gr->in[i + 1].op; k++)
			if (!(gr->note[k].flags & GN_SLOT2))
				step(gr, i, k, s);
}

int gr_branches(struct gr *gr)
{
	const struct an_group *g = gr->g;
	bool again = true;
	struct gr_set s;

	for (uint32_t i = 0; i < g->nblock; i++) {
		const struct an_block *b = &g->block[i];

		memset(&gr->b[i].know, 0xff, sizeof(struct gr_set));
		if ((b->flags & (AN_B_ENTRY | AN_B_LANDING)) || !b->npred || gr->b[i].stub == STUB_RESYNC)
			from_mark(gr, i);
		gr->b[i].visited = 1;
	}
	while (again) {
		again = false;
		for (uint32_t i = 0; i < g->nblock; i++) {
			if (!gr->b[i].visited)
				continue;
			gr->b[i].visited = 0;
			run(gr, i, &s);
			again |= leave(gr, i, &s);
		}
	}
	for (uint32_t i = 0; i < g->nblock; i++) {
		if (!gr->b[i].ctl_log || !gr->b[i].ctl_can)
			continue;
		run(gr, i, &s);
		if (gr_has(&s, SEM_T0))
			gr->b[i].ctl_log = 0;
	}
	return 0;
}
