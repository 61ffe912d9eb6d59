/* SPDX-License-Identifier: MIT
 *
 * sem_lift_vec.c - vector registers as containers: moves, inserts, extracts, broadcasts
 *
 * A vector register is eight 64-bit lanes. Whoever writes one with a VEX or EVEX prefix clears
 * the lanes above the vector length (SDM Vol. 1, 14.1.3); legacy SSE leaves them. A handler that
 * could read a lane after having written it reads all its sources into temporaries first.
 */
#include "sem_lift_int.h"

unsigned lanes(opnd o)
{
	if (o->reg.value >= ZYDIS_REGISTER_ZMM0)
		return 8;
	return o->reg.value >= ZYDIS_REGISTER_YMM0 ? 4 : 2;
}

/* {1toN}: the datum repeated */
static uint16_t broadcast_lane(struct lift *l, opnd o)
{
	uint16_t t = load(l, o, 0, width(o));

	if (width(o) == 8)
		return t;
	return val(l, SEM_MUL, 8, t, NONE, 0x100000001);
}

uint16_t lane(struct lift *l, opnd o, unsigned i)
{
	const ZydisDecodedInstruction *in = l->in;

	if (is_vec(o))
		return SEM_V(reg_id(o), i);
	if (in->avx.broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID && !in->avx.broadcast.is_static)
		return broadcast_lane(l, o);
	return load(l, o, 8 * i, 8);
}

void set_lane(struct lift *l, opnd dst, unsigned i, uint16_t v)
{
	put(l, SEM_MOV, 8, SEM_V(reg_id(dst), i), v, NONE, 0);
}

