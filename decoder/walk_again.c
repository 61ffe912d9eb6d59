/* SPDX-License-Identifier: MIT
 *
 * walk_again.c - would control come to the same op once more, without a byte of the log, and look the same?
 *
 * Then a signal there could have come at either time. What is live at the op in its own function has been compared, but
 * the way that control takes from there on tells more. Ops are evaluated on a copy of the registers, what they store is
 * kept aside, until one needs the log:
 *
 *   op ─▶ … ─▶ op ─▶ … ─▶ op ─▶ … ─▶ an op that needs the log
 *   ◀─ backward: registers that are used on this very way, in callers and callees, too, are right in the walk
 *
 * They must be those of the signal, and so must flags that conditions are taken from, and what is loaded from the stack and
 * returned to, of which the signal says what was next to rsp. What a caller keeps in a callee-saved register is in that
 * register as long as neither the function nor those between have an instruction that writes it (MAP_G_UNWRITTEN); the
 * frame knows it. If more than one time is left nothing tells which it was.
 */
#include <stdlib.h>
#include <string.h>
#include "sem_eval.h"
#include "walk.h"

#define STEPS 65536
#define NSTORE 64
#define NCALL 64
#define NTIME 1024 /* times that the op comes up */

struct step {
	struct inst *m;
	uint32_t op;
	uint32_t saved; /* of a call or return: what of struct ahead.saved */
	uint64_t addr, v; /* of a load, a store, a return: what is in memory there */
};

struct time {
	uint64_t gpr[SEM_NGPR], fc, fr;
	uint32_t step;
	bool records; /* accesses since the first time */
};

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
		uint64_t slot;
		uint32_t op, saved;
	} call[NCALL];
	uint32_t ncall, nframe; /* nframe: of the walker's, those not returned to yet */
	bool records;
	struct step *step;
	uint32_t nstep;
	struct time *time;
	uint32_t ntime;
	uint64_t (*saved)[NSAVED]; /* callee-saved registers of callers */
	uint32_t nsaved, capsaved;
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

	a->step[a->nstep].addr = addr;
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
	a->step[a->nstep].addr = a->store[a->nstore].addr = val(a, o->a) + (uint64_t)o->imm;
	a->store[a->nstore].v = val(a, o->b) & mask;
	a->store[a->nstore++].w = o->w;
	return true;
}

static uint32_t note_saved(struct ahead *a)
{
	if (a->nsaved == a->capsaved) {
		a->capsaved = a->capsaved ? a->capsaved * 2 : 64;
		a->saved = xrealloc(a->saved, a->capsaved, sizeof(*a->saved));
	}
	return a->nsaved++;
}

static void restore(struct ahead *a, uint32_t saved)
{
	for (int i = 0; i < NSAVED; i++)
		a->r[frame_saved[i]] = a->saved[saved][i];
	a->step[a->nstep].saved = saved;
}

static bool call(struct ahead *a, const struct sem_op *o)
{
	uint32_t k;

	if (a->ncall == NCALL || SEM_NEXT(o->imm) == NONE32)
		return false;
	k = a->step[a->nstep].saved = note_saved(a);
	for (int i = 0; i < NSAVED; i++)
		a->saved[k][i] = a->r[frame_saved[i]];
	a->call[a->ncall].slot = a->r[SEM_RSP];
	a->call[a->ncall].saved = k;
	a->call[a->ncall++].op = SEM_NEXT(o->imm);
	a->op = SEM_TAKEN(o->imm);
	return true;
}

