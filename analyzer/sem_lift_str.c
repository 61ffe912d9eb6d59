/* SPDX-License-Identifier: MIT
 *
 * sem_lift_str.c - string instructions, with and without rep
 *
 * Without rep an instruction has plain records and is exact. With rep it has one SEM_RECREP:
 *
 *   movs, stos, lods   iterations = rcx; memory it writes, and rax of lods, are unknown
 *   cmps, scas         rcx afterwards depends on memory: it is SEM_UNK in a temporary, from which
 *                      the iterations (rcx before - after), rsi and rdi follow; flags are unknown
 */
#include "sem_lift_int.h"

struct str {
	unsigned w, kind;
	bool src, dst; /* uses rsi, rdi */
	opnd os, od; /* the operands on them */
	struct ea s, d; /* their addresses */
	uint16_t step; /* w or -w, by DF */
};

static void parse(struct lift *l, struct str *s, int kind)
{
	s->kind = kind;
	s->src = kind == SEM_REP_MOVS || kind == SEM_REP_LODS || kind == SEM_REP_CMPS;
	s->dst = kind != SEM_REP_LODS;
	for (int i = 0; i < l->in->operand_count; i++) {
		opnd o = &l->ops[i];

		if (!is_mem(o))
			continue;
		s->w = width(o);
		if (gpr_of(o->mem.base) == SEM_RSI) {
			s->os = o;
			s->s = ea_of(l, o, NONE, 0);
		} else {
			s->od = o;
			s->d = ea_of(l, o, NONE, 0);
		}
	}
}

static void advance(struct lift *l, unsigned reg, uint16_t by)
{
	unsigned aw = l->in->address_width / 8;

	put(l, SEM_ADD, aw, reg, reg, by, 0);
}

static uint16_t load_at(struct lift *l, struct ea e, unsigned w)
{
	return val(l, SEM_LOAD, w, val(l, SEM_LEA, e.w, e.a, e.b, e.disp), NONE, 0);
}

static void compare(struct lift *l, unsigned w, uint16_t a, uint16_t b)
{
	put(l, SEM_FC_SUB, w, SEM_FC, a, b, 0);
	put(l, SEM_FR_SUB, w, SEM_FR, a, b, 0);
}

static void once(struct lift *l, struct str *s)
{
	bool write = s->kind == SEM_REP_MOVS || s->kind == SEM_REP_STOS;
	uint16_t a = SEM_RAX;

	if (s->src)
		rec(l, s->os, s->s, s->w, PTRACE_R);
	if (s->dst)
		rec(l, s->od, s->d, s->w, write ? PTRACE_W : PTRACE_R);
	if (s->src)
		a = load_at(l, s->s, s->w);
	if (write)
		put(l, SEM_STORE, s->w, NONE, val(l, SEM_LEA, s->d.w, s->d.a, s->d.b, s->d.disp), a, 0);
	else if (s->dst)
		compare(l, s->w, a, load_at(l, s->d, s->w));
	else
		wr_gpr(l, SEM_RAX, s->w, a);
	if (s->src)
		advance(l, SEM_RSI, s->step);
	if (s->dst)
		advance(l, SEM_RDI, s->step);
}

/* a register that holds the address: RECREP has no displacement */
static uint16_t flat(struct lift *l, bool used, struct ea e)
{
	if (!used)
		return NONE;
	return e.b == NONE && !e.disp ? e.a : val(l, SEM_LEA, e.w, e.a, e.b, e.disp);
}

static void rec_rep(struct lift *l, struct str *s, uint16_t count)
{
	struct sem_vec v = {.kind = s->kind, .count = count, .df = SEM_DF};
	uint16_t a = flat(l, s->src, s->s), b = flat(l, s->dst, s->d);
	struct sem_op slot;

	put(l, SEM_RECREP, s->w, 0, a, b, SEM_RECIMM(0, l->vaddr));
	memcpy(&slot, &v, sizeof(slot));
	put(l, slot.op, slot.w, slot.dst, slot.a, slot.b, slot.imm);
}

static void repeated(struct lift *l, struct str *s)
{
	bool search = s->kind == SEM_REP_CMPS || s->kind == SEM_REP_SCAS;
	uint16_t after = NONE, count = SEM_RCX, by;

	if (search) {
		after = unk_val(l);
		count = val(l, SEM_SUB, 8, SEM_RCX, after, 0);
	}
	rec_rep(l, s, count);
	by = val(l, SEM_MUL, 8, count, s->step, 0);
	if (search)
		flags_unk(l);
	if (s->kind == SEM_REP_LODS) {
		if (s->w >= 4)
			unk(l, SEM_RAX);
		else
			wr_gpr(l, SEM_RAX, s->w, unk_val(l));
	}
	if (s->src)
		advance(l, SEM_RSI, by);
	if (s->dst)
		advance(l, SEM_RDI, by);
	if (search)
		put(l, SEM_MOV, 8, SEM_RCX, after, NONE, 0);
	else
		put(l, SEM_IMM, 8, SEM_RCX, NONE, NONE, 0);
}

/* arg: enum sem_rep */
void lift_string(struct lift *l, int arg)
{
	bool rep =
		l->in->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
	struct str s = {.w = 0};

	if (rep && l->in->address_width != 64) {
		l->fail = true; /* addresses wrap at 4 GiB within one instruction */
		return;
	}
	parse(l, &s, arg);
	s.step = imm_val(l, s.w);
	s.step = val(l, SEM_SEL, 8, imm_val(l, -(int64_t)s.w), s.step, SEM_DF);
	if (rep)
		repeated(l, &s);
	else
		once(l, &s);
}

/* movsd and cmpsd name a string and an SSE instruction each */
void lift_movsd(struct lift *l, int arg)
{
	(void)arg;
	if (l->in->meta.category == ZYDIS_CATEGORY_STRINGOP)
		lift_string(l, SEM_REP_MOVS);
	else
		lift_movs(l, 8);
}

void lift_cmpsd(struct lift *l, int arg)
{
	(void)arg;
	if (l->in->meta.category == ZYDIS_CATEGORY_STRINGOP)
		lift_string(l, SEM_REP_CMPS);
	else
		lift_other(l, 0);
}
