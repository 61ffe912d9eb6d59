/* SPDX-License-Identifier: MIT
 *
 * cut_dinic.c - maximum flow by Dinic's algorithm: levels by breadth-first search back from
 * the sink, then blocking flows by depth-first search along them (iterative: value chains can be long)
 */
#include <stdlib.h>
#include "cut.h"

int flow_open(struct flow *f, uint32_t nodes)
{
	memset(f, 0, sizeof(*f));
	f->n = nodes;
	f->head = malloc((nodes + 1) * sizeof(uint32_t));
	f->cur = malloc((nodes + 1) * sizeof(uint32_t));
	f->level = malloc((nodes + 1) * sizeof(uint32_t));
	f->queue = malloc((nodes + 1) * sizeof(uint32_t));
	if (!f->head || !f->cur || !f->level || !f->queue)
		return -1;
	for (uint32_t i = 0; i < nodes; i++)
		f->head[i] = AN_NONE;
	return 0;
}

void flow_close(struct flow *f)
{
	free(f->e);
	free(f->head);
	free(f->cur);
	free(f->level);
	free(f->queue);
}

static void half(struct flow *f, uint32_t from, uint32_t to, int64_t cap)
{
	f->e[f->ne] = (struct flow_edge){to, f->head[from], cap};
	f->head[from] = f->ne++;
}

void flow_edge(struct flow *f, uint32_t from, uint32_t to, int64_t cap)
{
	if (f->ne + 2 > f->cape) {
		uint32_t cap2 = f->cape ? f->cape * 2 : 1024;
		void *p = realloc(f->e, cap2 * sizeof(*f->e));

		if (!p) {
			f->fail = true;
			return;
		}
		f->e = p;
		f->cape = cap2;
	}
	half(f, from, to, cap);
	half(f, to, from, 0);
}

/* levels - distance to t over edges with room, as far as s; false if s cannot reach t */
static bool levels(struct flow *f, uint32_t s, uint32_t t, uint64_t *visits)
{
	uint32_t n = 0;

	memset(f->level, 0xff, f->n * sizeof(uint32_t));
	f->level[t] = 0;
	f->queue[n++] = t;
	for (uint32_t q = 0; q < n; q++) {
		uint32_t x = f->queue[q];

		if (f->level[s] != AN_NONE && f->level[x] >= f->level[s])
			break;
		for (uint32_t e = f->head[x]; e != AN_NONE; e = f->e[e].next) {
			uint32_t from = f->e[e].to;

			++*visits;
			if (f->level[from] == AN_NONE && f->e[e ^ 1].cap > 0) {
				f->level[from] = f->level[x] + 1;
				f->queue[n++] = from;
			}
		}
	}
	return f->level[s] != AN_NONE;
}

/* what s still reaches: its side of the cut */
static void side(struct flow *f, uint32_t s)
{
	uint32_t n = 0;

	memset(f->level, 0xff, f->n * sizeof(uint32_t));
	f->level[s] = 0;
	f->queue[n++] = s;
	for (uint32_t q = 0; q < n; q++)
		for (uint32_t e = f->head[f->queue[q]]; e != AN_NONE; e = f->e[e].next)
			if (f->e[e].cap > 0 && f->level[f->e[e].to] == AN_NONE) {
				f->level[f->e[e].to] = 0;
				f->queue[n++] = f->e[e].to;
			}
}

/* push what fits along the path in queue[0..depth); returns how much of the path still has room */
static uint32_t augment(struct flow *f, uint32_t depth)
{
	int64_t most = CUT_INF * 4;
	uint32_t back = 0;

	for (uint32_t i = 0; i < depth; i++)
		if (f->e[f->queue[i]].cap < most)
			most = f->e[f->queue[i]].cap;
	for (uint32_t i = depth; i-- > 0;) {
		f->e[f->queue[i]].cap -= most;
		f->e[f->queue[i] ^ 1].cap += most;
		if (!f->e[f->queue[i]].cap)
			back = i;
	}
	return back;
}

/* One blocking flow. queue[] holds the edges of the path from s. */
static void block_flow(struct flow *f, uint32_t s, uint32_t t, uint64_t *visits)
{
	uint32_t depth = 0, x = s;

	memcpy(f->cur, f->head, f->n * sizeof(uint32_t));
	for (;;) {
		if (x == t) {
			depth = augment(f, depth);
			x = f->e[f->queue[depth] ^ 1].to;
			continue;
		}
		while (f->cur[x] != AN_NONE) {
			const struct flow_edge *e = &f->e[f->cur[x]];

			++*visits;
			if (e->cap > 0 && f->level[e->to] != AN_NONE && f->level[e->to] + 1 == f->level[x])
				break;
			f->cur[x] = e->next;
		}
		if (f->cur[x] != AN_NONE) {
			f->queue[depth++] = f->cur[x];
			x = f->e[f->cur[x]].to;
		} else {
			if (!depth)
				return;
			f->level[x] = AN_NONE; /* dead end */
			x = f->e[f->queue[--depth] ^ 1].to;
			f->cur[x] = f->e[f->cur[x]].next;
		}
	}
}

bool flow_run(struct flow *f, uint32_t s, uint32_t t, uint64_t budget)
{
	uint64_t visits = 0;

	while (levels(f, s, t, &visits)) {
		block_flow(f, s, t, &visits);
		if (visits > budget)
			return false;
	}
	side(f, s);
	return true;
}
