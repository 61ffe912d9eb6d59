/* SPDX-License-Identifier: MIT
 *
 * sem_lift_move.c - moves, exchanges, compare-and-exchange, flag instructions
 */
#include "sem_lift_int.h"

static bool special_reg(opnd o)
{
	return is_reg(o) && gpr_of(o->reg.value) < 0;
}

/* A segment, control or debug register as destination changes what nobody here models. */
void lift_mov(struct lift *l, int arg)
{
	(void)arg;
	if (special_reg(l->arg[0])) {
		l->fail = true;
		return;
	}
	recs(l);
	if (is_gpr(l->arg[0]) && is_imm(l->arg[1]) && width(l->arg[0]) >= 4) {
		uint64_t v = (uint64_t)l->arg[1]->imm.value.s & sem_mask(width(l->arg[0]));

		put(l, SEM_IMM, 8, gpr_of(l->arg[0]->reg.value), NONE, NONE, (int64_t)v);
		return;
	}
	wr(l, l->arg[0], rd(l, l->arg[1]));
}

void lift_movzx(struct lift *l, int arg)
{
	(void)arg;
	recs(l);
	wr(l, l->arg[0], val(l, SEM_MOV, width(l->arg[1]), rd(l, l->arg[1]), NONE, 0));
}

/* movsx, movsxd */
void lift_movsx(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	uint16_t v;

	(void)arg;
	/* movsxd to 16 bits reads two bytes on Intel's processors (SDM Vol. 2: r/m16), four on AMD's */
	l->fail |= w == 2 && is_mem(l->arg[1]) && width(l->arg[1]) == 4;
	recs(l);
	v = rd(l, l->arg[1]);
	if (w == 8)
		put(l, SEM_SX, width(l->arg[1]), gpr_of(l->arg[0]->reg.value), v, NONE, 0);
	else
		wr(l, l->arg[0], val(l, SEM_SX, width(l->arg[1]), v, NONE, 0));
}

/* The segment plays no part (SDM Vol. 2, LEA). */
void lift_lea(struct lift *l, int arg)
{
	ZydisDecodedOperand o = *l->arg[1];
	struct ea e;

	(void)arg;
	o.mem.segment = ZYDIS_REGISTER_DS;
	e = ea_of(l, &o, NONE, 0);
	if (width(l->arg[0]) == 8)
		put(l, SEM_LEA, e.w, gpr_of(l->arg[0]->reg.value), e.a, e.b, e.disp);
	else
		wr(l, l->arg[0], val(l, SEM_LEA, e.w, e.a, e.b, e.disp));
}

/* A copy that survives the write of another operand. */
static uint16_t copy(struct lift *l, opnd o, uint16_t v)
{
	return is_gpr(o) ? val(l, SEM_MOV, 8, v, NONE, 0) : v;
}

void lift_xchg(struct lift *l, int arg)
{
	uint16_t a, b;

	(void)arg;
	recs(l);
	a = rd(l, l->arg[0]);
	b = rd(l, l->arg[1]);
	a = copy(l, l->arg[0], a);
	b = copy(l, l->arg[1], b);
	if (same_reg(l->arg[0], l->arg[1])) {
		wr(l, l->arg[0], b);
		return;
	}
	if (is_mem(l->arg[1])) { /* before the register, which may be part of the address */
		wr(l, l->arg[1], a);
		wr(l, l->arg[0], b);
	} else {
		wr(l, l->arg[0], b);
		wr(l, l->arg[1], a);
	}
}

void lift_xadd(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	uint16_t a, b, sum;

	(void)arg;
	recs(l);
	a = rd(l, l->arg[0]);
	b = rd(l, l->arg[1]);
	sum = val(l, SEM_ADD, w, a, b, 0);
	put(l, SEM_FC_ADD, w, SEM_FC, a, b, 0);
	put(l, SEM_FR_ADD, w, SEM_FR, a, b, 0);
	if (is_mem(l->arg[0])) { /* before the register, which may be part of the address */
		wr(l, l->arg[0], sum);
		wr(l, l->arg[1], a);
		return;
	}
	a = copy(l, l->arg[0], a);
	if (!same_reg(l->arg[0], l->arg[1]))
		wr(l, l->arg[1], a);
	wr(l, l->arg[0], sum);
}

/* rax after a failed compare: v in its low w bytes */
static uint16_t into_rax(struct lift *l, unsigned w, uint16_t v)
{
	if (w >= 4)
		return val(l, SEM_MOV, w, v, NONE, 0);
	return val(l, SEM_INS, w, SEM_RAX, v, 0);
}

/* A register destination of 32 bits or less: what happens to its upper half, and to rax's, when
 * nothing is to be written there differs between processors: unknown. */
static void cmpxchg_reg(struct lift *l, uint16_t eq, uint16_t old, uint16_t now)
{
	opnd d = l->arg[0];
	unsigned w = width(d), r = gpr_of(d->reg.value);

	if (r == SEM_RAX && !is_high(d->reg.value)) { /* always equal */
		wr(l, d, rd(l, l->arg[1]));
		return;
	}
	old = copy(l, d, old);
	if (w == 4) {
		uint16_t u = unk_val(l), m = val(l, SEM_MOV, 4, now, NONE, 0);

		put(l, SEM_SEL, 8, r, m, u, eq);
		m = val(l, SEM_MOV, 4, old, NONE, 0);
		put(l, SEM_SEL, 8, SEM_RAX, u, m, eq);
		return;
	}
	put(l, SEM_SEL, 8, SEM_RAX, SEM_RAX, into_rax(l, w, old), eq);
	wr(l, d, now);
}

