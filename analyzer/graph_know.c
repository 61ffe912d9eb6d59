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
#include "graph_order.h"

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

/* While a block is run the bits of the general registers say which of them may still be named in the instruction at
 * hand; between blocks all are set. */

static void base_state(struct gr_set *s)
{
	memset(s, 0, sizeof(*s));
	s->w[0] = GR_GPRS;
	gr_add(s, SEM_DF); /* psABI 3.2.1: clear at entry and return */
	gr_add(s, SEM_FSBASE);
	gr_add(s, SEM_GSBASE);
}

static bool knows(const struct gr_set *s, unsigned reg)
{
	return reg == SEM_NONE || gr_has(s, reg);
}

static bool comp(const struct gr *gr, uint32_t k, const struct gr_set *s)
{
	const struct sem_op *op = &gr->op[k];
	const struct gr_note *n = &gr->note[k];

	if (n->flags & (GN_COUNT | GN_SELF))
		return (n->flags & GN_COUNT) || gr_has(s, SEM_FSBASE);
	if (op->op == SEM_UNK)
		return false;
	if (op->op == SEM_LOAD && !(n->flags & GN_RO) &&
	    (!gr->forward || n->slot == GR_NOSLOT || !gr_has(s, GR_SLOT + n->slot)))
		return false;
	return knows(s, op->a) && knows(s, op->b) && knows(s, n->third);
}

static void store(const struct gr *gr, uint32_t k, struct gr_set *s)
{
	const struct sem_op *op = &gr->op[k];
	const struct gr_note *n = &gr->note[k];

	if (!gr->forward || n->slot == GR_NOSLOT)
		return;
	if (knows(s, op->a) && knows(s, op->b))
		gr_add(s, GR_SLOT + n->slot);
	else
		gr_del(s, GR_SLOT + n->slot);
}

/* step - one op. What is noted at the last visit stands. */
static void step(struct gr *gr, uint32_t k, struct gr_set *s)
{
	const struct sem_op *op = &gr->op[k];
	struct gr_note *n = &gr->note[k];

	switch (n->kind) {
	case GK_NONE:
		return;
	case GK_STORE:
		store(gr, k, s);
		return;
	case GK_REC:
		if (gr->nslot)
			gr_forget_slots(gr, k, s);
		n->flags &= (uint16_t)~GN_EA;
		if (!(knows(s, op->a) && knows(s, op->b)))
			n->flags |= GN_EA;
		return;
	case GK_GROUP:
		n->flags &= (uint16_t)~GN_MASKCAN;
		if (gr_mask(op) != SEM_NONE && gr_has(s, gr_mask(op)))
			n->flags |= GN_MASKCAN;
		return;
	default:
		n->flags &= (uint16_t)~GN_COMP;
		if (comp(gr, k, s)) {
			n->flags |= GN_COMP;
			if (op->dst >= SEM_NGPR)
				gr_add(s, op->dst);
		} else {
			gr_del(s, op->dst);
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

	for (uint32_t i = b->first, k = gr->in[i].op; i < b->first + b->n; i++) {
		s->w[0] |= GR_GPRS;
		for (uint32_t end = gr->in [i + 1].op; k < end; k++)
			step(gr, k, s);
	}
	gr->b[bi].ctl_can = gr_has(s, SEM_T0);
	s->w[0] = (s->w[0] & ~TEMPS) | GR_GPRS;
	if (flow == FLOW_CALL || flow == FLOW_ICALL)
		through_call(gr, bi, s);
}

static void flow_to(struct gr *gr, uint32_t to, const struct gr_set *s)
{
	if (to != AN_NONE && gr_and(&gr->b[to].know, s))
		gr_wait(gr, to);
}

static void through_table(struct gr *gr, uint32_t table, const struct gr_set *s)
{
	const struct an_table *t = &gr->g->table[table];
	struct gr_set *all = &gr->meet[gr->class[table]];

	if (gr_and(all, s))
		for (uint32_t k = 0; k < t->ntarget; k++)
			flow_to(gr, t->target[k], all);
}

/* Control comes in with nothing computed here. */
static bool open_block(const struct gr *gr, uint32_t i)
{
	const struct an_block *b = &gr->g->block[i];

	return (b->flags & (AN_B_ENTRY | AN_B_LANDING)) || !b->npred || gr->b[i].stub == STUB_RESYNC ||
	       gr->b[i].stub == STUB_ENTRY;
}

int gr_know(struct gr *gr)
{
	const struct an_group *g = gr->g;

	memset(gr->meet, 0xff, g->ntable * sizeof(*gr->meet));
	for (uint32_t i = 0; i < g->nblock; i++) {
		if (open_block(gr, i))
			base_state(&gr->b[i].know);
		else
			memset(&gr->b[i].know, 0xff, sizeof(struct gr_set));
		gr_wait(gr, i);
	}
	for (uint32_t i; (i = gr_first(gr)) != AN_NONE;) {
		const struct an_block *b = &g->block[i];
		struct gr_set s = gr->b[i].know;

		run_block(gr, i, &s);
		flow_to(gr, b->succ[0], &s);
		flow_to(gr, b->succ[1], &s);
		if (b->table != AN_NONE)
			through_table(gr, b->table, &s);
	}
	for (uint32_t i = 0; i < g->nblock; i++) {
		uint8_t flow = gr_flow(gr, i);

		/* loop and jrcxz only test rcx: always computed. The rest is logged until proved known. */
		gr->b[i].ctl_log = !(flow == FLOW_JCC && gr->b[i].ctl_can &&
				     gr->in[g->block[i].first + g->block[i].n - 1].cc == GR_CC_NONE);
		if (gr->mapflags & MAP_F_PT) { /* free, whatever it is made of */
			gr->b[i].ctl_log = 1;
			gr->b[i].ctl_can = 0;
		}
	}
	return 0;
}
