// SPDX-License-Identifier: MIT
/* jacobi-2d - five-point smoothing from one grid into another, and back. */
#include "workload.h"

static const struct wl_size sizes[WL_SIZES] = {
	{"small", 250, 200},
	{"medium", 1000, 700},
	{"large", 2000, 400},
};

static void smooth(long n, const double *restrict in, double *restrict out)
{
	for (long i = 1; i < n - 1; i++) {
		const double *row = in + i * n;

		for (long j = 1; j < n - 1; j++)
			out[i * n + j] = 0.2 * (row[j] + row[j - 1] + row[j + 1] + row[j - n] + row[j + n]);
	}
}

int main(int argc, char **argv)
{
	struct wl_size s = wl_options(argc, argv, sizes);
	double *a = wl_matrix(s.n, s.n, 0.0, 1);
	double *b = wl_matrix(s.n, s.n, 0.0, 1);

	for (long r = 0; r < s.reps; r++) {
		smooth(s.n, a, b);
		smooth(s.n, b, a);
	}
	return wl_report("jacobi-2d", s, wl_mix_doubles(0, a, (size_t)(s.n * s.n)));
}
