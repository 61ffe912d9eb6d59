// SPDX-License-Identifier: MIT
/* cholesky - factor a symmetric positive definite matrix in place, row by row. */
#include <math.h>

#include "workload.h"

static const struct wl_size sizes[WL_SIZES] = {
	{"small", 250, 8},
	{"medium", 900, 13},
	{"large", 1800, 6},
};

/* fill - symmetric, with a diagonal heavy enough to be positive definite */
static void fill(long n, double *a, const double *source)
{
	for (long i = 0; i < n; i++) {
		for (long j = 0; j <= i; j++) {
			a[i * n + j] = source[i * n + j];
			a[j * n + i] = source[i * n + j];
		}
		a[i * n + i] += (double)n;
	}
}

static void cholesky(long n, double *a)
{
	for (long i = 0; i < n; i++) {
		for (long j = 0; j < i; j++) {
			double sum = a[i * n + j];

			for (long k = 0; k < j; k++)
				sum -= a[i * n + k] * a[j * n + k];
			a[i * n + j] = sum / a[j * n + j];
		}
		for (long k = 0; k < i; k++)
			a[i * n + i] -= a[i * n + k] * a[i * n + k];
		a[i * n + i] = sqrt(a[i * n + i]);
	}
}

int main(int argc, char **argv)
{
	struct wl_size s = wl_options(argc, argv, sizes);
	double *source = wl_matrix(s.n, s.n, 0.0, 1);
	double *a = wl_alloc((size_t)(s.n * s.n), sizeof(*a));
	uint64_t sum = 0;

	for (long r = 0; r < s.reps; r++) {
		fill(s.n, a, source);
		cholesky(s.n, a);
		sum = wl_mix_doubles(sum, a, (size_t)(s.n * s.n));
	}
	return wl_report("cholesky", s, sum);
}
