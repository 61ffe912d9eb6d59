/* SPDX-License-Identifier: MIT
 *
 * table.c - where indirect jumps go
 *
 *   jmp *T(,%i,8)                        absolute table
 *   mov (%b,%i,8),%r ; jmp *%r           the same, base in a register
 *   movslq (%b,%i,4),%r                  table of offsets from L, which is mostly the table
 *   add %l,%r ; jmp *%r
 *   lea L(%rip),%r ; jmp *%r             one target
 *   mov off(%vptr),%r ; jmp *%r          no table: a tail call, leaves
 *
 * Registers are followed backward to constants (table_value.c), the index to a bound
 * (table_bound.c). With bound, constant bases and memory that cannot change the target set is exact.
 * Without a bound the table is read up to the next address anything refers to; that is taken for
 * exact as long as it explains every byte of the function (discover_suspect.c).
 */
#include <string.h>
#include "table.h"

enum { TABLE_MAX = 1 << 16, BUDGET = 60000 };

struct result {
	VEC(uint32_t) target;
	uint32_t table, entsize;
	bool scan;      /* read tables without bound too */
	bool found;     /* at least one table or label */
	bool leaves;    /* may also go elsewhere */
	bool computed;  /* arithmetic on code addresses */
	bool unbounded; /* a table without bound was met */
	bool loose;     /* targets listed, but not proved to be all */
	bool open_end;  /* a table was read to the next label for want of a bound */
};

static void eval_target(struct tctx *t, int reg, uint32_t before, struct result *r, int depth);

static bool own_piece(struct tctx *t, uint32_t v)
{
	for (uint32_t i = 0; i < t->g->nrange; i++)
		if (v >= t->g->range[i].start && v < t->g->range[i].end)
			return true;
	return false;
}

/* What a table entry's target is to this group. */
enum target { T_OWN, T_FUNC, T_END /* clang's unreachable default: the function's end */, T_BAD };

static enum target classify(struct tctx *t, uint64_t v)
{
	const struct disc *d = t->d;
	uint32_t p;

	if (v >= UINT32_MAX)
		return T_BAD;
	if (disc_in(d, v) && (p = disc_piece(d, v)) != AN_NONE) {
		if (d->il[v - d->lo] == IL_IN)
			return T_BAD;
		if (own_piece(t, v))
			return T_OWN;
		if (d->st[v - d->lo] & ST_ENTRY)
			return T_FUNC;
		if (d->piece.v[p].kind == PC_FDE && !(d->st[d->piece.v[p].start - d->lo] & ST_ENTRY))
			return T_OWN; /* the function's other part */
	}
	for (uint32_t i = 0; i < t->g->nrange; i++)
		if (v == t->g->range[i].end)
			return T_END;
	return T_BAD;
}

static void add_target(struct result *r, struct disc *d, uint32_t v)
{
	if (!VEC_PUSH(&r->target, v))
		d->nomem = true;
}

static bool entry_value(struct tctx *t, uint64_t at, unsigned size, uint64_t label, bool sign, uint64_t *v, bool *fixed)
{
	const uint8_t *p;
	uint32_t raw;

	if (at >= UINT32_MAX)
		return false;
	if (size == 8)
		return elf_word(t->d->m, at, v, fixed);
	if (!(p = elf_at(t->d->m, at, 4)))
		return false;
	memcpy(&raw, p, 4);
	*v = label + (sign ? (uint64_t)(int32_t)raw : raw);
	*fixed = elf_fixed(t->d->m, at, 4);
	return true;
}

/* Can the bound be believed? Not if something else begins inside the table, or an entry is none. */
static bool plausible(struct tctx *t, uint64_t base, unsigned size, uint64_t label, bool sign, uint64_t max)
{
	for (uint64_t k = 0; k <= max; k++) {
		uint64_t at = base + k * size, v;
		bool fixed;

		if (at >= UINT32_MAX || (k && disc_labelled(t->d, at)) ||
		    !entry_value(t, at, size, label, sign, &v, &fixed) || classify(t, v) == T_BAD)
			return false;
	}
	return true;
}

