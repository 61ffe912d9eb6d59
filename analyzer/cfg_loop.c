/* SPDX-License-Identifier: MIT
 *
 * cfg_loop.c - loop heads and nesting depth
 *
 * A depth-first search from every place control can enter marks the target of each edge that
 * goes back to a block still on the search's stack: every cycle, irreducible ones included, then
 * has a marked block. Depth counts the natural loops around a block: for each head, all blocks
 * that reach one of its back edges without passing the head. In an irreducible loop that may take
 * in blocks before the loop: depth is a weight, not a proof.
 */
#include <string.h>
#include "disc.h"
#include "scratch.h"

enum { DEPTH_MAX = 8, WORK_PER_BLOCK = 64 };

struct dfs {
	struct an_group *g;
	uint8_t *state; /* 0 new, 1 on the stack, 2 done */
	uint32_t *stack, *edge; /* block; next successor to look at */
	VEC(struct edge) back; /* from, to: block indices */
};

static uint32_t nth_succ(const struct an_group *g, uint32_t b, uint32_t k, bool *end)
{
	const struct an_block *bl = &g->block[b];

	if (k < 2)
		return bl->succ[k];
	k -= 2;
	if (bl->table == AN_NONE || k >= g->table[bl->table].ntarget) {
		*end = true;
		return AN_NONE;
	}
	return g->table[bl->table].target[k];
}

/* AN_B_REACHED: what the search from entries and landing pads has found, and what other targets lead to */
static void mark_reached(struct dfs *s)
{
	struct an_group *g = s->g;
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->nblock; i++) {
		if (s->state[i]) {
			g->block[i].flags |= AN_B_REACHED;
		} else if (g->block[i].flags & (AN_B_TARGET | AN_B_ANYTARGET)) {
			g->block[i].flags |= AN_B_REACHED;
			s->stack[n++] = i;
		}
	}
	while (n) {
		uint32_t b = s->stack[--n];
		bool end = false;

		for (uint32_t k = 0; !end; k++) {
			uint32_t t = nth_succ(g, b, k, &end);

			if (t == AN_NONE || s->state[t] || (g->block[t].flags & AN_B_REACHED))
				continue;
			g->block[t].flags |= AN_B_REACHED;
			s->stack[n++] = t;
		}
	}
}

static bool dfs_from(struct dfs *s, uint32_t root)
{
	uint32_t n = 0;

	if (s->state[root])
		return true;
	s->state[root] = 1;
	s->stack[0] = root;
	s->edge[0] = 0;
	for (n = 1; n;) {
		uint32_t b = s->stack[n - 1];
		bool end = false;
		uint32_t t = nth_succ(s->g, b, s->edge[n - 1]++, &end);

		if (end) {
			s->state[b] = 2;
			n--;
		} else if (t == AN_NONE) {
			continue;
		} else if (s->state[t] == 1) {
			s->g->block[t].flags |= AN_B_LOOPHEAD;
			if (!VEC_PUSH(&s->back, (struct edge){b, t}))
				return false;
		} else if (!s->state[t]) {
			s->state[t] = 1;
			s->stack[n] = t;
			s->edge[n++] = 0;
		}
	}
	return true;
}

static int cmp_back(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	return x->to != y->to ? (x->to < y->to ? -1 : 1) : x->from < y->from ? -1 : x->from > y->from;
}

/* They are few, mostly, and nearly in order. */
static void sort_back(struct edge *v, uint32_t n)
{
	if (n > 32) {
		qsort(v, n, sizeof(*v), cmp_back);
		return;
	}
	for (uint32_t i = 1; i < n; i++) {
		struct edge e = v[i];
		uint32_t k = i;

		for (; k && cmp_back(&v[k - 1], &e) > 0; k--)
			v[k] = v[k - 1];
		v[k] = e;
	}
}

/* One loop: all back edges to the same head. Returns the steps taken. */
static uint64_t deepen(struct dfs *s, const struct edge *e, uint32_t n, uint32_t *mark, uint32_t stamp)
{
	struct an_group *g = s->g;
	uint32_t head = e->to, sp = 0;
	uint64_t steps = 1;

	mark[head] = stamp;
	g->block[head].depth += g->block[head].depth < DEPTH_MAX;
	for (uint32_t i = 0; i < n; i++)
		if (mark[e[i].from] != stamp) {
			mark[e[i].from] = stamp;
			s->stack[sp++] = e[i].from;
		}
	while (sp) {
		struct an_block *b = &g->block[s->stack[--sp]];

		b->depth += b->depth < DEPTH_MAX;
		steps += 1 + b->npred;
		for (uint32_t k = 0; k < b->npred; k++)
			if (mark[b->pred[k]] != stamp) {
				mark[b->pred[k]] = stamp;
				s->stack[sp++] = b->pred[k];
			}
	}
	return steps;
}

int cfg_loops(struct an_group *g)
{
	static const uint32_t from[] = {AN_B_ENTRY, AN_B_LANDING};
	struct scratch_mark m = scratch_mark();
	struct dfs s = {.g = g};
	uint32_t n = g->nblock, *mark;
	uint64_t budget = (uint64_t)n * WORK_PER_BLOCK + 1000;
	int rc = -1;

	if (!n)
		return 0;
	s.state = scratch_zero(n);
	s.stack = scratch(n * sizeof(*s.stack));
	s.edge = scratch(n * sizeof(*s.edge));
	mark = scratch(n * sizeof(*mark));
	if (!s.state || !s.stack || !s.edge || !mark)
		goto out;
	/* entries first, so that loops are found from above; then whatever else there is */
	for (int pass = 0; pass < 3; pass++) {
		if (pass == 2)
			mark_reached(&s);
		for (uint32_t i = 0; i < n; i++)
			if (!s.state[i] && (pass == 2 || (g->block[i].flags & from[pass])) &&
			    !dfs_from(&s, i))
				goto out;
	}
	if (s.back.n)
		memset(mark, 0xff, n * sizeof(*mark));
	sort_back(s.back.v, s.back.n);
	for (uint32_t i = 0, k; i < s.back.n; i = k) {
		uint64_t used;

		for (k = i + 1; k < s.back.n && s.back.v[k].to == s.back.v[i].to; k++)
			;
		used = deepen(&s, &s.back.v[i], k - i, mark, i);
		if (used > budget)
			break;
		budget -= used;
	}
	rc = 0;
out:
	scratch_release(m);
	free(s.back.v);
	return rc;
}
