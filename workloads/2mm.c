// SPDX-License-Identifier: MIT
/* 2mm - D = beta * D + (alpha * A * B) * C, dot products down the columns: long strides. */
#include "workload.h"

static const struct wl_size sizes[WL_SIZES] = {
	{"small", 150, 4},
	{"medium", 480, 7},
	{"large", 900, 4},
};

static void multiply(long n, double alpha, const double *a, const double *b, double beta, double *out)
{
	for (long i = 0; i < n; i++) {
		for (long j = 0; j < n; j++) {
			double sum = 0.0;

			for (long k = 0; k < n; k++)
				sum += a[i * n + k] * b[k * n + j];
			out[i * n + j] = beta * out[i * n + j] + alpha * sum;
		}
	}
}

int main(int argc, char **argv)
{
	struct wl_size s = wl_options(argc, argv, sizes);
	double *a = wl_matrix(s.n, s.n, 0.0, 1);
	double *b = wl_matrix(s.n, s.n, 0.0, 2);
	double *c = wl_matrix(s.n, s.n, 0.0, 3);
	double *d = wl_matrix(s.n, s.n, 0.0, 4);
	double *tmp = wl_alloc((size_t)(s.n * s.n), sizeof(*tmp));

	for (long r = 0; r < s.reps; r++) {
		multiply(s.n, 1.5, a, b, 0.0, tmp);
		multiply(s.n, 1.0, tmp, c, 0.125, d);
	}
	return wl_report("2mm", s, wl_mix_doubles(0, d, (size_t)(s.n * s.n)));
}