/* Reads one table. max: index bound or TB_INF. Returns entries accepted. A bound that is too large, or
 * none, ends at the next labelled address or the first entry that is none. */
static uint32_t read_table(struct tctx *t, uint64_t base, unsigned size, uint64_t label, bool sign, uint64_t max,
			   struct result *r)
{
	bool exact = max != TB_INF && plausible(t, base, size, label, sign, max);
	uint32_t n = 0;

	r->open_end |= !exact;
	r->unbounded |= !exact;
	if (!exact && !r->scan)
		return 0; /* labels that would end it may not be known yet */
	for (uint64_t k = 0; k <= (max == TB_INF ? TABLE_MAX : max); k++) {
		uint64_t at = base + k * size, v;
		bool fixed = true;
		enum target c;

		if (!exact && k && at < UINT32_MAX && disc_labelled(t->d, at))
			break;
		c = entry_value(t, at, size, label, sign, &v, &fixed) ? classify(t, v) : T_BAD;
		if (c == T_BAD)
			break;
		r->loose |= !fixed;
		if (c == T_FUNC)
			r->leaves = true;
		if (c == T_OWN)
			add_target(r, t->d, v);
		if (at < UINT32_MAX)
			disc_in_table(t->d, at);
		n++;
	}
	r->loose |= !exact && n < 2;
	return n;
}

/* Every data address the group computes that looks like a table with these entries. */
static void guess_bases(struct tctx *t, unsigned size, struct consts *c)
{
	struct dins x;

	c->n = 0;
	for (uint32_t i = 0; i < t->g->ninsn && c->n < CONSTS_MAX; i++) {
		uint64_t a, v;
		bool fixed, dup = false;
		const uint8_t *p = elf_at(t->d->m, t->g->insn[i].vaddr, t->g->insn[i].len);

		if (t->g->insn[i].len != 7 || p[1] != 0x8d || (p[2] & 0xc7) != 5 || !tv_decode(t, i, &x))
			continue;
		a = t->g->insn[i].vaddr + x.in.length + x.op[1].mem.disp.value;
		for (uint32_t k = 0; k < c->n; k++)
			dup |= c->v[k] == a;
		if (!dup && (a >= UINT32_MAX || !disc_in(t->d, a)) && entry_value(t, a, size, a, true, &v, &fixed) &&
		    classify(t, v) == T_OWN)
			c->v[c->n++] = a;
	}
	c->open = true;
}

static void table_bases(struct tctx *t, const struct dins *x, const ZydisDecodedOperandMem *m, uint32_t i,
			struct consts *base)
{
	*base = (struct consts){ .n = 1 };
	if (m->base == ZYDIS_REGISTER_RIP)
		base->v[0] = t->g->insn[i].vaddr + x->in.length + m->disp.value;
	else if (m->base == ZYDIS_REGISTER_NONE)
		base->v[0] = m->disp.value;
	else {
		tv_consts(t, tv_gpr(m->base), i, base, 6);
		for (uint32_t k = 0; k < base->n; k++)
			base->v[k] += m->disp.value;
	}
}

/* Reads the table at base for each label its entries may be relative to. A register that holds the
 * table and is added to the entry pairs each table with itself. */
static uint32_t read_labels(struct tctx *t, uint64_t base, unsigned size, const struct consts *label, bool sign,
			    uint64_t max, struct result *r)
{
	uint32_t nl = label && label->n ? label->n : 1, got = 0;
	bool paired = !label || !label->n;

	for (uint32_t j = 0; j < nl && !paired; j++)
		paired = label->v[j] == base;
	for (uint32_t j = 0; j < (paired ? 1 : nl); j++) {
		uint32_t n = read_table(t, base, size, paired ? base : label->v[j], sign, max, r);

		if (!n)
			continue;
		got += n;
		r->table = base;
		r->entsize = size;
		if (!paired && disc_in(t->d, label->v[j]) && !VEC_PUSH(&t->used, (uint32_t)label->v[j]))
			t->d->nomem = true;
	}
	return got;
}

