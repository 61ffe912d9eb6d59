/* SPDX-License-Identifier: MIT
 *
 * sem_lift_lane.c - vector operations that work on 64-bit lanes, and AVX-512 mask registers
 *
 * Only what carries pointers, or makes constants, is worth modelling: logic, 64-bit adds,
 * shuffles of double words (how compilers extract the high half), zero and all-ones idioms, and
 * the tests that loops of string functions branch on.
 */
#include "sem_lift_int.h"

static bool vec_dst(struct lift *l)
{
	if (is_vec(l->arg[0]))
		return true;
	lift_other(l, 0);
	return false;
}

/* Logic and 64-bit arithmetic. arg: op; SEM_NOT stands for ~a & b. */
void lift_lane(struct lift *l, int arg)
{
	opnd d = l->arg[0], a = l->arg[l->narg - 2], b = l->arg[l->narg - 1];
	unsigned n;

	if (!vec_dst(l))
		return;
	if (same_reg(a, b) && (arg == SEM_XOR || arg == SEM_SUB || arg == SEM_NOT)) {
		fill(l, d, 0);
		return;
	}
	recs(l);
	n = lanes(d);
	for (unsigned i = 0; i < n; i++) {
		uint16_t x = lane(l, a, i), y = lane(l, b, i);

		if (arg == SEM_NOT)
			x = val(l, SEM_NOT, 8, x, NONE, 0);
		put(l, arg == SEM_NOT ? SEM_AND : arg, 8, SEM_V(reg_id(d), i), x, y, 0);
	}
	upper(l, d, n);
}

/* r op r gives a constant (arg) in every element */
void lift_same(struct lift *l, int arg)
{
	if (is_vec(l->arg[0]) && same_reg(l->arg[l->narg - 2], l->arg[l->narg - 1]))
		fill(l, l->arg[0], arg);
	else
		lift_other(l, 0);
}

/* constant truth tables */
void lift_ternlog(struct lift *l, int arg)
{
	unsigned table = l->arg[3]->imm.value.u & 0xff;

	(void)arg;
	if (is_reg(l->arg[2]) && (table == 0 || table == 0xff))
		fill(l, l->arg[0], table ? -1 : 0);
	else
		lift_other(l, 0);
}

/* double word k of the two lanes v, moved to the low (hi == 0) or high half */
static uint16_t dword(struct lift *l, const uint16_t v[2], unsigned k, bool hi)
{
	uint16_t x = v[k / 2];

	if (hi)
		return k & 1 ? val(l, SEM_AND, 8, x, NONE, (int64_t)0xffffffff00000000)
			     : val(l, SEM_SHL, 8, x, NONE, 32);
	return k & 1 ? val(l, SEM_SHR, 8, x, NONE, 32) : val(l, SEM_MOV, 4, x, NONE, 0);
}

void lift_pshufd(struct lift *l, int arg)
{
	opnd d = l->arg[0], s = l->arg[1];
	unsigned n = lanes(d), sel = l->arg[2]->imm.value.u;
	uint16_t r[8], v[2];

	(void)arg;
	recs(l);
	for (unsigned i = 0; i < n; i++) {
		unsigned lo = sel >> (i & 1) * 4 & 3, hi = sel >> ((i & 1) * 4 + 2) & 3;
		uint16_t x;

		if (i % 2 == 0) {
			v[0] = lane(l, s, i);
			v[1] = lane(l, s, i + 1);
		}
		x = dword(l, v, lo, false);
		r[i] = val(l, SEM_OR, 8, x, dword(l, v, hi, true), 0);
	}
	for (unsigned i = 0; i < n; i++)
		set_lane(l, d, i, r[i]);
	upper(l, d, n);
}

/* 128 bits shifted by whole bytes: new value of one lane from `near` (itself) and `far`, the lane
 * that bits come from */
static uint16_t shift_lane(struct lift *l, int op, uint16_t near, uint16_t far, unsigned bits, bool first)
{
	int back = op == SEM_SHL ? SEM_SHR : SEM_SHL;
	uint16_t t;

	if (first) /* nothing comes in */
		return bits < 64 ? val(l, op, 8, near, NONE, bits) : imm_val(l, 0);
	if (bits >= 64)
		return bits < 128 ? val(l, op, 8, far, NONE, bits - 64) : imm_val(l, 0);
	t = val(l, op, 8, near, NONE, bits);
	return bits ? val(l, SEM_OR, 8, t, val(l, back, 8, far, NONE, 64 - bits), 0) : t;
}

