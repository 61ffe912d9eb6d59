// SPDX-License-Identifier: MIT
/* floyd-warshall - all shortest paths of a dense graph. As in PolyBench/C, the minimum is an expression and is
 * always stored. */
#include "workload.h"

static const struct wl_size sizes[WL_SIZES] = {
	{"small", 200, 3},
	{"medium", 700, 5},
	{"large", 1400, 2},
};

static void shortest_paths(long n, int *d)
{
	for (long k = 0; k < n; k++) {
		for (long i = 0; i < n; i++) {
			for (long j = 0; j < n; j++) {
				int length = d[i * n + k] + d[k * n + j];

				d[i * n + j] = d[i * n + j] < length ? d[i * n + j] : length;
			}
		}
	}
}

int main(int argc, char **argv)
{
	struct wl_size s = wl_options(argc, argv, sizes);
	int *d = wl_alloc((size_t)(s.n * s.n), sizeof(*d));
	uint64_t seed = 1, sum = 0;

	for (long r = 0; r < s.reps; r++) {
		for (long i = 0; i < s.n * s.n; i++)
			d[i] = i % (s.n + 1) ? 1 + (int)(wl_rand(&seed) >> 44) : 0;
		shortest_paths(s.n, d);
		for (long i = 0; i < s.n * s.n; i++)
			sum = wl_mix(sum, (uint64_t)d[i]);
	}
	return wl_report("floyd-warshall", s, sum);
}
