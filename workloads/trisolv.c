// SPDX-License-Identifier: MIT
/* trisolv - forward substitution with a lower triangular matrix, for many right-hand sides. */
#include "workload.h"

static const struct wl_size sizes[WL_SIZES] = {
	{"small", 400, 240},
	{"medium", 1500, 1300},
	{"large", 3000, 800},
};

static void solve(long n, const double *l, const double *b, double *x)
{
	for (long i = 0; i < n; i++) {
		double sum = b[i];

		for (long j = 0; j < i; j++)
			sum -= l[i * n + j] * x[j];
		x[i] = sum / l[i * n + i];
	}
}

int main(int argc, char **argv)
{
	struct wl_size s = wl_options(argc, argv, sizes);
	double *l = wl_matrix(s.n, s.n, -0.5, 1);
	double *b = wl_matrix(1, s.n, 0.0, 2);
	double *x = wl_alloc((size_t)s.n, sizeof(*x));
	uint64_t sum = 0;

	for (long i = 0; i < s.n; i++)
		l[i * s.n + i] = (double)s.n;
	for (long r = 0; r < s.reps; r++) {
		b[r % s.n] += 1.0;
		solve(s.n, l, b, x);
		sum = wl_mix_doubles(sum, x, (size_t)s.n);
	}
	return wl_report("trisolv", s, sum);
}
