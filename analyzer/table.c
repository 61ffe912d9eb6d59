/* SPDX-License-Identifier: MIT
 *
 * table.c - where indirect jumps go
 *
 *   jmp *T(,%i,8)                        absolute table
 *   mov (%b,%i,8),%r ; jmp *%r           the same, base in a register
 *   movslq (%b,%i,4),%r                  table of offsets from L, which is mostly the table
 *   add %l,%r ; jmp *%r
 *   lea L(%rip),%r ; jmp *%r             one target
 *   lea L(%rip),%b ; lea (%b,%i,8),%r    no table: code in places of the same size (libffi)
 *   jmp *%r
 *   mov off(%vptr),%r ; jmp *%r          no table: a tail call, leaves
 *
 * Registers are followed backward to constants (table_value.c), the index to a bound
 * (table_bound.c). With bound, constant bases and memory that cannot change the target set is exact.
 * Without a bound the table is read up to the next address anything refers to; that is taken for
 * exact as long as it explains every byte of the function (discover_suspect.c).
 */
#include <string.h>
#include "scratch.h"
#include "table.h"

/* Instructions, and ways between blocks, that a search may look at: for a jump, for all jumps of a group, and for a jump when
 * those have been (a Haskell module is one group with thousands of jumps through its stack, none of them a table's). A search
 * that is given up says that it does not know. Perl's interpreter takes 1.2 million for its 15 jumps. */
enum { BUDGET = 600000, BUDGET_ALL = 2000000, BUDGET_LEAST = 300 };
enum { PLACES_MAX = 255 };
enum { PAIRS_MAX = 100000 }; /* of a jump and a label that it may go to, in a group */

static void eval_target(struct tctx *t, int reg, uint32_t before, struct result *r, int depth);
static bool rel_source(struct tctx *t, int reg, uint32_t before, const struct consts *label, struct result *r,
		       int depth);

