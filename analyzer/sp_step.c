/* SPDX-License-Identifier: MIT
 *
 * sp_step.c - what ops do to the values of the frame analysis
 *
 * What keeps the stack private: its addresses are only ever moved between registers, offset by
 * constants, aligned, compared, and used as the base of an access without an index. Any other
 * use sets sp->escape, and then no slot of the group is forwarded.
 */
#include "sp.h"

static const struct av other = {AV_OTHER, 0, 0}, taint = {AV_TAINT, 0, 0};

static struct av get(struct sp *sp, unsigned reg)
{
	if (reg == SEM_NONE)
		return (struct av){AV_IMM, 0, 0};
	return reg < 64 ? sp->t[reg] : other;
}

static struct av offset(struct av a, int64_t c)
{
	int64_t v = a.c + c;

	if (a.k < AV_ALIGN)
		return a;
	if (v != (int32_t)v)
		return av_stack(a) ? taint : other;
	a.c = (int32_t)v;
	return a;
}

/* before what the slot (base, off) is, or would be: saves are kept in the order of base and offset */
static int place(const struct sp_state *s, uint8_t base, int32_t off)
{
	int i = 0;

	while (i < s->nsave && sp_before(&s->save[i], base, off))
		i++;
	return i;
}

static struct sp_save *find(struct sp_state *s, uint8_t base, int32_t off)
{
	int i = place(s, base, off);

	return i < s->nsave && s->save[i].base == base && s->save[i].off == off ? &s->save[i] : NULL;
}

static void forget(struct sp_state *s, uint8_t base, int32_t off, int32_t size)
{
	int i = place(s, base, off - 7), j = i; /* a save has eight bytes */

	while (j < s->nsave && s->save[j].base == base && s->save[j].off < off + size)
		j++;
	if (i == j)
		return;
	memmove(&s->save[i], &s->save[j], (size_t)(s->nsave - j) * sizeof(*s->save));
	s->nsave -= (uint8_t)(j - i);
}

static void keep(struct sp_state *s, uint8_t base, int32_t off, struct av v)
{
	int i = place(s, base, off);

	memmove(&s->save[i + 1], &s->save[i], (size_t)(s->nsave - i) * sizeof(*s->save));
	memset(&s->save[i], 0, sizeof(*s->save)); /* padding is compared, too */
	s->save[i].off = off;
	s->save[i].base = base;
	s->save[i].v = v;
	s->nsave++;
}

/* realign - `and $-n,%rsp`: a new origin; what was relative to an earlier one is lost */
static struct av realign(struct sp *sp, struct sp_state *s)
{
	for (int i = 0; i < SEM_NGPR; i++)
		if (sp->t[i].k == AV_ALIGN)
			sp->t[i] = taint;
	int n = 0;

	for (int i = 0; i < s->nsave; i++)
		if (s->save[i].base == SP_ALIGN || s->save[i].v.k == AV_ALIGN)
			sp->escape |= av_stack(s->save[i].v);
		else
			s->save[n++] = s->save[i];
	s->nsave = (uint8_t)n;
	return (struct av){AV_ALIGN, 0, 0};
}

/* note_frame - an access to the frame, for the later passes. The last visit's note stands (sp_notes). */
static void note_frame(struct sp *sp, uint32_t k, struct av a)
{
	struct gr_note *n = &sp->gr->note[k];

	n->flags |= GN_STACK;
	n->base = av_base(a);
	n->off = a.c;
}

/* note_const - a load from the module, perhaps, until sp_notes looks closer */
static void note_const(struct sp *sp, uint32_t k, struct av a)
{
	struct gr_note *n = &sp->gr->note[k];

	n->base = a.k;
	n->idx = a.r;
	n->off = a.c;
}

/* does a load take part of a stack address kept in the frame? */
static bool part_of_stack(const struct sp_state *s, struct av a, int w)
{
	uint8_t base = av_base(a);

	for (int i = 0; i < s->nsave; i++)
		if (av_stack(s->save[i].v) &&
		    (s->save[i].base != base || (s->save[i].off < a.c + w && a.c < s->save[i].off + 8)))
			return true;
	return false;
}

/* Op k loads v from the stack: does a pop (lift_pop: load, rsp, register) put it where a callee-saved register's own value
 * belongs, and it is that of another one? */
static bool mispop(const struct gr *gr, uint32_t k, struct av v)
{
	const struct sem_op *op = &gr->op[k], *to = op + 2;

	if (!av_entry(v) || !((GR_CALLEE_SAVED | 1u << SEM_RSP) >> v.r & 1) || op->a != SEM_RSP || op->imm)
		return false;
	if (k + 2 >= gr->nop || op[1].dst != SEM_RSP || to->op != SEM_MOV || to->a != op->dst)
		return false;
	return to->dst < SEM_NGPR && (GR_CALLEE_SAVED >> to->dst & 1) && v.r != to->dst;
}

