/* SPDX-License-Identifier: MIT
 *
 * graph_know.c - forward: which ops the decoder could compute if every general register were known
 *
 * A general register can always be logged, so the question is about what cannot: flags, lanes,
 * mask registers, temporaries, stack slots. Each is computable at a point when, on every path to
 * it, an op computes it from computable operands. Ops that pass get GN_COMP; what reads an
 * uncomputable operand does not, and is logged as a general register, or as a branch, or as an
 * effective address (GN_EA).
 *
 * A greatest fixpoint: everything is assumed computable and withdrawn.
 */
#include <stdlib.h>
#include "plan.h"

int gr_op_uses(const struct gr *gr, uint32_t k, unsigned nw, struct sem_use u[4])
{
	const struct sem_op *op = &gr->op[k];

	if (gr->note[k].flags & GN_SELF) {
		u[0] = (struct sem_use){SEM_FSBASE, 8};
		return 1;
	}
	if (op->dst >= SEM_NGPR)
		nw = 8;
	return sem_uses(op, nw, u);
}

/* gr_forget_slots - slots that a record of a write may change; an exact STORE after it restores its
 * own. Frame addresses from different origins may meet anywhere. */
void gr_forget_slots(const struct gr *gr, uint32_t k, struct gr_set *s)
{
	const struct gr_note *n = &gr->note[k];
	int32_t size = SEM_REC_SIZE(gr->op[k].dst);

	if (!(n->flags & GN_STACK) || SEM_REC_KIND(gr->op[k].dst) != 1)
		return;
	for (uint32_t i = 0; i < gr->nslot; i++) {
		const struct gr_slot *sl = &gr->slot[i];

		if (sl->base != n->base || (sl->off < n->off + size && n->off < sl->off + sl->w))
			gr_del(s, GR_SLOT + i);
	}
}

static void base_state(struct gr_set *s)
{
	memset(s, 0, sizeof(*s));
	gr_add(s, SEM_DF); /* psABI 3.2.1: clear at entry and return */
	gr_add(s, SEM_FSBASE);
	gr_add(s, SEM_GSBASE);
}

static bool comp(const struct gr *gr, uint32_t k, const struct gr_set *s, uint32_t gk)
{
	const struct sem_op *op = &gr->op[k];
	struct sem_use u[4];
	int n;

	if (op->op == SEM_UNK || (gr->note[k].flags & GN_COUNT))
		return gr->note[k].flags & GN_COUNT;
	if (op->op == SEM_LOAD && !(gr->note[k].flags & (GN_RO | GN_SELF)) &&
	    (!gr->forward || gr->note[k].slot == GR_NOSLOT || !gr_has(s, GR_SLOT + gr->note[k].slot)))
		return false;
	n = gr_op_uses(gr, k, 8, u);
	for (int i = 0; i < n; i++)
		if (u[i].reg < SEM_NGPR ? !(gk >> u[i].reg & 1) : !gr_has(s, u[i].reg))
			return false;
	return true;
}

static bool knows(const struct gr_set *s, uint32_t gk, unsigned reg)
{
	return reg == SEM_NONE || (reg < SEM_NGPR ? gk >> reg & 1 : gr_has(s, reg));
}

/* step - one op; gk: general registers that may still be named in this instruction. What is noted at the last
 * visit stands. */
static void step(struct gr *gr, uint32_t k, struct gr_set *s, uint32_t *gk)
{
	const struct sem_op *op = &gr->op[k];
	struct gr_note *n = &gr->note[k];
	bool ok;

	n->flags &= (uint16_t) ~(GN_COMP | GN_EA | GN_MASKCAN);
	if (op->op == SEM_STORE) {
		if (gr->forward && n->slot != GR_NOSLOT) {
			if (knows(s, *gk, op->a) && knows(s, *gk, op->b))
				gr_add(s, GR_SLOT + n->slot);
			else
				gr_del(s, GR_SLOT + n->slot);
		}
	} else if (op->op == SEM_REC) {
		gr_forget_slots(gr, k, s);
		if (!(knows(s, *gk, op->a) && knows(s, *gk, op->b)))
			n->flags |= GN_EA;
	} else if (op->op == SEM_RECVEC) {
		if (gr_mask(op) != SEM_NONE && gr_has(s, gr_mask(op)))
			n->flags |= GN_MASKCAN;
	} else if (gr_is_value(op)) {
		ok = comp(gr, k, s, *gk);
		if (ok)
			n->flags |= GN_COMP;
		if (op->dst >= SEM_NGPR) {
			if (ok)
				gr_add(s, op->dst);
			else
				gr_del(s, op->dst);
		} else if (!ok) {
			*gk &= ~(1u << op->dst);
		}
	}
}

