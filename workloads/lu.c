// SPDX-License-Identifier: MIT
/* lu - LU factorisation in place without pivoting, of a diagonally dominant matrix. */
#include "workload.h"

static const struct wl_size sizes[WL_SIZES] = {
	{"small", 250, 4},
	{"medium", 800, 15},
	{"large", 1600, 6},
};

static void lu(long n, double *a)
{
	for (long k = 0; k < n; k++) {
		for (long i = k + 1; i < n; i++) {
			double factor = a[i * n + k] / a[k * n + k];

			a[i * n + k] = factor;
			for (long j = k + 1; j < n; j++)
				a[i * n + j] -= factor * a[k * n + j];
		}
	}
}

int main(int argc, char **argv)
{
	struct wl_size s = wl_options(argc, argv, sizes);
	uint64_t sum = 0;

	for (long r = 0; r < s.reps; r++) {
		double *a = wl_matrix(s.n, s.n, 0.0, (uint64_t)r + 1);

		for (long i = 0; i < s.n; i++)
			a[i * s.n + i] += (double)s.n;
		lu(s.n, a);
		sum = wl_mix_doubles(sum, a, (size_t)(s.n * s.n));
		free(a);
	}
	return wl_report("lu", s, sum);
}
