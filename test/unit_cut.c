/* SPDX-License-Identifier: MIT
 *
 * unit_cut.c - minimum cuts: trees that stay after a change against a flow from nothing
 *
 * Random graphs, sparse and with capacities that are often infinite, as value graphs are. After each change of what
 * comes from the source the nodes on its side have to be those of the same graph solved anew.
 */
#include <stdio.h>
#include <stdlib.h>
#include "cut.h"

#define GRAPHS 20000
#define CHANGES 4
#define MOST 40 /* nodes */

static uint64_t seed = 88172645463325252ull;

static uint32_t draw(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 16) % n;
}

static struct flow_arc arc[4 * MOST];
static uint32_t narc, nodes;
static int64_t source[MOST]; /* what comes from the source, by node */

static void draw_graph(void)
{
	nodes = 3 + draw(MOST - 3);
	narc = draw(3 * nodes);
	for (uint32_t i = 0; i < narc; i++) {
		uint32_t to = 1 + draw(nodes - 1); /* FLOW_SINK among them */

		arc[i] = (struct flow_arc){
			.from = 2 + draw(nodes - 2), .to = to, .cap = draw(4) ? 1 + draw(30) : CUT_INF};
	}
	for (uint32_t i = 0; i < nodes; i++)
		source[i] = i >= 2 && !draw(3) ? 1 + draw(60) : 0;
}

/* false: no memory */
static bool make(struct flow *f)
{
	*f = (struct flow){0};
	for (uint32_t i = 0; i < narc; i++)
		if (arc[i].from != arc[i].to)
			flow_edge(f, arc[i]);
	for (uint32_t i = 2; i < nodes; i++)
		if (source[i])
			flow_edge(f, (struct flow_arc){.to = i, .cap = source[i]});
	return flow_seal(f, nodes) == 0;
}

static void change(struct flow *f)
{
	for (uint32_t i = 2; i < nodes; i++) {
		int64_t cap = draw(4) ? 0 : 1 + draw(60);

		if (!source[i] || draw(2))
			continue;
		flow_add(f, i, cap - source[i]);
		source[i] = cap;
	}
}

static unsigned long compare(const struct flow *f)
{
	struct scratch_mark mark = scratch_mark();
	unsigned long bad = 0;
	struct flow g;

	if (!make(&g) || !flow_run(&g, UINT64_MAX))
		return 1;
	for (uint32_t i = 2; i < nodes; i++)
		bad += flow_source_side(f, i) != flow_source_side(&g, i);
	scratch_release(mark);
	return bad;
}

int main(void)
{
	unsigned long bad = 0, some = 0;

	for (int i = 0; i < GRAPHS; i++) {
		struct scratch_mark mark = scratch_mark();
		struct flow f;

		draw_graph();
		if (!make(&f) || !flow_run(&f, UINT64_MAX))
			bad++;
		for (int k = 0; k < CHANGES && !bad; k++) {
			change(&f);
			if (!flow_run(&f, UINT64_MAX))
				bad++;
			bad += compare(&f);
			for (uint32_t n = 2; n < nodes; n++)
				some += flow_source_side(&f, n);
		}
		scratch_release(mark);
	}
	printf("unit_cut: %d graphs, %lu nodes on the source's side, %lu wrong\n", GRAPHS, some, bad);
	return bad || !some;
}
