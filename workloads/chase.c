// SPDX-License-Identifier: MIT
/*
 * chase - follow one random cycle of pointers through n nodes of a cache line each, count the
 * visits and relink a few nodes now and then: every address comes from memory.
 */
#include "workload.h"

static const struct wl_size sizes[WL_SIZES] = {
	{"small", 20000, 80},
	{"medium", 100000, 190},
	{"large", 1000000, 40},
};

struct node {
	struct node *next;
	uint64_t visits;
	uint64_t key;
	uint64_t pad[5];
};

/* link_cycle - one cycle through all nodes (Sattolo's shuffle) */
static void link_cycle(struct node *nodes, long n, uint64_t *seed)
{
	long *order = wl_alloc((size_t)n, sizeof(*order));

	for (long i = 0; i < n; i++)
		order[i] = i;
	for (long i = n - 1; i > 0; i--) {
		long j = (long)(wl_rand(seed) % (uint64_t)i);
		long t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
	for (long i = 0; i < n; i++) {
		nodes[i].next = &nodes[order[i]];
		nodes[i].key = wl_rand(seed);
	}
	free(order);
}

static uint64_t walk(struct node *p, long steps, uint64_t sum)
{
	for (long i = 0; i < steps; i++) {
		struct node *q = p->next;

		p->visits++;
		/* Swap the next two nodes: the cycle stays one cycle. */
		if (((p->key ^ sum) & 63) == 0) {
			struct node *r = q->next;

			q->next = r->next;
			r->next = q;
			p->next = r;
			q = r;
		}
		sum = sum * 5 + q->key;
		p = q;
	}
	return sum;
}

int main(int argc, char **argv)
{
	struct wl_size s = wl_options(argc, argv, sizes);
	struct node *nodes = wl_alloc((size_t)s.n, sizeof(*nodes));
	uint64_t seed = 1, sum = 0;

	link_cycle(nodes, s.n, &seed);
	sum = walk(nodes, s.n * s.reps, sum);
	for (long i = 0; i < s.n; i++)
		sum = wl_mix(sum, nodes[i].visits);
	return wl_report("chase", s, sum);
}
