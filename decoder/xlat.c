/* SPDX-License-Identifier: MIT
 *
 * xlat.c - map ops to threaded code, a run (up to its control op) when it is first reached
 *
 * This is also where single ops are checked: registers, widths, targets. A map passed its
 * checksums, so an op that fails is a map of a newer or broken analyzer: the walk stops.
 */
#include <string.h>
#include "sem_eval.h"
#include "walk.h"

static int wlog(unsigned w)
{
	return w == 1 ? 0 : w == 2 ? 1 : w == 4 ? 2 : w == 8 ? 3 : -1;
}

static bool reg_ok(unsigned r)
{
	return r < SEM_NREGS || r == SEM_NONE;
}

/* first handler of a value op's R forms (0 if it has none), *unary if it takes one operand */
static unsigned value_handler(unsigned op, bool *unary)
{
	*unary = false;
	switch (op) {
#define CASE_V(n)                                                                                            \
	case SEM_##n:                                                                                        \
		return H_##n##_R1;
#define CASE_U(n)                                                                                            \
	case SEM_##n:                                                                                        \
		*unary = true;                                                                               \
		return H_##n##_U1;
		H_VALUE(CASE_V)
		H_UNARY(CASE_U)
	default:
		return 0;
	}
}

static bool xlat_value(const struct sem_op *o, struct xop *x, const struct inst *m)
{
	bool unary;
	unsigned h = value_handler(o->op, &unary);
	int w = wlog(o->w);

	if (o->dst >= SEM_NREGS || !reg_ok(sem_third(o)))
		return false;
	if (o->op == SEM_IMM || o->op == SEM_MODADDR) {
		x->h = H_IMM;
		if (o->op == SEM_MODADDR)
			x->imm = (int64_t)(m->bias + (uint64_t)o->imm);
	} else if (o->op == SEM_LEA) {
		if (o->w > 15)
			return false;
		x->h = H_LEA;
		x->b |= o->w << 12;
	} else if (o->op == SEM_COND) {
		x->h = H_COND0 + (o->imm & 15);
	} else if (o->op == SEM_SEL) {
		x->h = H_SEL;
		if (sem_third(o) == SEM_NONE)
			return false;
	} else if (w < 0 && o->op != SEM_INSH && o->op != SEM_EXTH) {
		return false;
	} else if (h && o->a != SEM_NONE) {
		x->h = h + w + (!unary && o->b == SEM_NONE ? 4 : 0);
	} else {
		x->h = H_GENERIC;
	}
	return true;
}

static bool target_ok(const struct inst *m, uint32_t t)
{
	return map_begins(m->map, t);
}

/* index of the block that op index i belongs to, nblock if none */
static uint32_t block_of(const struct inst *m, uint32_t i)
{
	for (;; i--) {
		const struct sem_op *o = &m->map->op[i];

		if (o->op == SEM_BLOCK)
			return (uint64_t)o->imm < m->map->nblock ? (uint32_t)o->imm : m->map->nblock;
		if (!i)
			return m->map->nblock;
	}
}

static uint32_t group_of(const struct inst *m, uint32_t i)
{
	uint32_t b = block_of(m, i);

	return b < m->map->nblock ? m->map->block[b].group : NONE32;
}

static bool xlat_control(const struct sem_op *o, struct xop *x, const struct inst *m, uint32_t i)
{
	uint32_t check = 0;

	switch (o->op) {
	case SEM_JMP:
		x->h = H_JMP;
		return target_ok(m, SEM_TAKEN(o->imm));
	case SEM_JCC:
	case SEM_JCC_LOG:
		x->h = o->op == SEM_JCC ? H_JCC : H_JCC_LOG;
		return target_ok(m, SEM_TAKEN(o->imm)) && target_ok(m, SEM_NEXT(o->imm));
	case SEM_JCC_FLOW:
		x->h = H_JCC_FLOW;
		x->a = o->a;
		x->b = o->b;
		return target_ok(m, SEM_TAKEN(o->imm)) && target_ok(m, SEM_NEXT(o->imm));
	case SEM_IJMP:
	case SEM_IJMP_LOG:
		x->h = o->op == SEM_IJMP ? H_IJMP : H_IJMP_LOG;
		x->dst = o->op == SEM_IJMP && o->imm == SEM_IJMP_MAY_LEAVE;
		x->imm = group_of(m, i);
		return true;
	case SEM_CALL:
	case SEM_CALLX:
		x->h = o->op == SEM_CALL ? H_CALL : H_CALLX;
		if (!target_ok(m, SEM_NEXT(o->imm))) {
			/* a call that does not come back has no return site */
			if (SEM_NEXT(o->imm) != NONE32)
				return false;
			x->dst = FR_OPAQUE;
		} else {
			x->dst = return_flags(m, SEM_NEXT(o->imm), &check);
			x->b = check;
		}
		return o->op == SEM_CALLX || target_ok(m, SEM_TAKEN(o->imm));
	case SEM_JMPX:
		x->h = o->dst == SEM_JMPX_LINK ? H_JMPX_LINK : H_JMPX;
		return o->dst != SEM_JMPX_LINK || target_ok(m, SEM_TAKEN(o->imm));
	case SEM_RET:
		x->h = H_RET;
		return true;
	case SEM_RETX:
		x->h = H_RETX;
		return o->a < SEM_NREGS;
	case SEM_SYSCALL:
		x->h = H_SYSCALL;
		return target_ok(m, SEM_NEXT(o->imm)) || SEM_NEXT(o->imm) == NONE32;
	case SEM_HALT:
		x->h = H_HALT;
		return true;
	default:
		return false;
	}
}