static bool ret(struct ahead *a, const struct sem_op *o)
{
	uint64_t slot = a->r[SEM_RSP] - 8 - (uint64_t)o->imm;
	const struct frame *f;
	uint32_t k;

	a->step[a->nstep].addr = slot;
	if (a->ncall) {
		if (a->call[a->ncall - 1].slot != slot)
			return false;
		restore(a, a->call[--a->ncall].saved);
		a->op = a->call[a->ncall].op;
		return true;
	}
	if (a->nframe <= a->w->base)
		return false;
	f = &a->w->frame[a->nframe - 1];
	if (f->slot != slot || f->flags & (FR_OPAQUE | FR_RESYNC))
		return false;
	a->nframe--;
	k = note_saved(a);
	memcpy(a->saved[k], f->saved, sizeof(f->saved));
	restore(a, k);
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
		return load(a, o, &a->r[o->dst]) && (a->step[a->nstep].v = a->r[o->dst], true);
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

/* Forward: the way, and each time that op comes up on it with what is live as the signal found it. */
static void go_ahead(struct ahead *a, const struct live *l, const uint64_t *gpr)
{
	const struct inst *m = a->m;
	const uint32_t from = a->op;

	for (; a->nstep < STEPS; a->nstep++) {
		uint32_t op = a->op;

		if (a->m == m && op == from && live_same(l, a->r, gpr)) {
			struct time *t = &a->time[a->ntime];

			memcpy(t->gpr, a->r, sizeof(t->gpr));
			t->fc = a->r[SEM_FC];
			t->fr = a->r[SEM_FR];
			t->step = a->nstep;
			t->records = a->records;
			if (++a->ntime == NTIME)
				break;
		}
		a->step[a->nstep] = (struct step){.m = a->m, .op = op, .saved = NONE32};
		if (!step(a)) {
			a->op = op;
			break;
		}
	}
	a->step[a->nstep] = (struct step){.m = a->m, .op = a->op, .saved = NONE32};
}

/* what a caller uses of its callee-saved registers when control is back */
struct pending {
	uint8_t need[NSAVED];
	uint32_t saved;
	struct inst *m; /* where that is */
	uint32_t op;
	uint64_t slot; /* of the return address */
};

#define NWORD 32

struct behind {
	uint8_t need[SEM_NREGS];
	uint32_t flags; /* bits of rflags that are looked at */
	struct word {
		uint64_t addr, v;
		unsigned w;
	} word[NWORD]; /* that are loaded */
	uint32_t nword;
	struct pending *up; /* callers, the innermost last */
	uint32_t nup;
};

static uint32_t unwritten(const struct inst *m, uint32_t block)
{
	const struct map *x = m->map;

	return block < x->nblock && x->block[block].group < x->ngroup
		       ? x->group[x->block[block].group].flags / MAP_G_UNWRITTEN
		       : 0;
}

/* w bytes of memory when the signal came, if they are told, are those */
static bool told(const struct seek *k, uint64_t addr, const void *v, unsigned w)
{
	uint64_t at = addr - (k->s.gpr[SEM_RSP] - RUN_SIGNAL_BELOW);

	return at >= k->s.nstack || k->s.nstack - at < w || !memcmp(k->s.stack + at, v, w);
}

static bool returns(const struct seek *k, const struct pending *p)
{
	uint32_t b = map_block_of(p->m->map, p->op);
	uint64_t to;

	if (b == NONE32)
		return true;
	to = p->m->bias + p->m->map->block[b].vaddr;
	return told(k, p->slot, &to, sizeof(to));
}

static bool fits(const struct ahead *a, const struct behind *b, const struct time *t, const uint64_t *gpr)
{
	const struct seek *k = &a->w->seek;
	uint32_t kept = unwritten(k->m, k->block);
	struct live l;

	memcpy(l.gpr, b->need, sizeof(l.gpr));
	if (!live_same(&l, t->gpr, gpr) || (((t->fr & ~1ull) | (t->fc & 1)) ^ k->s.rflags) & b->flags)
		return false;
	for (uint32_t n = 0; n < b->nword; n++)
		if (!told(k, b->word[n].addr, &b->word[n].v, b->word[n].w))
			return false;
	for (uint32_t n = b->nup; n-- > 0;) {
		const struct pending *p = &b->up[n];

		if (!returns(k, p))
			return false;

		for (int i = 0; i < NSAVED; i++) {
			uint64_t mask = p->need[i] >= 8 ? ~0ull : (1ull << 8 * p->need[i]) - 1;

			if ((kept >> i & 1) && ((a->saved[p->saved][i] ^ gpr[frame_saved[i]]) & mask))
				return false;
		}
		kept &= unwritten(p->m, map_block_of(p->m->map, p->op));
	}
	return true;
}

static void push(struct behind *b, const uint8_t *need, uint32_t saved, struct inst *m, uint32_t op,
		 uint64_t slot)
{
	struct pending *p = &b->up[b->nup++];

	*p = (struct pending){.saved = saved, .m = m, .op = op, .slot = slot};
	for (int i = 0; i < NSAVED; i++)
		p->need[i] = need[frame_saved[i]];
}

/* bits of rflags that a condition is taken from: o O, c C, z Z, c|z, s S, p P, s^o, z|(s^o) (SDM Vol. 1, B.1) */
static void flags_before(const struct sem_op *o, struct behind *b)
{
	static const uint32_t bits[8] = {0x800, 1, 0x40, 0x41, 0x80, 4, 0x880, 0x8c0};

	if (o->op == SEM_COND && b->need[o->dst])
		b->flags |= bits[o->imm >> 1 & 7];
	if (sem_is_value(o->op) && o->dst == SEM_FC)
		b->flags &= ~1u;
	if (sem_is_value(o->op) && o->dst == SEM_FR)
		b->flags &= 1;
}

static void memory_before(const struct sem_op *o, const struct step *s, struct behind *b)
{
	if (o->op == SEM_STORE) {
		for (uint32_t i = b->nword; i-- > 0;)
			if (b->word[i].addr < s->addr + o->w && s->addr < b->word[i].addr + b->word[i].w)
				b->word[i] = b->word[--b->nword];
	} else if (o->op == SEM_LOAD && b->need[o->dst] && b->nword < NWORD) {
		b->word[b->nword++] =
			(struct word){s->addr, s->v, o->w < b->need[o->dst] ? o->w : b->need[o->dst]};
	}
}

static void backward(const struct ahead *a, struct behind *b, uint32_t i)
{
	const struct step *s = &a->step[i];
	const struct sem_op *o = &s->m->map->op[s->op];

	if (o->op == SEM_RET) {
		push(b, b->need, s->saved, s[1].m, s[1].op, s->addr);
		for (int k = 0; k < NSAVED; k++)
			b->need[frame_saved[k]] = 0;
		b->need[SEM_RSP] = 8;
	} else if (o->op == SEM_CALL) {
		const struct pending *p = &b->up[--b->nup];

		for (int k = 0; k < NSAVED; k++)
			if (b->need[frame_saved[k]] < p->need[k])
				b->need[frame_saved[k]] = p->need[k];
		b->need[SEM_RSP] = 8;
	} else {
		flags_before(o, b);
		memory_before(o, s, b);
		live_before(o, b->need);
	}
}

/* Backward: which of the times it can have been. first: NONE32 if none; the last one */
static void look_back(const struct ahead *a, const uint64_t *gpr, uint32_t *first, uint32_t *last)
{
	struct behind b = {.up = xrealloc(NULL, a->nstep + NCALL + 1, sizeof(*b.up))};
	uint32_t t = a->ntime;
	struct live l;

	for (uint32_t i = 0; i < a->ncall; i++) { /* they do not come back on this way */
		uint8_t need[SEM_NREGS] = {0};

		walk_live(a->m->map, a->call[i].op, &l);
		memcpy(need, l.gpr, sizeof(l.gpr));
		push(&b, need, a->call[i].saved, a->m, a->call[i].op, a->call[i].slot);
	}
	walk_live(a->m->map, a->op, &l);
	memcpy(b.need, l.gpr, sizeof(l.gpr));
	*first = *last = NONE32;
	for (uint32_t i = a->nstep;; i--) {
		if (t && a->time[t - 1].step == i && fits(a, &b, &a->time[--t], gpr)) {
			*first = t;
			*last = *last == NONE32 ? t : *last;
		}
		if (!i)
			break;
		backward(a, &b, i - 1);
	}
	free(b.up);
}

enum again walk_again(struct walker *w, const struct live *l, const uint64_t *gpr, uint32_t *later)
{
	struct ahead a = {.w = w, .m = w->m, .op = w->pc - w->m->code, .nframe = w->nframe};
	enum again k;
	uint32_t first, last;

	a.step = xrealloc(NULL, STEPS + 1, sizeof(*a.step));
	a.time = xrealloc(NULL, NTIME, sizeof(*a.time));
	memcpy(a.r, w->r, sizeof(a.r));
	go_ahead(&a, l, gpr);
	look_back(&a, gpr, &first, &last);
	*later = first == NONE32 ? a.ntime : first;
	if (*later)
		k = AGAIN_LATER;
	else if (last == first)
		k = AGAIN_NO;
	else
		k = a.time[last].records ? AGAIN_RECORDS : AGAIN_IDLE;
	free(a.saved);
	free(a.time);
	free(a.step);
	return k;
}