/* Is the definition a load of a 4-byte table entry? Follows copies. */
static bool rel_load(struct tctx *t, uint32_t def, const struct consts *label, struct result *r, int depth)
{
	struct dins x;
	bool ok = false;

	if (depth <= 0 || t->g->insn[def].flow != FLOW_NEXT || !tv_decode(t, def, &x) ||
	    (x.in.mnemonic != ZYDIS_MNEMONIC_MOVSXD && x.in.mnemonic != ZYDIS_MNEMONIC_MOV &&
	     x.in.mnemonic != ZYDIS_MNEMONIC_CDQE))
		return false;
	if (x.in.mnemonic == ZYDIS_MNEMONIC_MOV && tv_is_slot(&x.op[1]) && x.op[1].size == 64) {
		struct defs st;

		/* the entry was spilled */
		tv_slot_stores(t, tv_gpr(x.op[1].mem.base), x.op[1].mem.disp.value, &st);
		r->loose |= st.open;
		for (uint32_t k = 0; k < st.n; k++)
			ok |= tv_decode(t, st.v[k], &x) &&
			      rel_source(t, tv_gpr(x.op[1].reg.value), st.v[k], label, r, depth);
		return ok;
	}
	if (x.in.mnemonic != ZYDIS_MNEMONIC_CDQE && x.op[1].type == ZYDIS_OPERAND_TYPE_MEMORY)
		return x.op[1].size == 32 && tr_load(t, &x, &x.op[1].mem, def, 4, label, true, r,
						     3); /* offsets are less than 2 GiB */
	if (x.in.mnemonic != ZYDIS_MNEMONIC_CDQE && x.op[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return false;
	return rel_source(t, x.in.mnemonic == ZYDIS_MNEMONIC_CDQE ? 0 : tv_gpr(x.op[1].reg.value), def, label,
			  r, depth);
}

/* The same for all definitions of reg before an instruction. */
static bool rel_source(struct tctx *t, int reg, uint32_t before, const struct consts *label, struct result *r,
		       int depth)
{
	struct defs defs;
	bool ok = false;

	if (reg < 0)
		return false;
	tv_defs(t, reg, before, &defs);
	r->loose |= defs.open;
	for (uint32_t k = 0; k < defs.n; k++)
		ok |= rel_load(t, defs.v[k], label, r, depth - 1);
	return ok;
}

/* target = a + b before instruction i */
static void eval_sum(struct tctx *t, int a, int b, uint32_t i, struct result *r)
{
	bool code = false;

	for (int swap = 0; swap < 2; swap++) {
		int load = swap ? b : a, lab = swap ? a : b;
		struct consts label;
		struct defs defs;
		bool ok = false;

		tv_consts(t, lab, i, &label, 6);
		for (uint32_t k = 0; k < label.n; k++)
			code |= disc_in(t->d, label.v[k]);
		tv_defs(t, load, i, &defs);
		for (uint32_t k = 0; k < defs.n; k++)
			ok |= rel_load(t, defs.v[k], &label, r, 4);
		if (ok) {
			r->loose |= defs.open;
			r->computed |= r->scan && !r->found; /* a table, but which? */
			return;
		}
	}
	r->computed |= code;
	r->leaves = true;
}

static void eval_label(struct tctx *t, uint64_t v, struct result *r)
{
	switch (tr_classify(t, v)) {
	case T_OWN:
		tr_add(r, t->d, v);
		r->found = true;
		if (!VEC_PUSH(&t->used, (uint32_t)v))
			t->d->nomem = true;
		break;
	default:
		r->leaves = true;
	}
}

/* Code in places of the same size, one after the other, from a label on. False: not provably so */
static bool eval_places(struct tctx *t, const ZydisDecodedOperandMem *m, uint32_t i, struct result *r)
{
	struct consts base;
	uint64_t max;

	tv_consts(t, tv_gpr(m->base), i, &base, 4);
	if (base.open || base.n != 1)
		return false;
	max = tb_max(t, tv_gpr(m->index), 8, i);
	if (max > PLACES_MAX)
		return false;
	base.v[0] += m->disp.value;
	for (uint64_t k = 0; k <= max; k++)
		if (tr_classify(t, base.v[0] + k * m->scale) != T_OWN)
			return false;
	for (uint64_t k = 0; k <= max; k++)
		tr_add(r, t->d, (uint32_t)(base.v[0] + k * m->scale));
	r->found = true;
	return true;
}

static void eval_mem(struct tctx *t, const struct dins *x, const ZydisDecodedOperand *op, uint32_t i,
		     struct result *r, int depth)
{
	if (op->mem.segment == ZYDIS_REGISTER_FS || op->mem.segment == ZYDIS_REGISTER_GS ||
	    (op->mem.index == ZYDIS_REGISTER_NONE && op->mem.base == ZYDIS_REGISTER_RIP)) {
		r->leaves = true;
	} else if (tv_is_slot(op)) {
		struct defs st;

		tv_slot_stores(t, tv_gpr(op->mem.base), op->mem.disp.value, &st);
		r->leaves |= st.open;
		for (uint32_t k = 0; k < st.n; k++) {
			struct dins s;

			if (tv_decode(t, st.v[k], &s))
				eval_target(t, tv_gpr(s.op[1].reg.value), st.v[k], r, depth - 1);
		}
	} else if (!tr_load(t, x, &op->mem, i, 8, NULL, false, r, 3) && !r->unbounded) {
		r->leaves = true;
	} else if (r->unbounded && !r->found) {
		r->leaves = true;
	}
}

static void eval_def(struct tctx *t, uint32_t i, struct result *r, int depth)
{
	const ZydisDecodedOperand *a, *b;
	struct consts c;
	struct dins x;

	if (t->g->insn[i].flow != FLOW_NEXT || !tv_decode(t, i, &x)) {
		r->leaves = true;
		return;
	}
	a = &x.op[0];
	b = &x.op[1];
	switch (x.in.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		if (b->type == ZYDIS_OPERAND_TYPE_REGISTER)
			eval_target(t, tv_gpr(b->reg.value), i, r, depth - 1);
		else if (b->type == ZYDIS_OPERAND_TYPE_MEMORY && b->size == 64)
			eval_mem(t, &x, b, i, r, depth);
		else if (b->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			eval_label(t, b->imm.value.u, r);
		else
			r->leaves = true;
		return;
	case ZYDIS_MNEMONIC_LEA:
		if (b->mem.base == ZYDIS_REGISTER_RIP)
			eval_label(t, t->g->insn[i].vaddr + x.in.length + b->mem.disp.value, r);
		else if (b->mem.base != ZYDIS_REGISTER_NONE && b->mem.index != ZYDIS_REGISTER_NONE &&
			 b->mem.scale == 1 && !b->mem.disp.value)
			eval_sum(t, tv_gpr(b->mem.base), tv_gpr(b->mem.index), i, r);
		else if (tv_gpr(b->mem.base) < 0 || tv_gpr(b->mem.index) < 0 ||
			 !eval_places(t, &b->mem, i, r)) {
			if (tv_gpr(b->mem.base) >= 0) {
				tv_consts(t, tv_gpr(b->mem.base), i, &c, 4);
				for (uint32_t k = 0; k < c.n; k++)
					r->computed |= disc_in(t->d, c.v[k]);
			}
			r->leaves = true;
		}
		return;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (b->type == ZYDIS_OPERAND_TYPE_REGISTER && x.in.mnemonic == ZYDIS_MNEMONIC_ADD) {
			eval_sum(t, tv_gpr(a->reg.value), tv_gpr(b->reg.value), i, r);
			return;
		}
		tv_consts(t, tv_gpr(a->reg.value), i, &c, 4);
		if (b->type == ZYDIS_OPERAND_TYPE_MEMORY && x.in.mnemonic == ZYDIS_MNEMONIC_ADD && c.n &&
		    tr_load(t, &x, &b->mem, i, 8, &c, true, r, 3))
			return;
		for (uint32_t k = 0; k < c.n; k++)
			r->computed |= disc_in(t->d, c.v[k]);
		r->leaves = true;
		return;
	default:
		if (x.in.meta.category == ZYDIS_CATEGORY_CMOV) {
			eval_target(t, tv_gpr(a->reg.value), i, r, depth - 1);
			if (b->type == ZYDIS_OPERAND_TYPE_REGISTER)
				eval_target(t, tv_gpr(b->reg.value), i, r, depth - 1);
			else
				eval_mem(t, &x, b, i, r, depth);
			return;
		}
		r->leaves = true;
	}
}

static void eval_target(struct tctx *t, int reg, uint32_t before, struct result *r, int depth)
{
	struct defs defs;

	if (depth <= 0 || reg < 0) {
		r->leaves = true;
		return;
	}
	tv_defs(t, reg, before, &defs);
	r->leaves |= defs.open;
	for (uint32_t k = 0; k < defs.n; k++)
		eval_def(t, defs.v[k], r, depth);
}

static int cmp_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* The targets of jump j, ascending; true if there are some that are not decoded yet. */
static bool settle_targets(struct tctx *t, struct ijmp *j, struct result *r)
{
	struct disc *d = t->d;
	uint32_t n = 0;
	bool more = false;

	if (r->target.n)
		qsort(r->target.v, r->target.n, sizeof(uint32_t), cmp_u32);
	for (uint32_t i = 0; i < r->target.n; i++)
		if (!n || r->target.v[n - 1] != r->target.v[i])
			r->target.v[n++] = r->target.v[i];
	for (uint32_t i = 0; i < n; i++) {
		uint32_t o = r->target.v[i] - d->lo;

		more |= !IL_START(d->il[o]) || !(d->st[o] & ST_TARGET);
		disc_push(d, r->target.v[i], ST_TARGET);
	}
	j->target = r->target.v;
	j->ntarget = n;
	return more;
}

/* the same, where the jump before it was found to have the same ones */
static bool settle_same(struct tctx *t, struct ijmp *j, struct result *r)
{
	if (!t->same || !r->target.n || r->target.n != t->found.n ||
	    memcmp(r->target.v, t->found.v, t->found.n * sizeof(*t->found.v)))
		return false;
	memcpy(r->target.v, t->same->target, t->same->ntarget * sizeof(*r->target.v));
	j->target = r->target.v;
	j->ntarget = t->same->ntarget;
	return true;
}

static void remember(struct tctx *t, const struct result *r)
{
	t->found.n = 0;
	for (uint32_t i = 0; i < r->target.n; i++)
		if (!VEC_PUSH(&t->found, r->target.v[i]))
			t->d->nomem = true;
}

/* Stores what was found about jump j; true if there are targets that are not decoded yet. */
static bool settle(struct tctx *t, struct ijmp *j, struct result *r)
{
	bool more = false;

	if (t->same == j)
		t->same = NULL;
	free(j->target);
	if (!settle_same(t, j, r)) {
		remember(t, r);
		more = settle_targets(t, j, r);
		t->same = j;
	}
	j->table = r->table;
	j->entsize = r->entsize;
	j->entries = r->entries;
	j->exact = r->found && j->ntarget && !r->leaves && !r->loose && !r->computed;
	j->assumed = j->exact && r->open_end;
	j->stays = r->computed;
	return more;
}

static void solve_one(struct tctx *t, uint32_t i, bool scan, struct result *r)
{
	struct dins x;

	*r = (struct result){.table = AN_NONE, .scan = scan};
	if (!tv_decode(t, i, &x)) {
		r->leaves = true;
		return;
	}
	if (x.op[0].type == ZYDIS_OPERAND_TYPE_REGISTER)
		eval_target(t, tv_gpr(x.op[0].reg.value), i, r, 8);
	else
		eval_mem(t, &x, &x.op[0], i, r, 8);
}

/* Is d->lea.v[i] a label that is stored somewhere: where a jump with unknown target may go? */
static bool is_stored(const struct tctx *t, uint32_t i)
{
	struct disc *d = t->d;
	uint32_t v = d->lea.v[i].to;

	if ((d->st[v - d->lo] & (ST_ENTRY | ST_DATA)) || d->il[v - d->lo] == IL_IN ||
	    disc_tabled(d, d->lea.v[i].from))
		return false;
	for (uint32_t k = 0; k < t->used.n; k++)
		if (t->used.v[k] == v)
			return false;
	if (d->piece.v[disc_piece(d, v)].kind == PC_GAP && !d->il[v - d->lo])
		return !d->jumped && disc_bare_label(d, v); /* data, perhaps */
	return true;
}

/* Those of the group become targets of a jump or, without one, entries. Returns how many there were. d->lea is sorted by
 * label here. */
enum labels { COUNT, TARGETS, ENTRIES };
static uint32_t stored_labels(struct tctx *t, enum labels what, struct result *r)
{
	struct disc *d = t->d;
	uint32_t n = 0;

	for (uint32_t g = 0; g < t->g->nrange; g++)
		for (uint32_t i = disc_first_lea(d, t->g->range[g].start);
		     i < d->lea.n && d->lea.v[i].to < t->g->range[g].end; i++) {
			if (!is_stored(t, i))
				continue;
			n++;
			if (what == TARGETS)
				tr_add(r, d, d->lea.v[i].to);
			else if (what == ENTRIES)
				disc_push(d, d->lea.v[i].to, ST_ENTRY | ST_TAKEN);
		}
	return n;
}

/* Thousands of jumps that may go to thousands of labels (a Haskell module) are too many pairs: so each label is a function's
 * beginning, to which a jump may leave like to any other. */
static void part_labels(struct tctx *t)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < t->g->nblock; i++)
		n += t->g->insn[t->g->block[i].first + t->g->block[i].n - 1].flow == FLOW_IJMP;
	if (n > PAIRS_MAX / 1000 && n * stored_labels(t, COUNT, NULL) > PAIRS_MAX)
		stored_labels(t, ENTRIES, NULL);
}

bool table_solve(struct disc *d, struct an_group *g, bool scan)
{
	struct tctx t = {.d = d, .g = g};
	struct scratch_mark m = scratch_mark();
	uint32_t left = BUDGET_ALL, budget;
	bool more = false;

	t.wr = scratch_zero((g->ninsn + 1ull) * sizeof(*t.wr));
	t.stamp = scratch_zero((g->nblock + 1ull) * sizeof(*t.stamp));
	t.stack = scratch((g->nblock * 2ull + 2) * sizeof(*t.stack));
	if (!t.wr || !t.stamp || !t.stack)
		d->nomem = true;
	/* labels that exact tables use are nobody else's: two passes over the jumps */
	for (int pass = 0; pass < 2 && !d->nomem; pass++) {
		if (pass && scan)
			part_labels(&t);
		for (uint32_t b = 0; b < g->nblock; b++) {
			uint32_t i = g->block[b].first + g->block[b].n - 1;
			struct ijmp *j = g->insn[i].flow == FLOW_IJMP ? disc_ijmp(d, g->insn[i].vaddr) : NULL;
			struct result r;

			if (!j || (pass && j->exact))
				continue;
			t.budget = budget = left > BUDGET	  ? BUDGET
					    : left > BUDGET_LEAST ? left
								  : BUDGET_LEAST;
			solve_one(&t, i, scan, &r);
			left -= budget - t.budget < left ? budget - t.budget : left;
			if (pass && scan)
				stored_labels(&t, TARGETS, &r);
			more |= settle(&t, j, &r);
		}
	}
	scratch_release(m);
	free(t.last.target.v);
	free(t.found.v);
	free(t.used.v);
	free(t.slot.v);
	free(t.lea.v);
	return more || d->work.n;
}