/* pslldq, psrldq. arg: SEM_SHL, SEM_SHR */
void lift_pslldq(struct lift *l, int arg)
{
	opnd d = l->arg[0], s = l->arg[l->narg - 2];
	unsigned n = lanes(d), bytes = l->arg[l->narg - 1]->imm.value.u & 0xff;
	unsigned bits = (bytes > 16 ? 16 : bytes) * 8, first = arg == SEM_SHL ? 0 : 1;

	recs(l);
	for (unsigned i = 0; i < n; i += 2) {
		uint16_t v[2] = {lane(l, s, i), lane(l, s, i + 1)};
		uint16_t a = shift_lane(l, arg, v[first], NONE, bits, true);
		uint16_t b = shift_lane(l, arg, v[!first], v[first], bits, false);

		set_lane(l, d, i + first, a);
		set_lane(l, d, i + !first, b);
	}
	upper(l, d, n);
}

/* ZF: a & b == 0; CF: ~a & b == 0; the others 0 */
void lift_ptest(struct lift *l, int arg)
{
	opnd a = l->arg[0], b = l->arg[1];
	unsigned n = lanes(a);
	uint16_t z = NONE, c = NONE;

	(void)arg;
	recs(l);
	for (unsigned i = 0; i < n; i++) {
		uint16_t x = lane(l, a, i), y = lane(l, b, i);
		uint16_t t = val(l, SEM_AND, 8, x, y, 0), u = val(l, SEM_NOT, 8, x, NONE, 0);

		u = val(l, SEM_AND, 8, u, y, 0);
		z = i ? val(l, SEM_OR, 8, z, t, 0) : t;
		c = i ? val(l, SEM_OR, 8, c, u, 0) : u;
	}
	put(l, SEM_FC_NZ, 8, SEM_FC, c, NONE, 1);
	put(l, SEM_FR_Z, 8, SEM_FR, z, NONE, 0);
}

static uint16_t kval(opnd o)
{
	return SEM_K0 + reg_id(o);
}

/* arg: bytes */
void lift_kmov(struct lift *l, int arg)
{
	opnd d = l->arg[0], s = l->arg[1];
	uint16_t v;

	recs(l);
	if (is_mem(s))
		v = load(l, s, 0, arg);
	else
		v = is_kreg(s) ? kval(s) : rd(l, s);
	if (is_mem(d))
		store(l, d, 0, arg, v);
	else
		put(l, SEM_MOV, arg, is_kreg(d) ? kval(d) : gpr_of(d->reg.value), v, NONE, 0);
}

void lift_klogic(struct lift *l, int arg)
{
	unsigned w = arg & 15, op = arg >> 4;
	opnd a = l->arg[1], b = l->arg[l->narg - 1];
	uint16_t d = kval(l->arg[0]), t;

	if (op == SEM_NOT) {
		put(l, SEM_NOT, w, d, kval(a), NONE, 0);
	} else if (op == KLOGIC_ANDN) {
		t = val(l, SEM_NOT, w, kval(a), NONE, 0);
		put(l, SEM_AND, w, d, t, kval(b), 0);
	} else if (same_reg(a, b) && (op == SEM_XOR || op == KLOGIC_XNOR)) {
		put(l, SEM_IMM, 8, d, NONE, NONE, op == SEM_XOR ? 0 : (int64_t)sem_mask(w));
	} else if (op == KLOGIC_XNOR) {
		t = val(l, SEM_XOR, w, kval(a), kval(b), 0);
		put(l, SEM_NOT, w, d, t, NONE, 0);
	} else {
		put(l, op, w, d, kval(a), kval(b), 0);
	}
}

/* kortest: ZF: a | b == 0, CF: a | b all ones; ktest: ZF: a & b == 0, CF: ~a & b == 0 */
void lift_ktest(struct lift *l, int arg)
{
	unsigned w = arg & 15, op = arg >> 4;
	uint16_t a = kval(l->arg[0]), b = kval(l->arg[1]), t = val(l, op, w, a, b, 0), u;

	if (op == SEM_OR) {
		put(l, SEM_CMPEQ, w, SEM_FC, t, NONE, -1);
	} else {
		u = val(l, SEM_NOT, w, a, NONE, 0);
		u = val(l, SEM_AND, w, u, b, 0);
		put(l, SEM_FC_NZ, w, SEM_FC, u, NONE, 1);
	}
	put(l, SEM_FR_Z, w, SEM_FR, t, NONE, 0);
}
