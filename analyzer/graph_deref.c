/* SPDX-License-Identifier: MIT
 *
 * graph_deref.c - backward: which registers hold addresses, proved by what is about to be done with them
 *
 * An access of user code that succeeds has a canonical address: bits 48 to 63 equal bit 47 (SDM Vol. 1,
 * 3.3.7.1; the runtime refuses what could change that: addresses from 2^47 up, and pointer masking). So a
 * value that every path uses as the base of an access, before anything unknown is called and before
 * the register changes, is known from six of its bytes, and no more are logged.
 *
 *   base = address - disp - index, and what a path adds on the way:
 *     an address is in [0, 2^47), or in the vsyscall page, 10 MiB below 0; what a comparison on the path
 *     bounds instead (a null pointer) is in [-2^32, 2^32)
 *     disp is in [-2^31, 2^31)
 *     an index, or what is added to a pointer, is small: within 2^36 (GN_NEARA, GN_NEARB), and a group
 *     has no more than GR_WIDE = 2^9 of these; constants are up to 2^20, and a module has under 2^22 of them
 *   => base is in [-2^46, 2^47 + 2^46), which is what six bytes of the log give (sem.h)
 *
 * Only paths that end in the access count: a least fixpoint, so a loop that never does proves nothing, and a path
 * takes no step twice. What holds at the entries is told to callers only if no index was added on the way:
 * chains of calls have no bound. An access that faults does not happen, and is recorded with the
 * address as logged.
 */
#include "graph_order.h"

struct deref {
	uint64_t is; /* registers that are addresses */
	uint64_t wide; /* those proved through the addition of an index */
};

/* a load or store that takes place, not a prefetch: which operand is an address then, SEM_NONE if none */
static unsigned sure(const struct gr *gr, uint32_t k)
{
	const struct sem_op *op = &gr->op[k];
	uint16_t f = gr->note[k].flags;

	if (SEM_REC_KIND(op->dst) > 1 || !SEM_REC_SIZE(op->dst))
		return SEM_NONE;
	if (op->b == SEM_NONE || (f & GN_NEARA))
		return op->a;
	return f & GN_NEARB ? op->b : SEM_NONE;
}

static bool small(int64_t imm)
{
	return imm >= -(1 << 20) && imm <= 1 << 20;
}

/* from which operand does the result of an op differ by little? */
static unsigned moves(const struct gr *gr, uint32_t k)
{
	const struct sem_op *op = &gr->op[k];
	const struct gr_note *n = &gr->note[k];

	if (n->kind == GK_COPY)
		return op->a;
	if (n->kind != GK_LEA && (n->kind != GK_SUM || op->w != 8))
		return SEM_NONE;
	if (op->b == SEM_NONE)
		return small(op->imm) ? op->a : SEM_NONE;
	return n->flags & GN_NEARA ? op->a : n->flags & GN_NEARB ? op->b : SEM_NONE;
}

static void set(struct deref *d, unsigned reg, bool wide)
{
	if (reg >= 64)
		return;
	if (!(d->is >> reg & 1) || !wide)
		d->wide &= ~(1ull << reg);
	d->is |= 1ull << reg;
	if (wide)
		d->wide |= 1ull << reg;
}

/* from after instruction i to before it; temporaries count inside of it */
static void back(const struct gr *gr, uint32_t i, struct deref *d)
{
	const struct gr_insn *in = &gr->in[i];

	if (!in->rec && !(in->writes & d->is))
		return;
	for (uint32_t k = in[1].op; k-- > in->op;) {
		const struct sem_op *op = &gr->op[k];
		bool wide;

		if (gr->note[k].kind == GK_REC) {
			set(d, sure(gr, k), op->b != SEM_NONE);
		} else if (gr->note[k].kind > GK_ASIDE && op->dst < 64 && (d->is >> op->dst & 1)) {
			wide = (d->wide >> op->dst & 1) || op->b != SEM_NONE;
			d->is &= ~(1ull << op->dst);
			set(d, moves(gr, k), wide);
		}
	}
	d->is &= 0xffff;
	d->wide &= d->is;
}