/* The load at instruction i, of an entry through m. label: bases of relative entries, or NULL. */
static bool table_load(struct tctx *t, const struct dins *x, const ZydisDecodedOperandMem *m, uint32_t i,
		       unsigned size, const struct consts *label, bool sign, struct result *r, int depth)
{
	struct consts base;
	uint64_t max = 0;
	uint32_t got = 0;
	int idx = tv_gpr(m->index);

	if (m->index == ZYDIS_REGISTER_NONE && m->base != ZYDIS_REGISTER_RIP && m->base != ZYDIS_REGISTER_NONE) {
		struct defs defs;
		struct dins l;

		/* lea (%b,%i,size),%p ; mov (%p),%r */
		tv_defs(t, tv_gpr(m->base), i, &defs);
		if (depth <= 0 || defs.open || defs.n != 1 || m->disp.value || t->g->insn[defs.v[0]].flow != FLOW_NEXT ||
		    !tv_decode(t, defs.v[0], &l) || l.in.mnemonic != ZYDIS_MNEMONIC_LEA)
			return false;
		return table_load(t, &l, &l.op[1].mem, defs.v[0], size, label, sign, r, depth - 1);
	}
	table_bases(t, x, m, i, &base);
	if (idx >= 0) {
		max = tb_max(t, idx, 8, i);
		if (m->scale == 1 && max != TB_INF)
			max /= size;
		else if (m->scale != 1 && m->scale != size)
			return false;
	}
	if (max > TABLE_MAX)
		max = TB_INF;
	r->unbounded |= max == TB_INF;
	if (!base.n || (label && !label->n && base.open)) {
		if (idx < 0)
			return false;
		r->unbounded = true;
		if (!t->budget || !r->scan) /* bounded pass: leave the guessing for later */
			return true;
		guess_bases(t, size, &base);
	}
	if (max == TB_INF && !r->scan)
		return true;
	r->loose |= base.open || (label && label->open);
	for (uint32_t k = 0; k < base.n; k++)
		got += read_labels(t, base.v[k], size, label, sign, max, r);
	if (got)
		r->found = true;
	return got != 0 || (r->unbounded && !r->scan);
}

/* Is the definition a load of a 4-byte table entry? Follows copies. */
static bool rel_load(struct tctx *t, uint32_t def, const struct consts *label, struct result *r, int depth)
{
	struct dins x;
	struct defs defs;
	bool ok = false;

	if (depth <= 0 || t->g->insn[def].flow != FLOW_NEXT || !tv_decode(t, def, &x) ||
	    (x.in.mnemonic != ZYDIS_MNEMONIC_MOVSXD && x.in.mnemonic != ZYDIS_MNEMONIC_MOV &&
	     x.in.mnemonic != ZYDIS_MNEMONIC_CDQE))
		return false;
	if (x.in.mnemonic != ZYDIS_MNEMONIC_CDQE && x.op[1].type == ZYDIS_OPERAND_TYPE_MEMORY)
		return x.op[1].size == 32 && table_load(t, &x, &x.op[1].mem, def, 4, label,
							x.in.mnemonic == ZYDIS_MNEMONIC_MOVSXD, r, 3);
	if (x.in.mnemonic != ZYDIS_MNEMONIC_CDQE && x.op[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return false;
	tv_defs(t, x.in.mnemonic == ZYDIS_MNEMONIC_CDQE ? 0 : tv_gpr(x.op[1].reg.value), def, &defs);
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
			return;
		}
	}
	r->computed |= code;
	r->leaves = true;
}

