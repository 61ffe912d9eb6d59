/* SPDX-License-Identifier: MIT
 *
 * graph_deref.c - backward: which registers hold addresses, proved by what is about to be done with them
 *
 * An access of user code that succeeds has a canonical address: bits 48 to 63 equal bit 47 (SDM Vol. 1,
 * 3.3.7.1; the runtime refuses what could change that: addresses from 2^47 up, and pointer masking). So a
 * value that every path uses as the base of an access, before anything unknown is called and before
 * the register changes, is known from six of its bytes, and no more are logged.
 *
 *   base = address - disp, address in [-2^47, 2^47 - 4096), disp in [-4096, 2^31)
 *   ⇒ base fits into 48 bits with sign, unless it is below -2^47, where there is nothing to access
 *
 * Only paths that end in the access count: a least fixpoint, so a loop that never does proves nothing. An
 * access that faults does not happen, and is recorded with the address as logged.
 */
#include "plan.h"

/* a load or store of [reg + disp] that takes place: not a prefetch */
static bool sure(const struct sem_op *op)
{
	int32_t disp = SEM_REC_DISP(op->imm);

	return op->op == SEM_REC && op->b == SEM_NONE && op->a < 64 && disp >= -4096 &&
	       SEM_REC_KIND(op->dst) < 2 && SEM_REC_SIZE(op->dst);
}

/* Is dst an address only if a is? Steps up are short, and a path that repeats them proves nothing: they do
 * not add up to 2^31. */
static bool moves(const struct sem_op *op)
{
	switch (op->op) {
	case SEM_MOV:
		return op->w == 8;
	case SEM_LEA:
		return op->b == SEM_NONE && op->imm >= 0 && op->imm <= 1024;
	case SEM_ADD:
		return op->w == 8 && op->b == SEM_NONE && op->imm >= 0 && op->imm <= 1024;
	default:
		return false;
	}
}

/* from after instruction i to before it; temporaries count inside of it */
static uint16_t back(const struct gr *gr, uint32_t i, uint64_t d)
{
	uint32_t first = gr->in[i].op;

	for (uint32_t k = (gr->in + i + 1)->op; k-- > first;) {
		const struct sem_op *op = &gr->op[k];

		if (gr->note[k].flags & GN_SLOT2)
			continue;
		if (sure(op)) {
			d |= 1ull << op->a;
		} else if (gr_is_value(op) && op->dst < 64) {
			bool from = (d >> op->dst & 1) && op->a < 64 && moves(op);

			d &= ~(1ull << op->dst);
			if (from)
				d |= 1ull << op->a;
		}
	}
	return (uint16_t)d;
}

static uint16_t callee_derefs(const struct gr *gr, uint32_t insn)
{
	const struct an_callee *c = glue_callee(gr->g, insn);

	return c && gr->m->group[c->group].reason == MAP_OK ? gr->m->group[c->group].sum->derefs : 0;
}

static uint16_t at_end(const struct gr *gr, uint32_t bi)
{
	const struct an_block *b = &gr->g->block[bi];
	const struct an_table *t;
	uint16_t d = 0xffff, taken, next;
	uint32_t last = b->first + b->n - 1;

	switch (gr_flow(gr, bi)) {
	case FLOW_NEXT:
		return b->succ[1] == AN_NONE ? 0 : gr->b[b->succ[1]].deref;
	case FLOW_JMP:
	case FLOW_JCC:
		taken = b->succ[0] == AN_NONE ? callee_derefs(gr, last) : gr->b[b->succ[0]].deref;
		next = b->succ[1] == AN_NONE ? 0 : gr->b[b->succ[1]].deref;
		return gr_flow(gr, bi) == FLOW_JMP ? taken : taken & next;
	case FLOW_CALL:
		return callee_derefs(gr, last);
	case FLOW_IJMP:
		if (b->table == AN_NONE)
			return 0;
		t = &gr->g->table[b->table];
		if (!t->exact || !t->ntarget)
			return 0;
		for (uint32_t k = 0; k < t->ntarget; k++)
			d &= gr->b[t->target[k]].deref;
		return d;
	default:
		return 0;
	}
}

/* gr_deref - fills deref of blocks (at the start) and instructions (after) */
void gr_deref(struct gr *gr)
{
	const struct an_group *g = gr->g;
	bool again = true;

	for (uint32_t i = 0; i < g->nblock; i++)
		gr->b[i].visited = 1;
	while (again) {
		again = false;
		for (uint32_t bi = g->nblock; bi-- > 0;) {
			const struct an_block *b = &g->block[bi];
			uint16_t d;

			if (!gr->b[bi].visited)
				continue;
			gr->b[bi].visited = 0;
			d = at_end(gr, bi);
			for (uint32_t i = b->first + b->n; i-- > b->first;) {
				gr->in[i].deref = d;
				d = back(gr, i, d);
			}
			if (d == gr->b[bi].deref)
				continue;
			gr->b[bi].deref = d;
			again = true;
			for (uint32_t k = 0; k < b->npred; k++)
				gr->b[b->pred[k]].visited = 1;
		}
	}
	for (uint32_t i = 0; i < g->nblock; i++)
		gr->b[i].visited = 0;
}

/* gr_entry_derefs - what holds at all entries */
uint32_t gr_entry_derefs(const struct gr *gr)
{
	uint32_t d = 0xffff;

	for (uint32_t i = 0; i < gr->g->nblock; i++)
		if (gr->g->block[i].flags & AN_B_ENTRY)
			d &= gr->b[i].deref;
	return d;
}

/* gr_inwidth - bytes to log of register r at the start of block bi when nw are needed; *sx as gr_logwidth */
unsigned gr_inwidth(const struct gr *gr, uint32_t bi, unsigned r, unsigned nw, bool *sx)
{
	*sx = nw == 8 && (gr->b[bi].deref >> r & 1);
	return *sx ? GR_ADDR : nw;
}

/* gr_eawidth - bytes to log of the address of record k of instruction i. Only what is added to a segment base
 * is not an address itself. */
unsigned gr_eawidth(const struct gr *gr, uint32_t i, uint32_t k)
{
	const struct sem_op *op = &gr->op[k];

	return SEM_REC_KIND(op->dst) < 2 && SEM_REC_SIZE(op->dst) && !gr->in[i].ea_seg ? GR_ADDR : 8;
}
