/* SPDX-License-Identifier: MIT
 *
 * walk_live.c - what the ops from a place on depend on
 *
 * Backward over the ops that jumps lead to, until nothing changes: how many bytes of each register the walk
 * will use. These are right in the walker's registers, whatever else it may have wrong or not know.
 */
#include <string.h>
#include "sem_eval.h"
#include "sem_uses.h"
#include "walk.h"

#define NRUN 48 /* runs looked at */
#define NROUND 16

struct run {
	uint32_t from, to; /* ops; to: the control op */
	uint32_t next[2]; /* runs, NONE32 if none */
	uint8_t need[SEM_NREGS];
};

struct graph {
	const struct map *m;
	struct run run[NRUN];
	uint32_t n;
};

static uint32_t run_at(struct graph *g, uint32_t op)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (g->run[i].from == op)
			return i;
	if (g->n == NRUN || !map_begins(g->m, op))
		return NONE32;
	g->run[g->n] = (struct run){.from = op, .next = {NONE32, NONE32}};
	return g->n++;
}

static void link_runs(struct graph *g)
{
	for (uint32_t i = 0; i < g->n; i++) {
		struct run *r = &g->run[i];
		const struct sem_op *o;

		r->to = map_block_end(g->m, r->from);
		if (r->to >= g->m->nop)
			continue;
		o = &g->m->op[r->to];
		if (o->op == SEM_JMP || o->op == SEM_JCC || o->op == SEM_JCC_LOG || o->op == SEM_JCC_FLOW)
			r->next[0] = run_at(g, SEM_TAKEN(o->imm));
		if (o->op == SEM_JCC || o->op == SEM_JCC_LOG || o->op == SEM_JCC_FLOW)
			r->next[1] = run_at(g, SEM_NEXT(o->imm));
	}
}

static void use(uint8_t *need, unsigned reg, unsigned w)
{
	if (reg < SEM_NREGS && need[reg] < w)
		need[reg] = (uint8_t)w;
}

static void group_uses(const struct sem_op *o, uint8_t *need)
{
	struct sem_vec v;

	memcpy(&v, o + 1, sizeof(v));
	use(need, o->a, 8);
	use(need, o->b, 8);
	if (o->op == SEM_RECVEC && v.mask != SEM_MASK_REG)
		return;
	use(need, v.count, 8);
	if (o->op != SEM_RECVEC)
		use(need, v.df, 4);
}

void live_before(const struct sem_op *o, uint8_t *need)
{
	struct sem_use u[4];
	unsigned nw = o->dst < SEM_NREGS ? need[o->dst] : 0;
	int n;

	if (sem_is_value(o->op)) {
		if (!nw)
			return;
		need[o->dst] = 0;
		n = sem_uses(o, nw, u);
		for (int i = 0; i < n; i++)
			use(need, u[i].reg, u[i].w);
		return;
	}
	switch (o->op) {
	case SEM_LOG:
	case SEM_LOGSX:
	case SEM_FLOW:
	case SEM_PTW:
	case SEM_PTWSX:
		if (nw)
			need[o->dst] = 0;
		return;
	case SEM_LOAD:
	case SEM_LOADRO:
		if (nw)
			need[o->dst] = 0;
		use(need, o->a, 8);
		return;
	case SEM_STORE:
		use(need, o->a, 8);
		use(need, o->b, o->w);
		return;
	case SEM_REC:
		use(need, o->a, 8);
		use(need, o->b, 8);
		return;
	case SEM_JCC:
	case SEM_IJMP:
	case SEM_RETX:
		use(need, o->a, 8);
		return;
	}
	if (sem_has_slot(o->op))
		group_uses(o, need);
}

static bool backward(struct graph *g, struct run *r)
{
	uint8_t need[SEM_NREGS] = {0};

	for (int k = 0; k < 2; k++)
		for (uint32_t i = 0; r->next[k] != NONE32 && i < SEM_NREGS; i++)
			use(need, i, g->run[r->next[k]].need[i]);
	for (uint32_t op = r->to < g->m->nop ? r->to + 1 : r->to; op-- > r->from;)
		live_before(&g->m->op[op], need); /* second slots are no ops: SEM_END */
	if (!memcmp(need, r->need, sizeof(need)))
		return false;
	memcpy(r->need, need, sizeof(need));
	return true;
}

void walk_live(const struct map *m, uint32_t op, struct live *l)
{
	struct graph g = {.m = m, .n = 1};
	bool again = true;

	g.run[0] = (struct run){.from = op, .next = {NONE32, NONE32}};
	link_runs(&g);
	for (int round = 0; again && round < NROUND; round++) {
		again = false;
		for (uint32_t i = g.n; i-- > 0;)
			again |= backward(&g, &g.run[i]);
	}
	memcpy(l->gpr, g.run[0].need, sizeof(l->gpr));
	l->lanes = l->memory = false;
	for (uint32_t i = SEM_V0; i < SEM_NREGS; i++)
		l->lanes |= g.run[0].need[i];
	for (uint32_t i = 0; i < g.n; i++)
		for (uint32_t k = g.run[i].from; k < g.run[i].to; k++)
			l->memory |= m->op[k].op == SEM_LOAD;
}

bool live_same(const struct live *l, const uint64_t *x, const uint64_t *y)
{
	for (int i = 0; i < SEM_NGPR; i++) {
		uint64_t mask = l->gpr[i] >= 8 ? ~0ull : (1ull << 8 * l->gpr[i]) - 1;

		if ((x[i] ^ y[i]) & mask)
			return false;
	}
	return true;
}