static struct av do_load(struct sp *sp, struct sp_state *s, uint32_t k)
{
	const struct sem_op *op = &sp->gr->op[k];
	struct av a = offset(get(sp, op->a), op->imm);
	struct sp_save *sv;

	if (av_frame(a)) {
		note_frame(sp, k, a);
		sv = find(s, av_base(a), a.c);
		if (sv && op->w == 8) {
			if (mispop(sp->gr, k, sv->v))
				sp->saw |= SP_MISPOP;
			return sv->v;
		}
		if (part_of_stack(s, a, op->w)) {
			sp->escape = true;
			return taint;
		}
		return other;
	}
	if (a.k == AV_TAINT)
		sp->escape = true;
	note_const(sp, k, a);
	return other;
}

static void do_store(struct sp *sp, struct sp_state *s, uint32_t k)
{
	const struct sem_op *op = &sp->gr->op[k];
	struct av a = offset(get(sp, op->a), op->imm), v = get(sp, op->b);
	uint8_t base = av_base(a);

	if (!av_frame(a)) {
		if (a.k == AV_TAINT || av_stack(v))
			sp->escape = true;
		return;
	}
	note_frame(sp, k, a);
	forget(s, base, a.c, op->w);
	if (av_stack(v)) /* kept in the frame: followed only while the slot is a tracked save */
		sp->escape |= v.k == AV_TAINT || op->w != 8 || s->nsave == SP_NSAVE;
	if (op->w != 8 || v.k < AV_ALIGN || s->nsave == SP_NSAVE)
		return;
	if (v.k >= AV_MOD) {
		sp->saw |= SP_KEPT;
		if (sp->nokeep)
			return;
	}
	keep(s, base, a.c, v);
}

static void do_rec(struct sp *sp, struct sp_state *s, uint32_t k)
{
	const struct sem_op *op = &sp->gr->op[k];
	struct av a = offset(get(sp, op->a), SEM_REC_DISP(op->imm)), x = get(sp, op->b);
	int32_t size = SEM_REC_SIZE(op->dst);

	if (op->b != SEM_NONE && (av_stack(a) || av_stack(x))) {
		sp->escape = true; /* an array in the frame; it does not reach saved registers */
		return;
	}
	if (a.k == AV_TAINT)
		sp->escape = true;
	if (!av_frame(a))
		return;
	note_frame(sp, k, a);
	if (SEM_REC_KIND(op->dst) != 1)
		return;
	forget(s, av_base(a), a.c, size);
	if (a.k == AV_FRAME && a.c < 8 && a.c + size > 0)
		sp->retslot = true;
}

/* ops with a second slot touch memory in ways that are not followed */
static void do_group(struct sp *sp, uint32_t k)
{
	const struct sem_op *op = &sp->gr->op[k];

	if (av_stack(get(sp, op->a)) || (op->b != SEM_NONE && av_stack(get(sp, op->b))))
		sp->escape = true;
}

static struct av do_lea(struct sp *sp, uint32_t k)
{
	const struct sem_op *op = &sp->gr->op[k];
	struct av a = get(sp, op->a), b = get(sp, op->b);

	if (op->b == SEM_NONE)
		return offset(a, op->imm);
	if (op->a == SEM_NONE && op->w == 0)
		return offset(b, op->imm);
	if (b.k == AV_IMM)
		return offset(a, op->imm + (int64_t)((uint64_t)b.c << op->w));
	if (a.k == AV_IMM && op->w == 0)
		return offset(b, op->imm + a.c);
	if (av_stack(a) || av_stack(b)) {
		sp->escape = true;
		return taint;
	}
	if (a.k == AV_MOD && b.k == AV_OTHER)
		return (struct av){AV_IDX, sp->gr->note[k].idx, (int32_t)(a.c + op->imm)};
	if (b.k == AV_MOD && op->w == 0 && a.k == AV_OTHER)
		return (struct av){AV_IDX, 0, (int32_t)(b.c + op->imm)};
	if (a.k == AV_IMM && !sp->gr->m->pie)
		return (struct av){AV_IDX, sp->gr->note[k].idx, (int32_t)(a.c + op->imm)};
	return other;
}

static struct av do_addsub(struct sp *sp, const struct sem_op *op)
{
	struct av a = get(sp, op->a), b = get(sp, op->b);
	int64_t c = op->b == SEM_NONE ? op->imm : b.c;

	if (op->w == 8 && (op->b == SEM_NONE || b.k == AV_IMM))
		return offset(a, op->op == SEM_ADD ? c : -c);
	if (op->w == 8 && op->op == SEM_ADD && a.k == AV_IMM)
		return offset(b, a.c);
	if (av_stack(a) || av_stack(b)) {
		sp->escape = true;
		return taint;
	}
	return other;
}

static bool on_stack(const struct sp *sp, unsigned reg)
{
	return reg < 64 && av_stack(sp->t[reg]);
}

/* the result of what is not followed: operands in a, b, and where imm names one */
static struct av do_value(struct sp *sp, uint32_t k)
{
	const struct sem_op *op = &sp->gr->op[k];