static void eval_label(struct tctx *t, uint64_t v, struct result *r)
{
	switch (classify(t, v)) {
	case T_OWN:
		add_target(r, t->d, v);
		r->found = true;
		if (!VEC_PUSH(&t->used, (uint32_t)v))
			t->d->nomem = true;
		break;
	default:
		r->leaves = true;
	}
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
	} else if (!table_load(t, x, &op->mem, i, 8, NULL, false, r, 3) && !r->unbounded) {
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
		else if (b->mem.base != ZYDIS_REGISTER_NONE && b->mem.index != ZYDIS_REGISTER_NONE && b->mem.scale == 1 &&
			 !b->mem.disp.value)
			eval_sum(t, tv_gpr(b->mem.base), tv_gpr(b->mem.index), i, r);
		else {
			if (tv_gpr(b->mem.base) >= 0) {
				tv_consts(t, tv_gpr(b->mem.base), i, &c, 4);
				for (uint32_t k = 0; k < c.n; k++)
					r->computed |= disc_in(t->d, c.v[k]);
			}
			r->leaves = true;
		}
		return;
	case ZYDIS_MNEMONIC_ADD: case ZYDIS_MNEMONIC_SUB:
		if (b->type == ZYDIS_OPERAND_TYPE_REGISTER && x.in.mnemonic == ZYDIS_MNEMONIC_ADD) {
			eval_sum(t, tv_gpr(a->reg.value), tv_gpr(b->reg.value), i, r);
			return;
		}
		tv_consts(t, tv_gpr(a->reg.value), i, &c, 4);
		if (b->type == ZYDIS_OPERAND_TYPE_MEMORY && x.in.mnemonic == ZYDIS_MNEMONIC_ADD && c.n &&
		    table_load(t, &x, &b->mem, i, 8, &c, true, r, 3))
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

/* Stores what was found about jump j; true if there are targets that are not decoded yet. */
static bool settle(struct tctx *t, struct ijmp *j, struct result *r)
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
	free(j->target);
	j->target = r->target.v;
	j->ntarget = n;
	j->table = r->table;
	j->entsize = r->entsize;
	j->exact = r->found && n && !r->leaves && !r->loose && !r->computed;
	j->assumed = j->exact && r->open_end;
	j->stays = r->computed;
	return more;
}

static void solve_one(struct tctx *t, uint32_t i, bool scan, struct result *r)
{
	struct dins x;

	*r = (struct result){ .table = AN_NONE, .scan = scan };
	t->budget = BUDGET;
	if (!tv_decode(t, i, &x)) {
		r->leaves = true;
		return;
	}
	if (x.op[0].type == ZYDIS_OPERAND_TYPE_REGISTER)
		eval_target(t, tv_gpr(x.op[0].reg.value), i, r, 8);
	else
		eval_mem(t, &x, &x.op[0], i, r, 8);
}

/* Labels of the group that are stored somewhere: where a jump with unknown target may go. */
static void add_labels(struct tctx *t, struct result *r)
{
	struct disc *d = t->d;

	for (uint32_t i = 0; i < d->lea.n; i++) {
		uint32_t v = d->lea.v[i].to;
		bool skip = (d->st[v - d->lo] & (ST_ENTRY | ST_DATA)) || !own_piece(t, v) || d->il[v - d->lo] == IL_IN ||
			    disc_tabled(d, d->lea.v[i].from);

		for (uint32_t k = 0; !skip && k < t->used.n; k++)
			skip = t->used.v[k] == v;
		if (!skip)
			add_target(r, d, v);
	}
}

bool table_solve(struct disc *d, struct an_group *g, bool scan)
{
	struct tctx t = { .d = d, .g = g };
	bool more = false;

	t.wr = calloc(g->ninsn + 1ull, sizeof(*t.wr));
	t.stamp = calloc(g->nblock + 1ull, sizeof(*t.stamp));
	t.stack = malloc((g->nblock * 2ull + 2) * sizeof(*t.stack));
	if (!t.wr || !t.stamp || !t.stack)
		d->nomem = true;
	/* labels that exact tables use are nobody else's: two passes over the jumps */
	for (int pass = 0; pass < 2 && !d->nomem; pass++)
		for (uint32_t b = 0; b < g->nblock; b++) {
			uint32_t i = g->block[b].first + g->block[b].n - 1;
			struct ijmp *j = g->insn[i].flow == FLOW_IJMP ? disc_ijmp(d, g->insn[i].vaddr) : NULL;
			struct result r;

			if (!j || (pass && j->exact))
				continue;
			solve_one(&t, i, scan, &r);
			if (pass && scan)
				add_labels(&t, &r);
			more |= settle(&t, j, &r);
		}
	free(t.wr);
	free(t.stamp);
	free(t.stack);
	free(t.used.v);
	return more;
}
