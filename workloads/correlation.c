// SPDX-License-Identifier: MIT
/* correlation - the correlation matrix of n columns over n observations. */
#include <math.h>

#include "workload.h"

static const struct wl_size sizes[WL_SIZES] = {
	{"small", 200, 5},
	{"medium", 600, 8},
	{"large", 1200, 4},
};

/* normalise - bring each column to mean 0 and length 1 */
static void normalise(long n, double *data, double *mean, double *dev)
{
	for (long j = 0; j < n; j++) {
		mean[j] = 0.0;
		for (long i = 0; i < n; i++)
			mean[j] += data[i * n + j];
		mean[j] /= (double)n;
	}
	for (long j = 0; j < n; j++) {
		dev[j] = 0.0;
		for (long i = 0; i < n; i++) {
			double d = data[i * n + j] - mean[j];

			dev[j] += d * d;
		}
		dev[j] = sqrt(dev[j]);
		if (dev[j] < 1e-9)
			dev[j] = 1.0;
	}
	for (long i = 0; i < n; i++) {
		for (long j = 0; j < n; j++)
			data[i * n + j] = (data[i * n + j] - mean[j]) / dev[j];
	}
}

static void correlate(long n, const double *data, double *corr)
{
	for (long i = 0; i < n; i++) {
		corr[i * n + i] = 1.0;
		for (long j = i + 1; j < n; j++) {
			double sum = 0.0;

			for (long k = 0; k < n; k++)
				sum += data[k * n + i] * data[k * n + j];
			corr[i * n + j] = sum;
			corr[j * n + i] = sum;
		}
	}
}

int main(int argc, char **argv)
{
	struct wl_size s = wl_options(argc, argv, sizes);
	double *corr = wl_alloc((size_t)(s.n * s.n), sizeof(*corr));
	double *mean = wl_alloc((size_t)s.n, sizeof(*mean));
	double *dev = wl_alloc((size_t)s.n, sizeof(*dev));
	uint64_t sum = 0;

	for (long r = 0; r < s.reps; r++) {
		double *data = wl_matrix(s.n, s.n, 0.0, (uint64_t)r + 1);

		normalise(s.n, data, mean, dev);
		correlate(s.n, data, corr);
		sum = wl_mix_doubles(sum, corr, (size_t)(s.n * s.n));
		free(data);
	}
	return wl_report("correlation", s, sum);
}
