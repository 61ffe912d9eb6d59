/* SPDX-License-Identifier: MIT
 *
 * cut_dinic.c - maximum flow by Dinic's algorithm: levels by breadth-first search back from
 * the sink, then blocking flows by depth-first search along them (iterative: value chains can be long)
 */
#include <stdlib.h>
#include "cut.h"

static bool more_arcs(struct flow *f)
{
	uint32_t n = f->caparc ? f->caparc * 2 : 1024;
	void *p = realloc(f->arc, n * sizeof(*f->arc));

	if (!p) {
		f->fail = true;
		return false;
	}
	f->arc = p;
	f->caparc = n;
	return true;
}

uint32_t flow_edge(struct flow *f, uint32_t from, uint32_t to, int64_t cap)
{
	if (f->narc == f->caparc && !more_arcs(f))
		return 0;
	f->arc[f->narc] = (struct flow_arc){from, to, cap};
	return f->narc++;
}

int flow_seal(struct flow *f, uint32_t nodes)
{
	uint32_t *at;

	f->n = nodes;
	f->ne = 2 * f->narc;
	f->e = malloc((f->ne + 1) * sizeof(*f->e));
	f->first = calloc(nodes + 2, sizeof(uint32_t));
	f->cur = malloc((nodes + 1) * sizeof(uint32_t));
	f->level = malloc((nodes + 1) * sizeof(uint32_t));
	f->queue = malloc((nodes + 1) * sizeof(uint32_t));
	if (f->fail || !f->e || !f->first || !f->cur || !f->level || !f->queue)
		return -1;
	at = f->cur;
	for (uint32_t i = 0; i < f->narc; i++) {
		f->first[f->arc[i].from + 1]++;
		f->first[f->arc[i].to + 1]++;
	}
	for (uint32_t i = 0; i < nodes; i++) {
		f->first[i + 1] += f->first[i];
		at[i] = f->first[i];
	}
	for (uint32_t i = 0; i < f->narc; i++) {
		struct flow_arc *a = &f->arc[i];
		uint32_t x = at[a->from]++, y = at[a->to]++;

		f->e[x] = (struct flow_edge){a->to, y, a->cap};
		f->e[y] = (struct flow_edge){a->from, x, 0};
		a->from = x;
	}
	return 0;
}

void flow_widen(struct flow *f, uint32_t arc, int64_t cap)
{
	f->e[f->arc[arc].from].cap += cap;
}

void flow_close(struct flow *f)
{
	free(f->e);
	free(f->arc);
	free(f->first);
	free(f->cur);
	free(f->level);
	free(f->queue);
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
		*visits += f->first[x + 1] - f->first[x];
		for (uint32_t e = f->first[x]; e < f->first[x + 1]; e++) {
			uint32_t from = f->e[e].to;

			if (f->level[from] == AN_NONE && f->e[f->e[e].rev].cap > 0) {
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
		for (uint32_t e = f->first[f->queue[q]]; e < f->first[f->queue[q] + 1]; e++)
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
		f->e[f->e[f->queue[i]].rev].cap += most;
		if (!f->e[f->queue[i]].cap)
			back = i;
	}
	return back;
}

/* One blocking flow. queue[] holds the edges of the path from s. */
static void block_flow(struct flow *f, uint32_t s, uint32_t t, uint64_t *visits)
{
	uint32_t depth = 0, x = s;

	memcpy(f->cur, f->first, f->n * sizeof(uint32_t));
	for (;;) {
		if (x == t) {
			depth = augment(f, depth);
			x = f->e[f->e[f->queue[depth]].rev].to;
			continue;
		}
		while (f->cur[x] < f->first[x + 1]) {
			const struct flow_edge *e = &f->e[f->cur[x]];

			++*visits;
			if (e->cap > 0 && f->level[e->to] != AN_NONE && f->level[e->to] + 1 == f->level[x])
				break;
			f->cur[x]++;
		}
		if (f->cur[x] < f->first[x + 1]) {
			f->queue[depth++] = f->cur[x];
			x = f->e[f->cur[x]].to;
		} else {
			if (!depth)
				return;
			f->level[x] = AN_NONE; /* dead end */
			x = f->e[f->e[f->queue[--depth]].rev].to;
			f->cur[x]++;
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