static uint16_t callee_derefs(const struct gr *gr, uint32_t insn)
{
	const struct an_callee *c = glue_callee(gr->g, insn);

	return c && gr->m->group[c->group].reason == MAP_OK ? gr->m->group[c->group].sum->derefs : 0;
}

static struct deref at_start(const struct gr *gr, uint32_t b)
{
	return b == AN_NONE ? (struct deref){0, 0} : (struct deref){gr->b[b].deref, gr->b[b].derefwide};
}

/* what a comparison found small needs no access to be known from six bytes: it is a null pointer, mostly */
static void add_small(struct deref *d, uint16_t small)
{
	d->is |= small;
	d->wide &= ~(uint64_t)small;
}

static struct deref both(struct deref a, struct deref b)
{
	return (struct deref){a.is & b.is, (a.wide | b.wide) & a.is & b.is};
}

static struct deref at_end(const struct gr *gr, uint32_t bi)
{
	const struct an_block *b = &gr->g->block[bi];
	struct deref d = {0xffff, 0}, taken;
	const struct an_table *t;
	uint32_t last = b->first + b->n - 1;

	switch (gr_flow(gr, bi)) {
	case FLOW_NEXT:
		return at_start(gr, b->succ[1]);
	case FLOW_JMP:
	case FLOW_JCC:
		taken = b->succ[0] == AN_NONE ? (struct deref){callee_derefs(gr, last), 0}
					      : at_start(gr, b->succ[0]);
		if (gr_flow(gr, bi) == FLOW_JMP)
			return taken;
		d = at_start(gr, b->succ[1]);
		add_small(&d, gr->b[bi].small[0]);
		add_small(&taken, gr->b[bi].small[1]);
		return both(taken, d);
	case FLOW_CALL:
		return (struct deref){callee_derefs(gr, last), 0};
	case FLOW_IJMP:
		if (b->table == AN_NONE)
			break;
		t = &gr->g->table[b->table];
		if (!t->exact || !t->ntarget)
			break;
		for (uint32_t k = 0; k < t->ntarget; k++)
			d = both(d, at_start(gr, t->target[k]));
		return d;
	default:
		break;
	}
	return (struct deref){0, 0};
}

#define NOT_VISITED 0xffff0000u /* wide are some of those that are */

/* gr_deref - fills deref of blocks (at the start) and instructions (after) */
void gr_deref(struct gr *gr)
{
	const struct an_group *g = gr->g;

	for (uint32_t i = 0; i < g->nblock; i++) {
		gr->b[i].derefend = NOT_VISITED;
		gr_wait_turn(gr, i);
	}
	for (uint32_t bi = g->nblock; (bi = gr_turn_down(gr, bi)) != AN_NONE;) {
		const struct an_block *b = &g->block[bi];
		struct deref d = at_end(gr, bi);
		uint32_t end = (uint32_t)(d.is | d.wide << 16);

		if (gr->b[bi].derefend == end)
			continue; /* and so it is before the block */
		gr->b[bi].derefend = end;
		for (uint32_t i = b->first + b->n; i-- > b->first;) {
			gr->in[i].deref = (uint16_t)d.is;
			back(gr, i, &d);
		}
		if (d.is == gr->b[bi].deref)
			continue; /* what it was first proved by stands */
		gr->b[bi].derefwide |= d.wide & ~gr->b[bi].deref;
		gr->b[bi].deref = (uint16_t)d.is;
		for (uint32_t k = 0; k < b->npred; k++)
			gr_wait_turn(gr, b->pred[k]);
	}
}

/* gr_entry_derefs - what holds at all entries */
uint32_t gr_entry_derefs(const struct gr *gr)
{
	uint32_t d = 0xffff;

	for (uint32_t i = 0; i < gr->g->nblock; i++)
		if (gr->g->block[i].flags & AN_B_ENTRY)
			d &= gr->b[i].deref & ~gr->b[i].derefwide;
	return d;
}

/* gr_eawidth - bytes to log of the address of record k. Only what is added to a segment base
 * is not an address itself. */
unsigned gr_eawidth(const struct gr *gr, uint32_t k)
{
	const struct sem_op *op = &gr->op[k];

	return SEM_REC_KIND(op->dst) < 2 && SEM_REC_SIZE(op->dst) && !gr->note[k].ea.seg ? GR_ADDR : 8;
}
