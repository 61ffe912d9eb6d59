/* SPDX-License-Identifier: MIT
 *
 * emit_cycle.c - the copy's flow graph, and the space checks in its cycles
 *
 * Strongly connected components by Tarjan's algorithm, without the edges into checked blocks, until none is left that logs: each
 * time each of those that do gets a check, in the outermost loop's head. An interpreter's is found again for hundreds of checks, and
 * has hundreds of jumps with the same hundreds of targets. They share the edges: one that comes to them while another one has
 * followed some goes on from there, as those lead to blocks that are known. What it would have learnt from them, which of the
 * targets has been on the stack for longest, is kept by table.
 */
#include <stdlib.h>
#include <string.h>
#include "emit_cycle.h"
#include "scratch.h"

/* successors reached inside the copy, without a stub; returns how many (may exceed max) */
uint32_t flow_succ(const struct em *e, uint32_t b, uint32_t *out, uint32_t max)
{
	const struct an_block *k = &e->g->block[b];
	uint8_t fl = last(e->g, b)->flow;
	uint32_t n = 0;

	if (fl == FLOW_CALL || fl == FLOW_ICALL || fl == FLOW_RET || fl == FLOW_HALT)
		return 0;
	if (fl == FLOW_IJMP) {
		const struct an_table *t;

		if (glue_jump(e->m, e->g, b) != JUMP_PLAIN)
			return 0;
		t = &e->g->table[k->table];
		for (uint32_t i = 0; i < t->ntarget; i++, n++)
			if (n < max)
				out[n] = t->target[i];
		return n;
	}
	for (int s = 0; s < 2; s++)
		if (k->succ[s] != AN_NONE) {
			if (n < max)
				out[n] = k->succ[s];
			n++;
		}
	return n;
}

/* Interpreters jump from hundreds of places to the same hundreds of targets. */
static bool shared_table(struct em *e, struct flow *f, uint32_t b, uint32_t *first, uint32_t *nfirst)
{
	const struct an_table *t = &e->g->table[e->g->block[b].table];

	for (uint32_t i = 0; i < *nfirst; i++) {
		const struct an_table *o = &e->g->table[e->g->block[first[i]].table];

		if (o->ntarget != t->ntarget || memcmp(o->target, t->target, t->ntarget * sizeof(*t->target)))
			continue;
		f->as[b] = first[i];
		f->start[b] = f->start[first[i]];
		f->stop[b] = f->stop[first[i]];
		if (!f->table[first[i]]) {
			f->table[first[i]] = (uint8_t)++f->ntable;
			for (uint32_t k = 0; k < t->ntarget; k++)
				f->in[t->target[k]] |= 1u << (f->ntable - 1);
		}
		f->table[b] = f->table[first[i]];
		return true;
	}
	if (*nfirst < SHARED)
		first[(*nfirst)++] = b;
	return false;
}

void flow_build(struct em *e, struct flow *f)
{
	uint32_t nb = e->g->nblock, cap = 2 * nb, n = 0, first[SHARED], nfirst = 0;

	for (uint32_t i = 0; i < e->g->ntable; i++)
		cap += e->g->table[i].ntarget;
	f->start = scratch((5 * nb + cap) * sizeof(*f->start) + 3 * nb);
	if (!f->start)
		abort();
	f->stop = f->start + nb;
	f->end = f->stop + nb;
	f->as = f->end + nb;
	f->in = f->as + nb;
	f->to = f->in + nb;
	f->self = (uint8_t *)(f->to + cap);
	f->late = f->self + nb;
	f->table = f->late + nb;
	memset(f->self, 0, 3 * nb);
	memset(f->in, 0, nb * sizeof(*f->in));
	f->ntable = 0;
	f->back = false;
	for (uint32_t b = 0; b < nb; b++) {
		uint8_t fl = last(e->g, b)->flow;

		f->as[b] = b;
		if (fl != FLOW_IJMP || glue_jump(e->m, e->g, b) != JUMP_PLAIN ||
		    !shared_table(e, f, b, first, &nfirst)) {
			f->start[b] = n;
			f->stop[b] = n += flow_succ(e, b, f->to + n, cap - n);
		}
		f->end[b] = fl == FLOW_SYSCALL ? f->start[b] : f->stop[b];
		for (uint32_t i = f->start[b]; i < f->stop[b]; i++) {
			uint32_t to = f->to[i];

			e->nflow[to] = 1;
			if (to > b)
				continue;
			f->self[b] |= to == b && i < f->end[b];
			f->late[to] = f->back = true;
		}
	}
}

struct scc {
	uint32_t *idx, *low, *stk, *call;
	uint32_t *
		it; /* next edge, by the first block that has them: who comes later need not look at those that were followed */
	uint32_t *
		seen; /* what an edge to a block finds: 0, it is new; its idx while it is on the stack; NOWAY */
	uint32_t least[SHARED]; /* of what the edges of a shared table find */
	uint32_t *found, nfound; /* blocks to be checked */
	bool again; /* there may be cycles without them */
	uint32_t sp, next;
};
#define NOWAY 0xffffffffu

