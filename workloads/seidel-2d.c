// SPDX-License-Identifier: MIT
/* seidel-2d - nine-point smoothing in place: each point waits for its left neighbour. */
#include "workload.h"

static const struct wl_size sizes[WL_SIZES] = {
	{"small", 200, 70},
	{"medium", 800, 200},
	{"large", 1600, 120},
};

static void smooth(long n, double *a)
{
	for (long i = 1; i < n - 1; i++) {
		for (long j = 1; j < n - 1; j++) {
			double *p = a + i * n + j;

			*p = (p[-n - 1] + p[-n] + p[-n + 1] + p[-1] + p[0] + p[1] + p[n - 1] + p[n] +
			      p[n + 1]) /
			     9.0;
		}
	}
}

int main(int argc, char **argv)
{
	struct wl_size s = wl_options(argc, argv, sizes);
	double *a = wl_matrix(s.n, s.n, 0.0, 1);

	for (long r = 0; r < s.reps; r++)
		smooth(s.n, a);
	return wl_report("seidel-2d", s, wl_mix_doubles(0, a, (size_t)(s.n * s.n)));
}
