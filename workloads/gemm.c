// SPDX-License-Identifier: MIT
/* gemm - C = beta * C + alpha * A * B, the loops in i, k, j order: unit strides only. */
#include "workload.h"

static const struct wl_size sizes[WL_SIZES] = {
	{"small", 200, 4},
	{"medium", 600, 13},
	{"large", 1200, 6},
};

static void gemm(long n, double alpha, double beta, double *restrict c, const double *restrict a,
		 const double *restrict b)
{
	for (long i = 0; i < n; i++) {
		for (long j = 0; j < n; j++)
			c[i * n + j] *= beta;
		for (long k = 0; k < n; k++) {
			double x = alpha * a[i * n + k];

			for (long j = 0; j < n; j++)
				c[i * n + j] += x * b[k * n + j];
		}
	}
}

int main(int argc, char **argv)
{
	struct wl_size s = wl_options(argc, argv, sizes);
	double *a = wl_matrix(s.n, s.n, 0.0, 1);
	double *b = wl_matrix(s.n, s.n, 0.0, 2);
	double *c = wl_matrix(s.n, s.n, 0.0, 3);

	for (long r = 0; r < s.reps; r++)
		gemm(s.n, 1.5, 0.25, c, a, b);
	return wl_report("gemm", s, wl_mix_doubles(0, c, (size_t)(s.n * s.n)));
}
