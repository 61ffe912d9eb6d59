/* SPDX-License-Identifier: MIT
 *
 * sem_lift_arith.c - arithmetic, logic, multiplication, division
 *
 * Flags are computed before the destination is written, because they read the sources.
 * Undefined flags: AF of logic is 0; SF, ZF, AF, PF of a multiplication are 0; all flags of a
 * division are unknown.
 */
#include "sem_lift_int.h"

enum { ZERO_FLAGS = SEM_PF | SEM_ZF };

/* xor r,r and sub r,r do not depend on r */
static void zero(struct lift *l, bool write)
{
	put(l, SEM_IMM, 8, SEM_FC, NONE, NONE, 0);
	put(l, SEM_IMM, 8, SEM_FR, NONE, NONE, ZERO_FLAGS);
	if (write)
		wr(l, l->arg[0], imm_val(l, 0));
}

/* add, sub, cmp. arg: op, 0 for cmp */
void lift_arith(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	bool add = arg == SEM_ADD;
	uint16_t a, b;
	int64_t imm;

	if (!add && same_reg(l->arg[0], l->arg[1])) {
		zero(l, arg);
		return;
	}
	recs(l);
	a = rd(l, l->arg[0]);
	b = rdi(l, l->arg[1], &imm);
	put(l, add ? SEM_FC_ADD : SEM_FC_SUB, w, SEM_FC, a, b, imm);
	put(l, add ? SEM_FR_ADD : SEM_FR_SUB, w, SEM_FR, a, b, imm);
	if (arg)
		wr_op(l, l->arg[0], arg, a, b, imm);
}

/* and, or, xor, test. arg: op, 0 for test */
void lift_logic(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	uint16_t a, b, r;
	int64_t imm;

	if (arg == SEM_XOR && same_reg(l->arg[0], l->arg[1])) {
		zero(l, true);
		return;
	}
	recs(l);
	a = rd(l, l->arg[0]);
	b = rdi(l, l->arg[1], &imm);
	if (arg != SEM_XOR && same_reg(l->arg[0], l->arg[1]))
		r = a;
	else
		r = val(l, arg ? arg : SEM_AND, w, a, b, imm);
	put(l, SEM_IMM, 8, SEM_FC, NONE, NONE, 0);
	put(l, SEM_FR_LOGIC, w, SEM_FR, r, NONE, 0);
	if (arg)
		wr(l, l->arg[0], r);
}

void lift_incdec(struct lift *l, int arg)
{
	uint16_t a;

	recs(l);
	a = rd(l, l->arg[0]);
	put(l, arg == SEM_ADD ? SEM_FR_INC : SEM_FR_DEC, width(l->arg[0]), SEM_FR, a, NONE, 0);
	wr_op(l, l->arg[0], arg, a, NONE, 1);
}

void lift_neg(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	uint16_t a;

	(void)arg;
	recs(l);
	a = rd(l, l->arg[0]);
	put(l, SEM_FC_NZ, w, SEM_FC, a, NONE, 0);
	put(l, SEM_FR_SUB, w, SEM_FR, imm_val(l, 0), a, 0);
	wr_op(l, l->arg[0], SEM_NEG, a, NONE, 0);
}

void lift_not(struct lift *l, int arg)
{
	(void)arg;
	recs(l);
	wr_op(l, l->arg[0], SEM_NOT, rd(l, l->arg[0]), NONE, 0);
}

/* adc, sbb */
void lift_carry(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	bool add = arg == SEM_ADD;
	uint16_t a, b, r, fc;

	if (!add && same_reg(l->arg[0], l->arg[1])) { /* -CF; CF stays */
		a = imm_val(l, 0);
		put(l, SEM_FR_SBB, w, SEM_FR, a, a, SEM_FC);
		wr_op(l, l->arg[0], SEM_NEG, SEM_FC, NONE, 0);
		return;
	}
	recs(l);
	a = rd(l, l->arg[0]);
	b = rd(l, l->arg[1]);
	r = val(l, arg, w, a, b, 0);
	r = val(l, arg, w, r, SEM_FC, 0);
	fc = val(l, add ? SEM_FC_ADC : SEM_FC_SBB, w, a, b, SEM_FC);
	put(l, add ? SEM_FR_ADC : SEM_FR_SBB, w, SEM_FR, a, b, SEM_FC);
	put(l, SEM_MOV, 8, SEM_FC, fc, NONE, 0);
	wr(l, l->arg[0], r);
}