static bool xlat_rest(const struct walker *w, const struct sem_op *o, struct xop *x, struct inst *m,
		      uint32_t i, uint32_t nrec)
{
	int wl = wlog(o->w);

	switch (o->op) {
	case SEM_LOG:
		x->h = H_LOG1 + wl;
		return wl >= 0 && o->dst < SEM_NREGS;
	case SEM_LOGSX:
		if (o->w == 6) {
			x->h = H_LOGSX6;
			return o->dst < SEM_NREGS;
		}
		x->h = wl == 3 ? H_LOG8 : H_LOGSX1 + wl;
		return wl >= 0 && o->dst < SEM_NREGS;
	case SEM_LOAD:
	case SEM_LOADRO:
		x->h = o->op == SEM_LOAD ? H_LOAD : H_LOADRO;
		x->b = o->w;
		return wl >= 0 && o->dst < SEM_NREGS;
	case SEM_STORE:
		x->h = H_STORE;
		x->dst = o->w;
		return wl >= 0;
	case SEM_REC:
		x->h = nrec > REC_ROOM / 2 ? H_REC_ROOM : H_REC;
		x->b |= o->w << 12;
		return o->w <= 15;
	case SEM_RECVEC:
	case SEM_RECREP:
	case SEM_RECXS:
		x->h = o->op == SEM_RECVEC ? H_RECVEC : o->op == SEM_RECREP ? H_RECREP : H_RECXS;
		if (i + 1 >= m->map->nop || o->w > 15)
			return false;
		x[1].imm = (intptr_t)&m->block[block_of(m, i)];
		return true;
	case SEM_VCHK:
		x->h = H_VCHK;
		return true;
	case SEM_TSC:
		x->h = H_TSC;
		return true;
	case SEM_RMARK:
		x->h = H_RMARK;
		x->imm = RUN_MARK_RET | (o->imm & 0x1f) << 3; /* the byte itself */
		return true;
	case SEM_PTW:
	case SEM_PTWSX:
		x->h = H_PTW;
		x->a = o->a;
		x->b = o->b;
		x->imm = o->op == SEM_PTW ? o->w : -o->w;
		return (wl >= 0 || (o->w == 6 && o->op == SEM_PTWSX)) && o->dst < SEM_NREGS;
	case SEM_FLOW:
		x->h = H_FLOW;
		x->a = o->a;
		x->b = o->b;
		return o->dst < SEM_NREGS;
	case SEM_BLOCK:
		if ((uint64_t)o->imm >= m->map->nblock)
			return false;
		x->h = w->o->blocks ? H_BLOCKREC : H_BLOCK;
		x->imm = (intptr_t)&m->block[o->imm];
		if (m->map->block[o->imm].ops == i)
			pool_seen(m, (uint32_t)o->imm);
		return true;
	default:
		return false;
	}
}

static bool is_control(unsigned op)
{
	return op > SEM_BLOCK && op != SEM_RMARK;
}

/* BLOCK RMARK becomes RMARK BLOCK: a block whose mark turns out to be the end has not run. */
static void mark_first(struct xop *x)
{
	struct xop block = *x;

	if (x[1].h == H_RMARK && (x->h == H_BLOCK || x->h == H_BLOCKREC)) {
		x[0] = x[1];
		x[1] = block;
	}
}

int xlat_run(struct walker *w, struct inst *m, struct xop *pc)
{
	uint32_t i = pc - m->code, nrec = 0;
	const struct sem_op *o;

	do {
		struct xop *x = &m->code[i];
		bool ok;

		if (i >= m->map->nop)
			return lost(w, "%s: ops run off their table", m->map->path);
		o = &m->map->op[i];
		if (x->h)
			break;
		x->imm = o->imm;
		x->dst = o->dst;
		x->a = o->a == SEM_NONE ? ZERO : o->a;
		x->b = o->b == SEM_NONE ? ZERO : o->b;
		nrec += o->op == SEM_REC;
		ok = (reg_ok(o->a) && reg_ok(o->b)) || o->op == SEM_FLOW || o->op == SEM_JCC_FLOW ||
		     o->op == SEM_PTW || o->op == SEM_PTWSX;
		if (ok && sem_is_value(o->op))
			ok = xlat_value(o, x, m);
		else if (ok && is_control(o->op))
			ok = xlat_control(o, x, m, i);
		else if (ok)
			ok = xlat_rest(w, o, x, m, i, nrec);
		if (!ok) {
			x->h = 0;
			return lost(w, "%s: op %u (code %u, width %u) is not one this decoder knows",
				    m->map->path, i, o->op, o->w);
		}
		if (o->op == SEM_RMARK && i)
			mark_first(x - 1);
		i += 1 + (o->op == SEM_RECVEC || o->op == SEM_RECREP || o->op == SEM_RECXS);
	} while (!is_control(o->op));
	if (m->count)
		why_wrap(m, pc - m->code, i < m->map->nop ? i : m->map->nop);
	return 0;
}
