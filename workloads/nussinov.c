// SPDX-License-Identifier: MIT
/*
 * nussinov - dynamic programming: the largest number of base pairs in the folding of an RNA
 * sequence. score[i][j] is the best for the bases i to j, filled from short spans to long.
 */
#include "workload.h"

static const struct wl_size sizes[WL_SIZES] = {
	{"small", 350, 5},
	{"medium", 1300, 3},
	{"large", 2600, 2},
};

/* pairs - bases are 0 to 3, and pair with the base that completes them to 3 */
static int pairs(const unsigned char *base, long i, long j)
{
	return base[i] + base[j] == 3;
}

static int better(int a, int b)
{
	return a > b ? a : b;
}

static void fold(long n, const unsigned char *base, int *score)
{
	for (long i = n - 1; i >= 0; i--) {
		for (long j = i + 1; j < n; j++) {
			int best = better(score[i * n + j - 1], score[(i + 1) * n + j]);

			best = better(best, score[(i + 1) * n + j - 1] + (j - i > 1 && pairs(base, i, j)));
			for (long k = i + 1; k < j; k++)
				best = better(best, score[i * n + k] + score[(k + 1) * n + j]);
			score[i * n + j] = best;
		}
	}
}

int main(int argc, char **argv)
{
	struct wl_size s = wl_options(argc, argv, sizes);
	unsigned char *base = wl_alloc((size_t)s.n, 1);
	uint64_t seed = 1, sum = 0;

	for (long r = 0; r < s.reps; r++) {
		int *score = wl_alloc((size_t)(s.n * s.n), sizeof(*score));

		for (long i = 0; i < s.n; i++)
			base[i] = (unsigned char)(wl_rand(&seed) >> 62);
		fold(s.n, base, score);
		for (long i = 0; i < s.n * s.n; i++)
			sum = wl_mix(sum, (uint64_t)score[i]);
		free(score);
	}
	return wl_report("nussinov", s, sum);
}
