/* SPDX-License-Identifier: MIT
 *
 * sem_lift_bits.c - shifts, rotates, bit tests and scans, BMI
 *
 * Undefined flags: OF of shifts and rotates by more than one, AF of shifts, and all but CF of
 * the bt family follow a fixed function (for bt: unchanged); CF of bsf and bsr is unknown.
 */
#include "sem_lift_int.h"

static unsigned count_mask(unsigned w)
{
	return w == 8 ? 63 : 31;
}

/* The count operand: SEM_NONE and the masked constant, or rcx. Nothing else encodes. */
static uint16_t count_of(struct lift *l, opnd o, unsigned w, int64_t *c)
{
	uint16_t r = rdi(l, o, c);

	*c &= count_mask(w);
	return r;
}

/* shift by zero: only the zero extension of a 32-bit register happens */
static void by_zero(struct lift *l)
{
	wr(l, l->arg[0], rd(l, l->arg[0]));
}

/* shl, shr, sar */
void lift_shift(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	unsigned k = arg - SEM_SHL; /* SHL, SHR, SAR follow each other in all three families */
	uint16_t a, b;
	int64_t c;

	recs(l);
	a = rd(l, l->arg[0]);
	b = count_of(l, l->arg[1], w, &c);
	if (b == NONE && !c) {
		by_zero(l);
		return;
	}
	if (b == NONE) {
		put(l, SEM_FC_SHL + k, w, SEM_FC, a, NONE, c << 16 | NONE);
		put(l, SEM_FR_SHL + k, w, SEM_FR, a, NONE, c << 16 | NONE);
	} else {
		put(l, SEM_FC_SHL + k, w, SEM_FC, a, b, SEM_FC);
		put(l, SEM_FR_SHL + k, w, SEM_FR, a, b, SEM_FR);
	}
	wr_op(l, l->arg[0], arg, a, b, c);
}

/* FR with OF replaced by bit 0 of t; unchanged when the masked count (if a register) is 0 */
static void set_of(struct lift *l, uint16_t t, uint16_t count, unsigned w)
{
	uint16_t keep = val(l, SEM_AND, 8, SEM_FR, NONE, ~(int64_t)SEM_OF);

	t = val(l, SEM_AND, 8, t, NONE, 1);
	t = val(l, SEM_SHL, 8, t, NONE, 11);
	if (count == NONE) {
		put(l, SEM_OR, 8, SEM_FR, keep, t, 0);
		return;
	}
	t = val(l, SEM_OR, 8, keep, t, 0);
	count = val(l, SEM_AND, 8, count, NONE, count_mask(w));
	put(l, SEM_SEL, 8, SEM_FR, t, SEM_FR, count);
}

/* OF of a rotate whose result is r (SDM Vol. 2, RCL/RCR/ROL/ROR): left: top bit ^ new carry;
 * right: exclusive or of the two top bits */
static uint16_t rot_of(struct lift *l, bool left, uint16_t r, uint16_t cf, unsigned w)
{
	uint16_t top = val(l, SEM_SHR, w, r, NONE, 8 * w - 1);

	if (left)
		return val(l, SEM_XOR, 8, top, cf, 0);
	r = val(l, SEM_SHR, w, r, NONE, 8 * w - 2);
	return val(l, SEM_XOR, 8, top, r, 0);
}

/* rol, ror */
void lift_rotate(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	bool left = arg == SEM_ROL;
	uint16_t a, b, r, cf;
	int64_t c;

	recs(l);
	a = rd(l, l->arg[0]);
	b = count_of(l, l->arg[1], w, &c);
	if (b == NONE && !c) {
		by_zero(l);
		return;
	}
	r = val(l, arg, w, a, b, c);
	if (left)
		cf = val(l, SEM_AND, 8, r, NONE, 1);
	else
		cf = val(l, SEM_SHR, w, r, NONE, 8 * w - 1);
	set_of(l, rot_of(l, left, r, cf, w), b, w);
	if (b == NONE) {
		put(l, SEM_MOV, 8, SEM_FC, cf, NONE, 0);
	} else {
		uint16_t m = val(l, SEM_AND, 8, b, NONE, count_mask(w));

		put(l, SEM_SEL, 8, SEM_FC, cf, SEM_FC, m);
	}
	wr(l, l->arg[0], r);
}

