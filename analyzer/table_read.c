/* SPDX-License-Identifier: MIT
 *
 * table_read.c - reading jump tables out of the image
 *
 * A table's base is a constant (table_value.c), its length the index bound (table_bound.c) or, for want
 * of one, what lies before the next address anything refers to. Every entry's target is checked.
 */
#include <string.h>
#include "table.h"

enum { TABLE_MAX = 1 << 16 };

bool tr_own(struct tctx *t, uint32_t v)
{
	for (uint32_t i = 0; i < t->g->nrange; i++)
		if (v >= t->g->range[i].start && v < t->g->range[i].end)
			return true;
	return false;
}

enum target tr_classify(struct tctx *t, uint64_t v)
{
	const struct disc *d = t->d;
	uint32_t p;

	if (v >= UINT32_MAX)
		return T_BAD;
	if (disc_in(d, v) && (p = disc_piece(d, v)) != AN_NONE) {
		if (d->il[v - d->lo] == IL_IN)
			return T_BAD;
		if (tr_own(t, v))
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

void tr_add(struct result *r, struct disc *d, uint32_t v)
{
	if (!VEC_PUSH(&r->target, v))
		d->nomem = true;
}

static bool entry_value(struct tctx *t, uint64_t at, unsigned size, uint64_t label, bool sign, uint64_t *v,
			bool *fixed)
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

/* Reads one table into t->last. Reading ends at the bound, or where something else begins, or at an entry that is none: then
 * the bound was too large or there was none. */
static void read_entries(struct tctx *t)
{
	struct tread *l = &t->last;
	enum target c = T_BAD;
	uint64_t last = 0;

	l->n = l->target.n = 0;
	l->exact = l->max != TB_INF;
	l->leaves = l->changes = false;
	for (uint64_t k = 0; k <= (l->max == TB_INF ? TABLE_MAX : l->max); k++) {
		uint64_t at = l->base + k * l->size, v;
		bool fixed = true;

		if ((k && at < UINT32_MAX && disc_labelled(t->d, at)) ||
		    !entry_value(t, at, l->size, l->label, l->sign, &v, &fixed)) {
			l->exact = false;
			break;
		}
		if (!l->n || v != last) /* runs of the default target are common */
			c = tr_classify(t, v);
		if (c == T_BAD) {
			l->exact = false;
			break;
		}
		l->changes |= !fixed;
		l->leaves |= c == T_FUNC;
		if (c == T_OWN && (!l->n || v != last) && !VEC_PUSH(&l->target, (uint32_t)v))
			t->d->nomem = true;
		last = v;
		l->n++;
	}
}

/* Reads one table, if that is not the one read last. max: index bound or TB_INF. Returns entries accepted. Without a bound that
 * holds it waits for the scanning pass, when the labels that may end it are known. */
static uint32_t read_table(struct tctx *t, uint64_t base, unsigned size, uint64_t label, bool sign,
			   uint64_t max, struct result *r)
{
	struct tread *l = &t->last;

	if (l->base != base || l->size != size || l->label != label || l->sign != sign || l->max != max) {
		l->base = base;
		l->size = size;
		l->label = label;
		l->sign = sign;
		l->max = max;
		read_entries(t);
		for (uint32_t k = 0; (l->exact || r->scan) && k < l->n; k++)
			disc_in_table(t->d, base + k * size);
	}
	r->open_end |= !l->exact;
	r->unbounded |= !l->exact;
	if (!l->exact && !r->scan)
		return 0;
	for (uint32_t k = 0; k < l->target.n; k++)
		tr_add(r, t->d, l->target.v[k]);
	r->entries = l->n > r->entries ? l->n : r->entries;
	r->loose |= l->changes || (!l->exact && l->n < 2);
	r->leaves |= l->leaves;
	return l->n;
}

static void find_lea(struct tctx *t)
{
	struct dins x;

	t->have_lea = true;
	for (uint32_t i = 0; i < t->g->ninsn; i++) {
		const uint8_t *p = elf_at(t->d->m, t->g->insn[i].vaddr, t->g->insn[i].len);
		uint64_t a;

		if (t->g->insn[i].len != 7 || p[1] != 0x8d || (p[2] & 0xc7) != 5 || !tv_decode(t, i, &x))
			continue;
		a = t->g->insn[i].vaddr + x.in.length + x.op[1].mem.disp.value;
		if (a < UINT32_MAX && !disc_in(t->d, a) && !VEC_PUSH(&t->lea, (uint32_t)a))
			t->d->nomem = true;
	}
}

/* Adds every data address the group computes that looks like a table with these entries: the base may
 * come over a path that was not understood. */
static void guess_bases(struct tctx *t, unsigned size, struct consts *c)
{
	if (!t->have_lea)
		find_lea(t);
	for (uint32_t i = 0; i < t->lea.n && c->n < CONSTS_MAX; i++) {
		uint64_t a = t->lea.v[i], v;
		bool fixed, dup = false;

		for (uint32_t k = 0; k < c->n; k++)
			dup |= c->v[k] == a;
		if (!dup && entry_value(t, a, size, a, true, &v, &fixed) && tr_classify(t, v) == T_OWN)
			c->v[c->n++] = a;
	}
	c->open = true;
}

static void table_bases(struct tctx *t, const struct dins *x, const ZydisDecodedOperandMem *m, uint32_t i,
			struct consts *base)
{
	*base = (struct consts){.n = 1};
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
static uint32_t read_labels(struct tctx *t, uint64_t base, unsigned size, const struct consts *label,
			    bool sign, uint64_t max, struct result *r)
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
bool tr_load(struct tctx *t, const struct dins *x, const ZydisDecodedOperandMem *m, uint32_t i, unsigned size,
	     const struct consts *label, bool sign, struct result *r, int depth)
{
	ZydisDecodedOperandMem swapped;
	struct consts base;
	uint64_t max = 0;
	uint32_t got = 0;
	int idx = tv_gpr(m->index);

	if (m->scale == 1 && idx >= 0 && tv_gpr(m->base) >= 0) {
		struct consts other;

		/* which of the two is the table? */
		tv_consts(t, tv_gpr(m->base), i, &base, 6);
		tv_consts(t, idx, i, &other, 6);
		if ((!base.n || base.open) && other.n && !other.open) {
			swapped = *m;
			swapped.base = m->index;
			swapped.index = m->base;
			m = &swapped;
			idx = tv_gpr(m->index);
		}
	}
	if (m->index == ZYDIS_REGISTER_NONE && m->base != ZYDIS_REGISTER_RIP &&
	    m->base != ZYDIS_REGISTER_NONE) {
		struct defs defs;
		struct dins l;

		/* lea (%b,%i,size),%p ; mov (%p),%r */
		tv_defs(t, tv_gpr(m->base), i, &defs);
		if (depth <= 0 || defs.open || defs.n != 1 || m->disp.value ||
		    t->g->insn[defs.v[0]].flow != FLOW_NEXT || !tv_decode(t, defs.v[0], &l) ||
		    l.in.mnemonic != ZYDIS_MNEMONIC_LEA)
			return false;
		return tr_load(t, &l, &l.op[1].mem, defs.v[0], size, label, sign, r, depth - 1);
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
	if (!base.n || base.open) {
		if (idx < 0)
			return false;
		r->unbounded = true;
		if (!r->scan) /* bounded pass: leave the guessing for later */
			return true;
		guess_bases(t, size, &base);
	}
	if (max == TB_INF && !r->scan)
		return true;
	r->loose |= base.open || (label && label->open);
	if (base.open && label && label->open)
		label = NULL; /* one register is both: each guess goes with itself */
	for (uint32_t k = 0; k < base.n; k++)
		got += read_labels(t, base.v[k], size, label, sign, max, r);
	if (got)
		r->found = true;
	return got != 0 || (r->unbounded && !r->scan);
}