static void on_stack(const struct flow *f, struct scc *t, uint32_t v)
{
	t->seen[v] = t->idx[v];
	for (uint32_t in = f->in[v]; in; in &= in - 1) {
		uint32_t *least = &t->least[__builtin_ctz(in)];

		*least = t->idx[v] < *least ? t->idx[v] : *least;
	}
}

/* what has come onto the stack later is taken off at the same time */
static void off_stack(const struct flow *f, struct scc *t, uint32_t v)
{
	t->seen[v] = NOWAY;
	for (uint32_t in = f->in[v]; in; in &= in - 1) {
		uint32_t *least = &t->least[__builtin_ctz(in)];

		*least = *least == t->idx[v] ? NOWAY : *least;
	}
}

static void scc_close(struct em *e, const struct flow *f, struct scc *t, uint32_t v)
{
	uint32_t from = t->sp, best = v, deepest = 0, heads = 0;
	bool need = false;

	do
		off_stack(f, t, t->stk[--from]);
	while (t->stk[from] != v);
	if (t->sp - from == 1 && (!f->self[v] || e->chk_body[v])) {
		t->sp = from;
		return;
	}
	for (uint32_t i = from; i < t->sp; i++) {
		uint32_t w = t->stk[i];
		const struct an_block *k = &e->g->block[w], *o = &e->g->block[best];

		need |= e->bytes[w] || e->tells[w];
		heads += (k->flags & AN_B_LOOPHEAD) != 0;
		deepest = k->depth > deepest ? k->depth : deepest;
		if (k->depth < o->depth ||
		    (k->depth == o->depth && (k->flags & AN_B_LOOPHEAD) && !(o->flags & AN_B_LOOPHEAD)))
			best = w;
	}
	t->sp = from;
	if (e->m->mapflags & MAP_F_PT)
		need |= deepest > e->g->block[best].depth;
	if (!need)
		return;
	t->found[t->nfound++] = best; /* checked after this pass */
	/* each cycle has a loop head in it */
	t->again |= heads > ((e->g->block[best].flags & AN_B_LOOPHEAD) != 0);
}

/* the first of the edges from `at` to `end` that leads to a new block; *low: the least of what the others find */
static const uint32_t *scan(const uint32_t *seen, const uint32_t *at, const uint32_t *end, uint32_t *low)
{
	uint32_t l = *low, k;

	for (; at < end && (k = seen[*at]); at++)
		l = k < l ? k : l;
	*low = l;
	return at;
}

static void scc_from(struct em *e, const struct flow *f, struct scc *t, uint32_t root)
{
	uint32_t depth = 0, v = root;

	for (;;) { /* v is new */
		t->idx[v] = t->low[v] = ++t->next;
		if (!e->chk_body[v])
			on_stack(f, t, v);
		t->stk[t->sp++] = v;
		t->call[depth++] = v;
		while (depth) {
			uint32_t *it, low, end;

			v = t->call[depth - 1];
			it = &t->it[f->as[v]];
			low = t->low[v];
			end = f->end[v];
			*it = (uint32_t)(scan(t->seen, f->to + *it, f->to + end, &low) - f->to);
			if (*it < end) {
				t->low[v] = low;
				v = f->to[(*it)++];
				break;
			}
			if (f->table[v] && t->least[f->table[v] - 1] < low)
				low = t->least[f->table[v] - 1];
			if (low == t->idx[v])
				scc_close(e, f, t, v);
			depth--;
			if (depth && low < t->low[t->call[depth - 1]])
				t->low[t->call[depth - 1]] = low;
		}
		if (!depth)
			return;
	}
}

void cut_cycles(struct em *e, const struct flow *f)
{
	uint32_t nb = e->g->nblock;
	struct scc t = {0};
	uint32_t *mem = f->back ? scratch((size_t)nb * 7 * 4) : NULL;

	if (!f->back)
		return;
	if (!mem)
		abort();
	t.idx = mem;
	t.low = mem + nb;
	t.stk = mem + 2 * nb;
	t.it = mem + 3 * nb;
	t.call = mem + 4 * nb;
	t.seen = mem + 5 * nb;
	t.found = mem + 6 * nb;
	do {
		for (uint32_t b = 0; b < nb; b++)
			t.seen[b] = e->chk_body[b] ? NOWAY : 0;
		memset(t.least, 0xff, sizeof(t.least)); /* NOWAY */
		memcpy(t.it, f->start, nb * sizeof(*t.it));
		t.next = t.sp = t.nfound = 0;
		t.again = false;
		for (uint32_t b = 0; b < nb; b++)
			if (!t.seen[b] || e->chk_body[b])
				scc_from(e, f, &t, b);
		for (uint32_t i = 0; i < t.nfound; i++)
			e->chk_body[t.found[i]] = 1;
	} while (t.again);
}