void upper(struct lift *l, opnd dst, unsigned from)
{
	if (l->in->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return;
	for (unsigned i = from; i < 8; i++)
		put(l, SEM_IMM, 8, SEM_V(reg_id(dst), i), NONE, NONE, 0);
}

void fill(struct lift *l, opnd dst, int64_t v)
{
	unsigned n = lanes(dst);

	for (unsigned i = 0; i < n; i++)
		put(l, SEM_IMM, 8, SEM_V(reg_id(dst), i), NONE, NONE, v);
	upper(l, dst, n);
}

/* A source lane as it was, whatever is written later. */
static uint16_t saved(struct lift *l, opnd o, unsigned i)
{
	uint16_t v = lane(l, o, i);

	return is_vec(o) ? val(l, SEM_MOV, 8, v, NONE, 0) : v;
}

/* whole-register moves */
void lift_vmov(struct lift *l, int arg)
{
	opnd d = l->arg[0], s = l->arg[1];
	unsigned n;

	(void)arg;
	recs(l);
	if (is_mem(d)) {
		n = lanes(s);
		for (unsigned i = 0; i < n; i++)
			store(l, d, 8 * i, 8, lane(l, s, i));
		return;
	}
	n = lanes(d);
	for (unsigned i = 0; i < n; i++)
		set_lane(l, d, i, lane(l, s, i));
	upper(l, d, n);
}

static bool has_mmx(struct lift *l)
{
	for (int i = 0; i < l->narg; i++)
		if (is_reg(l->arg[i]) && l->arg[i]->reg.value >= ZYDIS_REGISTER_MM0 &&
		    l->arg[i]->reg.value <= ZYDIS_REGISTER_MM7)
			return true;
	return false;
}

/* movd, movq between vector, general registers and memory */
void lift_movd(struct lift *l, int arg)
{
	opnd d = l->arg[0], s = l->arg[1];
	unsigned w = is_vec(s) ? 8 : width(s);

	if (has_mmx(l)) {
		lift_other(l, arg);
		return;
	}
	recs(l);
	if (!is_vec(d)) {
		wr(l, d, lane(l, s, 0));
		return;
	}
	put(l, SEM_MOV, w, SEM_V(reg_id(d), 0), is_vec(s) ? lane(l, s, 0) : rd(l, s), NONE, 0);
	put(l, SEM_IMM, 8, SEM_V(reg_id(d), 1), NONE, NONE, 0);
	upper(l, d, 2);
}

/* low w bytes of b, the rest of a */
static uint16_t merge(struct lift *l, uint16_t a, uint16_t b, unsigned w)
{
	if (w == 8)
		return b;
	b = val(l, SEM_MOV, w, b, NONE, 0);
	a = val(l, SEM_AND, 8, a, NONE, ~(int64_t)sem_mask(w));
	return val(l, SEM_OR, 8, a, b, 0);
}

/* movss, movsd. arg: bytes */
void lift_movs(struct lift *l, int arg)
{
	opnd d = l->arg[0], s = l->arg[l->narg - 1];

	recs(l);
	if (is_mem(d)) {
		store(l, d, 0, arg, lane(l, s, 0));
	} else if (is_mem(s)) {
		put(l, SEM_MOV, 8, SEM_V(reg_id(d), 0), load(l, s, 0, arg), NONE, 0);
		put(l, SEM_IMM, 8, SEM_V(reg_id(d), 1), NONE, NONE, 0);
		upper(l, d, 2);
	} else {
		opnd a = l->narg == 3 ? l->arg[1] : d;
		uint16_t hi = saved(l, a, 1);

		set_lane(l, d, 0, merge(l, lane(l, a, 0), lane(l, s, 0), arg));
		set_lane(l, d, 1, hi);
		upper(l, d, 2);
	}
}

/* movhps, movlps and the like, with memory. arg: the lane */
void lift_movhl(struct lift *l, int arg)
{
	opnd d = l->arg[0], s = l->arg[l->narg - 1];

	recs(l);
	if (is_mem(d)) {
		store(l, d, 0, 8, lane(l, s, arg));
		return;
	}
	set_lane(l, d, arg, load(l, s, 0, 8));
	if (l->narg == 3)
		set_lane(l, d, 1 - arg, lane(l, l->arg[1], 1 - arg));
	upper(l, d, 2);
}

/* arg 0: low halves of a, b; 1: high halves; 2: high of b, then high of a (movhlps) */
void lift_unpckq(struct lift *l, int arg)
{
	opnd d = l->arg[0], a = l->arg[l->narg - 2], b = l->arg[l->narg - 1];
	unsigned n = lanes(d);

	recs(l);
	for (unsigned i = 0; i < n; i += 2) {
		uint16_t x = saved(l, a, i + (arg ? 1 : 0));
		uint16_t y = saved(l, b, i + (arg ? 1 : 0));

		set_lane(l, d, i, arg == 2 ? y : x);
		set_lane(l, d, i + 1, arg == 2 ? x : y);
	}
	upper(l, d, n);
}

void lift_movddup(struct lift *l, int arg)
{
	opnd d = l->arg[0], s = l->arg[1];
	unsigned n = lanes(d);

	(void)arg;
	recs(l);
	for (unsigned i = 0; i < n; i += 2) {
		uint16_t v = saved(l, s, i);

		set_lane(l, d, i, v);
		set_lane(l, d, i + 1, v);
	}
	upper(l, d, n);
}

/* one element to all. arg: its bytes */
void lift_bcast(struct lift *l, int arg)
{
	opnd d = l->arg[0], s = l->arg[1];
	unsigned n = lanes(d);
	uint16_t v;

	recs(l);
	if (is_mem(s))
		v = load(l, s, 0, arg);
	else
		v = val(l, SEM_MOV, arg, is_vec(s) ? lane(l, s, 0) : rd(l, s), NONE, 0);
	if (arg < 8)
		v = val(l, SEM_MUL, 8, v, NONE, (int64_t)(~0ull / sem_mask(arg)));
	for (unsigned i = 0; i < n; i++)
		set_lane(l, d, i, v);
	upper(l, d, n);
}

/* a block of arg lanes of memory to all */
void lift_bcast_block(struct lift *l, int arg)
{
	opnd d = l->arg[0], s = l->arg[1];
	unsigned n = lanes(d);
	uint16_t v[4];

	recs(l);
	for (int i = 0; i < arg; i++)
		v[i] = load(l, s, 8 * i, 8);
	for (unsigned i = 0; i < n; i++)
		set_lane(l, d, i, v[i % arg]);
	upper(l, d, n);
}

/* arg: lanes of the block */
void lift_insert(struct lift *l, int arg)
{
	opnd d = l->arg[0], a = l->arg[1], b = l->arg[2];
	unsigned n = lanes(d), pos = l->arg[3]->imm.value.u % (n / arg) * arg;
	uint16_t v[4];

	recs(l);
	for (int i = 0; i < arg; i++)
		v[i] = saved(l, b, i);
	for (unsigned i = 0; i < n; i++)
		set_lane(l, d, i, i >= pos && i < pos + arg ? v[i - pos] : lane(l, a, i));
	upper(l, d, n);
}

/* Lane i is written before lane pos + i is read: pos + i > i - 1, no hazard. */
void lift_extract(struct lift *l, int arg)
{
	opnd d = l->arg[0], s = l->arg[1];
	unsigned pos = l->arg[2]->imm.value.u % (lanes(s) / arg) * arg;

	recs(l);
	for (int i = 0; i < arg; i++) {
		if (is_mem(d))
			store(l, d, 8 * i, 8, lane(l, s, pos + i));
		else
			set_lane(l, d, i, lane(l, s, pos + i));
	}
	if (!is_mem(d))
		upper(l, d, arg);
}

/* arg: element bytes */
void lift_pinsr(struct lift *l, int arg)
{
	opnd d = l->arg[0], a = l->arg[l->narg - 3], s = l->arg[l->narg - 2];
	unsigned off = l->arg[l->narg - 1]->imm.value.u % (16 / arg) * arg, sh = off % 8 * 8;
	uint16_t v, old;

	if (has_mmx(l)) {
		lift_other(l, 0);
		return;
	}
	recs(l);
	v = val(l, SEM_MOV, arg, is_mem(s) ? load(l, s, 0, arg) : rd(l, s), NONE, 0);
	if (arg < 8) {
		v = val(l, SEM_SHL, 8, v, NONE, sh);
		old = lane(l, a, off / 8);
		old = val(l, SEM_AND, 8, old, NONE, ~(int64_t)(sem_mask(arg) << sh));
		v = val(l, SEM_OR, 8, old, v, 0);
	}
	set_lane(l, d, off / 8, v);
	if (!same_reg(a, d))
		set_lane(l, d, 1 - off / 8, lane(l, a, 1 - off / 8));
	upper(l, d, 2);
}

void lift_pextr(struct lift *l, int arg)
{
	opnd d = l->arg[0], s = l->arg[1];
	unsigned off = l->arg[2]->imm.value.u % (16 / arg) * arg;
	uint16_t v;

	if (has_mmx(l)) {
		lift_other(l, 0);
		return;
	}
	recs(l);
	v = lane(l, s, off / 8);
	if (off % 8)
		v = val(l, SEM_SHR, 8, v, NONE, off % 8 * 8);
	if (is_mem(d))
		store(l, d, 0, arg, v);
	else
		put(l, SEM_MOV, arg, gpr_of(d->reg.value), v, NONE, 0);
}

/* vzeroupper, vzeroall: registers 0..15, lanes from arg */
void lift_vzero(struct lift *l, int arg)
{
	for (int v = 0; v < 16; v++)
		for (int i = arg; i < 8; i++)
			put(l, SEM_IMM, 8, SEM_V(v, i), NONE, NONE, 0);
}
