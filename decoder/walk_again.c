/* SPDX-License-Identifier: MIT
 *
 * walk_again.c - would control come to the same op once more, without a byte of the log, and look the same?
 *
 * Then a signal there could have come at either time, and nothing tells which. Ops are evaluated on a copy of
 * the registers; what they store is kept aside.
 */
#include <string.h>
#include "sem_eval.h"
#include "walk.h"

#define STEPS 65536
#define NSTORE 64
#define NCALL 16

struct ahead {
	struct walker *w;
	uint64_t r[WALK_NREGS];
	struct inst *m;
	uint32_t op;
	struct {
		uint64_t addr, v;
		unsigned w;
	} store[NSTORE];
	uint32_t nstore;
	struct {
		uint64_t slot, saved[NSAVED];
		uint32_t op;
	} call[NCALL];
	uint32_t ncall, nframe; /* nframe: of the walker's, those not returned to yet */
	bool records;
};

static uint64_t val(const struct ahead *a, unsigned reg)
{
	return reg < SEM_NREGS ? a->r[reg] : 0;
}

static bool load(struct ahead *a, const struct sem_op *o, uint64_t *v)
{
	uint64_t addr = val(a, o->a) + (uint64_t)o->imm;
	const uint8_t *b;
	struct inst *m;

	for (uint32_t i = a->nstore; i-- > 0;) {
		uint64_t at = a->store[i].addr;

		if (at == addr && a->store[i].w == o->w) {
			*v = a->store[i].v;
			return true;
		}
		if (at < addr + o->w && addr < at + a->store[i].w)
			return false;
	}
	if (mem_load(a->w->mem, addr, o->w, v))
		return true;
	m = mod_at(a->w, addr);
	b = m ? map_rodata(m->map, addr - m->bias, o->w, NULL) : NULL;
	*v = 0;
	if (b)
		memcpy(v, b, o->w);
	return b || (m && o->w == 8 && map_roaddress(m->map, addr - m->bias, v) && (*v += m->bias, true));
}

static bool store(struct ahead *a, const struct sem_op *o)
{
	uint64_t mask = o->w >= 8 ? ~0ull : (1ull << 8 * o->w) - 1;

	if (a->nstore == NSTORE)
		return false;
	a->store[a->nstore].addr = val(a, o->a) + (uint64_t)o->imm;
	a->store[a->nstore].v = val(a, o->b) & mask;
	a->store[a->nstore++].w = o->w;
	return true;
}

static void restore(struct ahead *a, const uint64_t *saved)
{
	a->r[SEM_RBX] = saved[0];
	a->r[SEM_RBP] = saved[1];
	memcpy(a->r + SEM_R12, saved + 2, 4 * sizeof(*saved));
}

static bool call(struct ahead *a, const struct sem_op *o)
{
	if (a->ncall == NCALL || SEM_NEXT(o->imm) == NONE32)
		return false;
	a->call[a->ncall].slot = a->r[SEM_RSP];
	a->call[a->ncall].op = SEM_NEXT(o->imm);
	a->call[a->ncall].saved[0] = a->r[SEM_RBX];
	a->call[a->ncall].saved[1] = a->r[SEM_RBP];
	memcpy(a->call[a->ncall++].saved + 2, a->r + SEM_R12, 4 * sizeof(*a->r));
	a->op = SEM_TAKEN(o->imm);
	return true;
}

static bool ret(struct ahead *a, const struct sem_op *o)
{
	uint64_t slot = a->r[SEM_RSP] - 8 - (uint64_t)o->imm;
	const struct frame *f;

	if (a->ncall) {
		if (a->call[--a->ncall].slot != slot)
			return false;
		restore(a, a->call[a->ncall].saved);
		a->op = a->call[a->ncall].op;
		return true;
	}
	if (a->nframe <= a->w->base)
		return false;
	f = &a->w->frame[--a->nframe];
	if (f->slot != slot || f->flags & (FR_OPAQUE | FR_RESYNC))
		return false;
	restore(a, f->saved);
	a->m = f->m;
	a->op = f->pc - f->m->code;
	return true;
}

static bool ijmp(struct ahead *a, const struct sem_op *o)
{
	struct inst *m;
	const struct map_leader *l = mod_leader(a->w, val(a, o->a), &m);

	if (!l || m != a->m || !(l->flags & MAP_LEADER_TARGET))
		return false;
	a->op = l->ops;
	return true;
}

/* one op; false: it needs the log, or leads to what is not known */
static bool step(struct ahead *a)
{
	const struct sem_op *o = &a->m->map->op[a->op];
	struct xop *x = &a->m->code[a->op];

	if (!x->h && xlat_run(a->w, a->m, x)) /* checks the ops */
		return false;
	a->op++;
	if (sem_is_value(o->op)) {
		a->r[o->dst] = sem_value(o, a->r, a->m->bias);
		return true;
	}
	switch (o->op) {
	case SEM_BLOCK:
		return true;
	case SEM_REC:
		a->records = true;
		return true;
	case SEM_RECREP:
	case SEM_RECXS:
		a->records = true;
		a->op++;
		return true;
	case SEM_LOAD:
	case SEM_LOADRO:
		return load(a, o, &a->r[o->dst]);
	case SEM_STORE:
		return store(a, o);
	case SEM_JMP:
		a->op = SEM_TAKEN(o->imm);
		return true;
	case SEM_JCC:
		a->op = val(a, o->a) ? SEM_TAKEN(o->imm) : SEM_NEXT(o->imm);
		return true;
	case SEM_IJMP:
		return ijmp(a, o);
	case SEM_CALL:
		return call(a, o);
	case SEM_RET:
		return ret(a, o);
	default:
		return false;
	}
}

enum again walk_again(struct walker *w, const struct live *l)
{
	struct ahead a = {.w = w, .m = w->m, .op = w->pc - w->m->code, .nframe = w->nframe};
	const uint32_t from = a.op;

	memcpy(a.r, w->r, sizeof(a.r));
	for (uint32_t i = 0; i < STEPS; i++) {
		if (i && a.m == w->m && a.op == from)
			return !live_same(l, a.r, w->r) ? AGAIN_NO : a.records ? AGAIN_RECORDS : AGAIN_IDLE;
		if (!step(&a))
			break;
	}
	return AGAIN_NO;
}