/* rcl, rcr */
void lift_rcx(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	bool left = arg == SEM_RCL;
	uint16_t a, b, r, cf;
	int64_t c;

	recs(l);
	a = rd(l, l->arg[0]);
	b = count_of(l, l->arg[1], w, &c);
	if (b == NONE && !c) {
		by_zero(l);
		return;
	}
	r = val(l, arg, w, a, b, c << 16 | SEM_FC);
	cf = val(l, left ? SEM_FC_RCL : SEM_FC_RCR, w, a, b, c << 16 | SEM_FC);
	set_of(l, rot_of(l, left, r, cf, w), b, w);
	put(l, SEM_MOV, 8, SEM_FC, cf, NONE, 0);
	wr(l, l->arg[0], r);
}

/* shld, shrd. 16-bit ones are undefined for counts above 16: unknown altogether. */
void lift_shld(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	unsigned fc = arg == SEM_SHLD ? SEM_FC_SHL : SEM_FC_SHR;
	uint16_t a, b, n, r, t;
	int64_t c;

	recs(l);
	a = rd(l, l->arg[0]);
	b = rd(l, l->arg[1]);
	n = count_of(l, l->arg[2], w, &c);
	if (w == 2) {
		flags_unk(l);
		wr(l, l->arg[0], unk_val(l));
		return;
	}
	if (n == NONE && !c) {
		by_zero(l);
		return;
	}
	if (n == NONE)
		n = imm_val(l, c);
	r = val(l, arg, w, a, b, n);
	/* OF, for a count of 1: the sign changed */
	t = val(l, SEM_XOR, w, a, r, 0);
	t = val(l, SEM_SHR, w, t, NONE, 8 * w - 1);
	t = val(l, SEM_SHL, 8, t, NONE, 11);
	t = val(l, SEM_OR, 8, t, val(l, SEM_FR_LOGIC, w, r, NONE, 0), 0);
	put(l, SEM_SEL, 8, SEM_FR, t, SEM_FR, val(l, SEM_AND, 8, n, NONE, count_mask(w)));
	put(l, fc, w, SEM_FC, a, n, SEM_FC);
	wr(l, l->arg[0], r);
}

/* shlx, shrx, sarx, rorx: no flags */
void lift_shiftx(struct lift *l, int arg)
{
	uint16_t a, b;
	int64_t c;

	recs(l);
	a = rd(l, l->arg[1]);
	b = rdi(l, l->arg[2], &c);
	wr_op(l, l->arg[0], arg, a, b, c);
}

/* Memory with a register bit offset: the access is at the selected w-byte unit. */
static void bt_address(struct lift *l, opnd o, uint16_t bit, int write)
{
	unsigned w = width(o), bits = __builtin_ctz(8 * w);
	uint16_t unit = val(l, SEM_SX, w, bit, NONE, 0);
	struct ea e;

	unit = val(l, SEM_SAR, 8, unit, NONE, bits);
	e = ea_of(l, o, unit, bits - 3);
	rec(l, NULL, e, w, PTRACE_R);
	if (write)
		rec(l, NULL, e, w, PTRACE_W);
	set_at(l, o, e);
}

/* bt, bts, btr, btc. arg: 0, SEM_OR, SEM_AND, SEM_XOR */
void lift_bt(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	uint16_t a, b, m;
	int64_t c;

	b = rdi(l, l->arg[1], &c);
	if (is_mem(l->arg[0]) && b != NONE)
		bt_address(l, l->arg[0], b, arg);
	else
		recs(l);
	a = rd(l, l->arg[0]);
	put(l, SEM_FC_BT, w, SEM_FC, a, b, c);
	if (!arg)
		return;
	if (b == NONE) {
		m = imm_val(l, (int64_t)(1ull << (c & (8 * w - 1))));
	} else {
		b = val(l, SEM_AND, 8, b, NONE, 8 * w - 1);
		m = val(l, SEM_SHL, 8, imm_val(l, 1), b, 0);
	}
	if (arg == SEM_AND)
		m = val(l, SEM_NOT, 8, m, NONE, 0);
	wr_op(l, l->arg[0], arg, a, m, 0);
}

/* bsf, bsr. A zero source leaves the destination alone, upper half included (AMD64 APM Vol. 3;
 * SDM Vol. 2 since 2023). */