	if (!on_stack(sp, op->a) && !on_stack(sp, op->b) && !on_stack(sp, sp->gr->note[k].third))
		return other;
	sp->escape = true;
	return taint;
}

static void assign(struct sp *sp, unsigned reg, struct av v)
{
	if (reg < SEM_NGPR || (reg >= SEM_T0 && reg < 64))
		sp->t[reg] = v;
	else if (reg >= 64 && av_stack(v))
		sp->escape = true;
}

void sp_ops(struct sp *sp, struct sp_state *s, uint32_t bi)
{
	struct gr *gr = sp->gr;
	const struct an_block *b = &gr->g->block[bi];
	uint32_t end = gr->in[b->first + b->n].op;

	for (uint32_t k = gr->in [b->first].op; k < end; k++) {
		const struct sem_op *op = &gr->op[k];
		struct gr_note *n = &gr->note[k];

		switch (n->kind) {
		case GK_STORE:
			n->flags &= (uint16_t)~GN_STACK;
			do_store(sp, s, k);
			break;
		case GK_REC:
			n->flags &= (uint16_t)~GN_STACK;
			do_rec(sp, s, k);
			break;
		case GK_GROUP:
			do_group(sp, k);
			break;
		case GK_LOAD:
			n->flags &= (uint16_t)~GN_STACK;
			assign(sp, op->dst, do_load(sp, s, k));
			break;
		case GK_IMM:
			assign(sp, op->dst,
			       op->imm == (int32_t)op->imm ? (struct av){AV_IMM, 0, (int32_t)op->imm}
							   : other);
			break;
		case GK_MODADDR:
			assign(sp, op->dst, (struct av){AV_MOD, 0, (int32_t)op->imm});
			break;
		case GK_COPY:
			assign(sp, op->dst, get(sp, op->a));
			break;
		case GK_LEA:
			assign(sp, op->dst, do_lea(sp, k));
			break;
		case GK_SUM:
			assign(sp, op->dst, do_addsub(sp, op));
			break;
		case GK_ALIGN:
			assign(sp, op->dst, av_frame(sp->t[SEM_RSP]) ? realign(sp, s) : do_value(sp, k));
			break;
		case GK_VALUE:
			assign(sp, op->dst, do_value(sp, k));
			break;
		}
	}
}

/* ---- what the notes come to, when no block changes any more ---- */

/* number of the slot (base, off, w), made on first sight; GR_NOSLOT when there are too many */
static uint8_t slot(struct gr *gr, uint8_t base, int32_t off, uint8_t w)
{
	for (uint32_t i = 0; i < gr->nslot; i++)
		if (gr->slot[i].base == base && gr->slot[i].off == off && gr->slot[i].w == w)
			return (uint8_t)i;
	if (gr->nslot == GR_NSLOT)
		return GR_NOSLOT;
	gr->slot[gr->nslot] = (struct gr_slot){off, base, w};
	return (uint8_t)gr->nslot++;
}

/* the most that an index with these bounds adds */
static uint64_t span(uint8_t idx)
{
	return ((1ull << GR_IDX_BITS(idx)) - 1) << GR_IDX_SCALE(idx);
}

/* a load from the module: read-only bytes at a constant address, or an entry of the exact table of the jump
 * that ends this block (its index was checked by whoever got here) */
static bool never_changes(const struct gr *gr, const struct an_block *b, uint32_t k)
{
	const struct gr_note *n = &gr->note[k];
	uint8_t w = gr->op[k].w;

	if (n->base == AV_MOD || (n->base == AV_IMM && !gr->m->pie))
		return elf_ro(gr->m, (uint32_t)n->off, w);
	if (n->base != AV_IDX)
		return false;
	if (n->idx && elf_ro(gr->m, (uint32_t)n->off, span(n->idx) + w))
		return true;
	if (b->table != AN_NONE) {
		const struct an_table *t = &gr->g->table[b->table];

		return t->exact && t->vaddr == (uint32_t)n->off && t->entry_size == w &&
		       elf_ro(gr->m, t->vaddr, t->entry_size);
	}
	return false;
}

void sp_notes(struct sp *sp)
{
	struct gr *gr = sp->gr;

	for (const struct an_block *b = gr->g->block; b < gr->g->block + gr->g->nblock; b++) {
		uint32_t end = gr->in[b->first + b->n].op;

		for (uint32_t k = gr->in [b->first].op; k < end; k++) {
			struct gr_note *n = &gr->note[k];
			uint8_t w = gr->op[k].w;

			if (n->kind != GK_LOAD && n->kind != GK_STORE)
				continue;
			if (!(n->flags & GN_STACK)) {
				if (n->kind == GK_LOAD && never_changes(gr, b, k))
					n->flags |= GN_RO;
			} else if (n->base == SP_ALIGN || n->off + w <= 0) {
				/* own frame only: incoming arguments are not */
				n->slot = slot(gr, n->base, n->off, w);
			}
		}
	}
}