#define TEMPS (~0ull << SEM_T0)
_Static_assert(SEM_TLAST == 63, "temporaries are the end of the first word");

static void through_call(struct gr *gr, uint32_t bi, struct gr_set *s)
{
	const struct gr_block *b = &gr->b[bi];

	gr_del(s, SEM_FC);
	gr_del(s, SEM_FR);
	for (int i = 1; i < GR_X2 / 64 + 1; i++)
		s->w[i] &= i == GR_X2 / 64 ? ~0ull << (GR_X2 & 63) : 0;
	for (uint32_t i = 0; i < gr->nslot; i++)
		if (!b->sp_base || (gr->slot[i].base == b->sp_base && gr->slot[i].off < b->sp_off + 8))
			gr_del(s, GR_SLOT + i);
}

static void run_block(struct gr *gr, uint32_t bi, struct gr_set *s)
{
	const struct an_block *b = &gr->g->block[bi];
	uint8_t flow = gr_flow(gr, bi);

	for (uint32_t i = b->first; i < b->first + b->n; i++) {
		uint32_t gk = 0xffff;

		for (uint32_t k = gr->in[i].op; k < gr->in[i + 1].op; k++)
			if (!(gr->note[k].flags & GN_SLOT2))
				step(gr, k, s, &gk);
	}
	gr->b[bi].ctl_can = gr_has(s, SEM_T0);
	s->w[0] &= ~TEMPS;
	if (flow == FLOW_CALL || flow == FLOW_ICALL)
		through_call(gr, bi, s);
}

static bool flow_to(struct gr *gr, uint32_t to, const struct gr_set *s)
{
	if (to == AN_NONE || !gr_and(&gr->b[to].know, s))
		return false;
	gr->b[to].visited = 1;
	return true;
}

static bool through_table(struct gr *gr, uint32_t table, const struct gr_set *s)
{
	const struct an_table *t = &gr->g->table[table];
	struct gr_set *all = &gr->meet[gr->class[table]];
	bool again = false;

	if (!gr_and(all, s))
		return false;
	for (uint32_t k = 0; k < t->ntarget; k++)
		again |= flow_to(gr, t->target[k], all);
	return again;
}

int gr_know(struct gr *gr)
{
	const struct an_group *g = gr->g;
	bool again = true;

	memset(gr->meet, 0xff, g->ntable * sizeof(*gr->meet));
	for (uint32_t i = 0; i < g->nblock; i++) {
		const struct an_block *b = &g->block[i];

		memset(&gr->b[i].know, 0xff, sizeof(struct gr_set));
		if ((b->flags & (AN_B_ENTRY | AN_B_LANDING)) || !b->npred || gr->b[i].stub == STUB_RESYNC ||
		    gr->b[i].stub == STUB_ENTRY)
			base_state(&gr->b[i].know);
		gr->b[i].visited = 1;
	}
	while (again) {
		again = false;
		for (uint32_t i = 0; i < g->nblock; i++) {
			const struct an_block *b = &g->block[i];
			struct gr_set s = gr->b[i].know;

			if (!gr->b[i].visited)
				continue;
			gr->b[i].visited = 0;
			run_block(gr, i, &s);
			again |= flow_to(gr, b->succ[0], &s);
			again |= flow_to(gr, b->succ[1], &s);
			if (b->table != AN_NONE)
				again |= through_table(gr, b->table, &s);
		}
	}
	for (uint32_t i = 0; i < g->nblock; i++) {
		uint8_t flow = gr_flow(gr, i);

		/* loop and jrcxz only test rcx: always computed. The rest is logged until proved known. */
		gr->b[i].ctl_log = !(flow == FLOW_JCC && gr->b[i].ctl_can &&
				     gr->in[g->block[i].first + g->block[i].n - 1].cc == 0xff);
		if (gr->mapflags & MAP_F_PT) { /* free, whatever it is made of */
			gr->b[i].ctl_log = 1;
			gr->b[i].ctl_can = 0;
		}
	}
	return 0;
}