void lift_scan(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	unsigned d = gpr_of(l->arg[0]->reg.value);
	uint16_t b, r;

	recs(l);
	b = rd(l, l->arg[1]);
	r = val(l, arg, w, d, b, 0);
	unk(l, SEM_FC);
	put(l, SEM_FR_Z, w, SEM_FR, b, NONE, 0);
	if (w == 4)
		put(l, SEM_SEL, 8, d, r, d, val(l, SEM_FC_NZ, w, b, NONE, 0));
	else
		wr_gpr(l, d, w, r);
}

/* tzcnt, lzcnt, popcnt */
void lift_count(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	uint16_t b, r;

	if (l->cpu && ((arg == SEM_TZCNT && l->cpu->no_bmi1) || (arg == SEM_LZCNT && l->cpu->no_lzcnt))) {
		lift_scan(l, arg == SEM_TZCNT ? SEM_BSF : SEM_BSR);
		return;
	}
	recs(l);
	b = rd(l, l->arg[1]);
	r = val(l, arg, w, b, NONE, 0);
	if (arg == SEM_POPCNT)
		put(l, SEM_IMM, 8, SEM_FC, NONE, NONE, 0);
	else
		put(l, SEM_FC_NZ, w, SEM_FC, b, NONE, 1);
	put(l, SEM_FR_Z, w, SEM_FR, r, NONE, 0);
	wr(l, l->arg[0], r);
}

/* blsr: a & (a - 1); blsmsk: a ^ (a - 1); blsi: a & -a. arg: SEM_AND, SEM_XOR, SEM_NEG */
void lift_bls(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	uint16_t a, r;

	recs(l);
	a = rd(l, l->arg[1]);
	if (arg == SEM_NEG)
		r = val(l, SEM_NEG, w, a, NONE, 0);
	else
		r = val(l, SEM_SUB, w, a, NONE, 1);
	r = val(l, arg == SEM_XOR ? SEM_XOR : SEM_AND, w, a, r, 0);
	put(l, SEM_FC_NZ, w, SEM_FC, a, NONE, arg == SEM_NEG ? 0 : 1);
	put(l, SEM_FR_LOGIC, w, SEM_FR, r, NONE, 0);
	wr(l, l->arg[0], r);
}

void lift_andn(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	uint16_t a, b, r;

	(void)arg;
	recs(l);
	a = val(l, SEM_NOT, w, rd(l, l->arg[1]), NONE, 0);
	b = rd(l, l->arg[2]);
	r = val(l, SEM_AND, w, a, b, 0);
	put(l, SEM_IMM, 8, SEM_FC, NONE, NONE, 0);
	put(l, SEM_FR_LOGIC, w, SEM_FR, r, NONE, 0);
	wr(l, l->arg[0], r);
}

void lift_bextr(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	uint16_t a, b, r;
	int64_t imm;

	(void)arg;
	recs(l);
	a = rd(l, l->arg[1]);
	b = rdi(l, l->arg[2], &imm);
	r = val(l, SEM_BEXTR, w, a, b, imm);
	put(l, SEM_IMM, 8, SEM_FC, NONE, NONE, 0);
	put(l, SEM_FR_Z, w, SEM_FR, r, NONE, 0);
	wr(l, l->arg[0], r);
}

void lift_bzhi(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	uint16_t a, b, r;

	(void)arg;
	recs(l);
	a = rd(l, l->arg[1]);
	b = rd(l, l->arg[2]);
	r = val(l, SEM_BZHI, w, a, b, 0);
	/* CF: the index is beyond the last bit */
	put(l, SEM_FC_SUB, 1, SEM_FC, imm_val(l, 8 * w - 1), b, 0);
	put(l, SEM_FR_LOGIC, w, SEM_FR, r, NONE, 0);
	wr(l, l->arg[0], r);
}

/* pext, pdep */
void lift_pext(struct lift *l, int arg)
{
	uint16_t a, b;

	recs(l);
	a = rd(l, l->arg[1]);
	b = rd(l, l->arg[2]);
	wr_op(l, l->arg[0], arg, a, b, 0);
}

/* 16 bits: undefined (SDM Vol. 2, BSWAP) */
void lift_bswap(struct lift *l, int arg)
{
	(void)arg;
	if (width(l->arg[0]) == 2)
		wr(l, l->arg[0], unk_val(l));
	else
		wr_op(l, l->arg[0], SEM_BSWAP, rd(l, l->arg[0]), NONE, 0);
}
