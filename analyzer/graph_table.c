/* SPDX-License-Identifier: MIT
 *
 * graph_table.c - backward: the index of a jump table is below the number of its entries
 *
 *   mov (%rdi,%rcx,4),%ecx        one byte of it is logged if the table has up to 256 entries, not four
 *   movslq (%r9,%rcx,4),%rcx
 *   add %r9,%rcx
 *   jmp *%rcx
 *
 * An exact table (discovery's word) is the claim that the jump goes to one of its entries; that its index is
 * one of theirs is the same claim. What was computed in the block of the jump and is about to be the index
 * has no more bits than that.
 */
#include "plan.h"

static unsigned bits(uint32_t n)
{
	return n ? 32 - (unsigned)__builtin_clz(n) : 0;
}

/* The registers that the jump's target is made of, from the end of a block backward, until the load of an
 * entry and the scaled index of its address. */
struct slice {
	uint64_t target, at; /* registers: parts of the target; addresses of entries */
	unsigned scale, w; /* of an entry */
};

static void add(uint64_t *set, unsigned reg)
{
	if (reg < 64)
		*set |= 1ull << reg;
}

/* one op; returns the index register when this is where it is used, SEM_NONE before that */
static unsigned back(struct slice *s, const struct sem_op *op)
{
	uint64_t bit = op->dst < 64 ? 1ull << op->dst : 0;
	bool target = s->target & bit, at = s->at & bit;

	s->target &= ~bit;
	s->at &= ~bit;
	if (at && op->op == SEM_LEA && op->b < SEM_NGPR && op->w == s->scale)
		return op->b;
	if (at && op->op == SEM_MOV && op->w == 8)
		add(&s->at, op->a);
	if (!target)
		return SEM_NONE;
	if (op->op == SEM_LOAD && op->w == s->w) {
		add(&s->at, op->a);
	} else if (op->op == SEM_MOV || op->op == SEM_SX) {
		add(&s->target, op->a);
	} else if (op->op == SEM_ADD) {
		add(&s->target, op->a);
		add(&s->target, op->b);
	}
	return SEM_NONE;
}

static void limit(struct gr_rng *r, unsigned n)
{
	if (r->zb <= n)
		return;
	r->zb = (uint8_t)n;
	r->sb = r->sb < n + 1 ? r->sb : (uint8_t)(n + 1);
}

/* register `reg` before op k of block b has n bits: so has its definition, and what that copies */
static void found(struct gr *gr, uint32_t bi, uint32_t k, unsigned reg, unsigned n)
{
	uint32_t first = gr->in[gr->g->block[bi].first].op;

	while (k-- > first) {
		const struct sem_op *op = &gr->op[k];

		if ((gr->note[k].flags & GN_SLOT2) || !gr_is_value(op) || op->dst != reg)
			continue;
		limit(&gr->note[k].rng, n);
		if (op->op != SEM_MOV || op->w != 8 || op->a >= 64)
			return;
		reg = op->a;
	}
	if (reg < SEM_NGPR)
		limit(&gr->b[bi].rng[reg], n);
}

static void block(struct gr *gr, uint32_t bi, const struct an_table *t)
{
	const struct an_block *b = &gr->g->block[bi];
	struct slice s = {.target = 1ull << SEM_T0, .w = t->entry_size, .scale = t->entry_size == 8 ? 3 : 2};
	uint32_t first = gr->in[b->first].op;

	for (uint32_t k = gr->in [b->first + b->n].op; k-- > first && (s.target | s.at);) {
		unsigned reg;

		if ((gr->note[k].flags & GN_SLOT2) || !gr_is_value(&gr->op[k]))
			continue;
		reg = back(&s, &gr->op[k]);
		if (reg != SEM_NONE) {
			found(gr, bi, k, reg, bits(t->nentry - 1));
			return;
		}
	}
}

void gr_tables(struct gr *gr)
{
	for (uint32_t i = 0; i < gr->g->nblock; i++) {
		uint32_t t = gr->g->block[i].table;

		if (t != AN_NONE && gr->g->table[t].exact && gr->g->table[t].nentry)
			block(gr, i, &gr->g->table[t]);
	}
}