/* adcx uses CF alone, adox OF alone. arg: the flag */
void lift_adx(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	uint16_t a, b, c, r, out;

	recs(l);
	a = rd(l, l->arg[0]);
	b = rd(l, l->arg[1]);
	c = SEM_FC;
	if (arg == SEM_OF)
		c = val(l, SEM_AND, 8, val(l, SEM_SHR, 8, SEM_FR, NONE, 11), NONE, 1);
	r = val(l, SEM_ADD, w, val(l, SEM_ADD, w, a, b, 0), c, 0);
	out = val(l, SEM_FC_ADC, w, a, b, c);
	if (arg == SEM_CF) {
		put(l, SEM_MOV, 8, SEM_FC, out, NONE, 0);
	} else {
		out = val(l, SEM_SHL, 8, out, NONE, 11);
		put(l, SEM_OR, 8, SEM_FR, val(l, SEM_AND, 8, SEM_FR, NONE, ~(int64_t)SEM_OF), out, 0);
	}
	wr(l, l->arg[0], r);
}

/* CF = OF = the product does not fit its low half */
static void mul_flags(struct lift *l, bool sgn, unsigned w, uint16_t lo, uint16_t hi)
{
	if (sgn) {
		uint16_t s = val(l, SEM_SX, w, lo, NONE, 0);

		s = val(l, SEM_SAR, 8, s, NONE, 63);
		s = val(l, SEM_CMPEQ, w, hi, s, 0);
		put(l, SEM_XOR, 8, SEM_FC, s, NONE, 1);
	} else {
		put(l, SEM_FC_NZ, w, SEM_FC, hi, NONE, 0);
	}
	put(l, SEM_SHL, 8, SEM_FR, SEM_FC, NONE, 11);
}

/* rdx:rax (or ax) = hi:lo */
static void wr_pair(struct lift *l, unsigned w, uint16_t lo, uint16_t hi)
{
	if (w == 1) {
		put(l, SEM_INSH, 1, SEM_RAX, val(l, SEM_INS, 1, SEM_RAX, lo, 0), hi, 0);
	} else {
		wr_gpr(l, SEM_RAX, w, lo);
		wr_gpr(l, SEM_RDX, w, hi);
	}
}

/* mul, imul in all forms. arg: 1 = signed */
void lift_mul(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	uint16_t a, b, lo, hi;
	int64_t imm = 0;

	recs(l);
	if (l->narg == 1) {
		a = SEM_RAX;
		b = rd(l, l->arg[0]);
	} else {
		a = rd(l, l->arg[l->narg - 2]);
		b = rdi(l, l->arg[l->narg - 1], &imm);
	}
	lo = val(l, SEM_MUL, w, a, b, imm);
	hi = val(l, arg ? SEM_SMULH : SEM_UMULH, w, a, b, imm);
	mul_flags(l, arg, w, lo, hi);
	if (l->narg == 1)
		wr_pair(l, w, lo, hi);
	else
		wr(l, l->arg[0], lo);
}

void lift_mulx(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	uint16_t b, lo, hi;

	(void)arg;
	recs(l);
	b = rd(l, l->arg[2]);
	lo = val(l, SEM_MUL, w, SEM_RDX, b, 0);
	hi = val(l, SEM_UMULH, w, SEM_RDX, b, 0);
	/* same destination twice: it holds the high half (SDM Vol. 2, MULX) */
	if (!same_reg(l->arg[0], l->arg[1]))
		wr(l, l->arg[1], lo);
	wr(l, l->arg[0], hi);
}

/* arg: 1 = signed */
void lift_div(struct lift *l, int arg)
{
	unsigned w = width(l->arg[0]);
	uint16_t b, hi, q, r;

	recs(l);
	b = rd(l, l->arg[0]);
	hi = w == 1 ? val(l, SEM_EXTH, 1, SEM_RAX, NONE, 0) : SEM_RDX;
	q = val(l, arg ? SEM_SDIV : SEM_UDIV, w, SEM_RAX, b, hi);
	r = val(l, arg ? SEM_SREM : SEM_UREM, w, SEM_RAX, b, hi);
	flags_unk(l);
	wr_pair(l, w, q, r);
}

/* cbw, cwde, cdqe: rax extended to arg bytes; cwd, cdq, cqo (negative arg): rdx = its sign */
void lift_extend(struct lift *l, int arg)
{
	uint16_t t;

	if (arg > 0) {
		wr_gpr(l, SEM_RAX, arg, val(l, SEM_SX, arg / 2, SEM_RAX, NONE, 0));
		return;
	}
	t = val(l, SEM_SX, -arg, SEM_RAX, NONE, 0);
	wr_gpr(l, SEM_RDX, -arg, val(l, SEM_SAR, 8, t, NONE, 63));
}

void lift_crc32(struct lift *l, int arg)
{
	uint16_t b;

	(void)arg;
	recs(l);
	b = rd(l, l->arg[1]);
	put(l, SEM_CRC32, width(l->arg[1]), gpr_of(l->arg[0]->reg.value), gpr_of(l->arg[0]->reg.value), b, 0);
}