void lift_cmpxchg(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	uint16_t old, src, eq, now;

	(void)arg;
	recs(l);
	old = rd(l, l->arg[0]);
	src = rd(l, l->arg[1]);
	put(l, SEM_FC_SUB, w, SEM_FC, SEM_RAX, old, 0);
	put(l, SEM_FR_SUB, w, SEM_FR, SEM_RAX, old, 0);
	eq = val(l, SEM_CMPEQ, w, SEM_RAX, old, 0);
	now = val(l, SEM_SEL, 8, src, old, eq);
	if (is_reg(l->arg[0])) {
		cmpxchg_reg(l, eq, old, now);
		return;
	}
	wr(l, l->arg[0], now);
	put(l, SEM_SEL, 8, SEM_RAX, SEM_RAX, into_rax(l, w, old), eq);
}

/* cmpxchg8b, cmpxchg16b. arg: bytes of a half */
void lift_cmpxchg8b(struct lift *l, int arg)
{
	uint16_t lo, hi, eq, t;

	recs(l);
	lo = load(l, l->arg[0], 0, arg);
	hi = load(l, l->arg[0], arg, arg);
	eq = val(l, SEM_CMPEQ, arg, SEM_RAX, lo, 0);
	eq = val(l, SEM_AND, 8, eq, val(l, SEM_CMPEQ, arg, SEM_RDX, hi, 0), 0);
	store(l, l->arg[0], 0, arg, val(l, SEM_SEL, 8, SEM_RBX, lo, eq));
	store(l, l->arg[0], arg, arg, val(l, SEM_SEL, 8, SEM_RCX, hi, eq));
	t = val(l, SEM_AND, 8, SEM_FR, NONE, ~(int64_t)SEM_ZF);
	put(l, SEM_OR, 8, SEM_FR, t, val(l, SEM_SHL, 8, eq, NONE, 6), 0);
	put(l, SEM_SEL, 8, SEM_RAX, SEM_RAX, lo, eq);
	put(l, SEM_SEL, 8, SEM_RDX, SEM_RDX, hi, eq);
}

/* arg: condition code. The source is read, and a 32-bit destination zero-extended, always. */
void lift_cmov(struct lift *l, int arg)
{
	uint16_t a, c;

	recs(l);
	a = rd(l, l->arg[1]);
	c = cond(l, arg);
	wr(l, l->arg[0], val(l, SEM_SEL, 8, a, rd(l, l->arg[0]), c));
}

void lift_setcc(struct lift *l, int arg)
{
	recs(l);
	wr(l, l->arg[0], cond(l, arg));
}

void lift_movbe(struct lift *l, int arg)
{
	uint16_t v;

	(void)arg;
	recs(l);
	v = rd(l, l->arg[1]);
	if (width(l->arg[0]) == 2)
		wr(l, l->arg[0], val(l, SEM_ROL, 2, v, NONE, 8));
	else
		wr_op(l, l->arg[0], SEM_BSWAP, v, NONE, 0);
}

/* ah = SF:ZF:0:AF:0:PF:1:CF */
void lift_lahf(struct lift *l, int arg)
{
	uint16_t t = val(l, SEM_OR, 8, SEM_FC, SEM_FR, 0);

	(void)arg;
	t = val(l, SEM_OR, 1, t, NONE, 2);
	put(l, SEM_INSH, 1, SEM_RAX, SEM_RAX, t, 0);
}

void lift_sahf(struct lift *l, int arg)
{
	uint16_t ah = val(l, SEM_EXTH, 1, SEM_RAX, NONE, 0);
	uint16_t of = val(l, SEM_AND, 8, SEM_FR, NONE, SEM_OF);

	(void)arg;
	put(l, SEM_AND, 8, SEM_FC, ah, NONE, SEM_CF);
	ah = val(l, SEM_AND, 8, ah, NONE, SEM_PF | SEM_AF | SEM_ZF | SEM_SF);
	put(l, SEM_OR, 8, SEM_FR, of, ah, 0);
}

/* clc, stc, cmc: arg 0, 1, 2 */
void lift_cf(struct lift *l, int arg)
{
	if (arg == 2)
		put(l, SEM_XOR, 8, SEM_FC, SEM_FC, NONE, 1);
	else
		put(l, SEM_IMM, 8, SEM_FC, NONE, NONE, arg);
}

/* cld, std */
void lift_df(struct lift *l, int arg)
{
	put(l, SEM_IMM, 8, SEM_DF, NONE, NONE, arg);
}

/* al = [rbx + al], al unsigned */
void lift_xlat(struct lift *l, int arg)
{
	(void)arg;
	for (int i = 0; i < l->in->operand_count; i++) {
		ZydisDecodedOperand o = l->ops[i];
		uint16_t al, a;
		struct ea e;

		if (!is_mem(&o))
			continue;
		o.mem.base = ZYDIS_REGISTER_RBX;
		o.mem.index = ZYDIS_REGISTER_NONE;
		al = val(l, SEM_MOV, 1, SEM_RAX, NONE, 0);
		e = ea_of(l, &o, al, 0);
		rec(l, &l->ops[i], e, 1, PTRACE_R);
		a = val(l, SEM_LEA, e.w, e.a, e.b, e.disp);
		wr_gpr(l, SEM_RAX, 1, val(l, SEM_LOAD, 1, a, NONE, 0));
		return;
	}
	l->fail = true;
}

/* rdfsbase, rdgsbase. arg: the register. The write forms are refused. */
void lift_fsbase(struct lift *l, int arg)
{
	wr(l, l->arg[0], arg);
}
