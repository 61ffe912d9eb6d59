// SPDX-License-Identifier: MIT
/* sort - quicksort by recursion and radix sort by counting, of the same keys; both must agree. */
#include "workload.h"

static const struct wl_size sizes[WL_SIZES] = {
	{"small", 20000, 12},
	{"medium", 400000, 26},
	{"large", 2000000, 10},
};

#define SHORT_RUN 16 /* keys: below this, insertion sort */

static void insertion_sort(uint64_t *v, long n)
{
	for (long i = 1; i < n; i++) {
		uint64_t x = v[i];
		long j = i;

		for (; j > 0 && v[j - 1] > x; j--)
			v[j] = v[j - 1];
		v[j] = x;
	}
}

static void swap(uint64_t *a, uint64_t *b)
{
	uint64_t t = *a;

	*a = *b;
	*b = t;
}

/* quick_sort - Hoare's partition around the median of three */
static void quick_sort(uint64_t *v, long n)
{
	uint64_t pivot;
	long i = -1, j = n;

	if (n <= SHORT_RUN) {
		insertion_sort(v, n);
		return;
	}
	if (v[n / 2] < v[0])
		swap(&v[n / 2], &v[0]);
	if (v[n - 1] < v[0])
		swap(&v[n - 1], &v[0]);
	if (v[n - 1] < v[n / 2])
		swap(&v[n - 1], &v[n / 2]);
	pivot = v[n / 2];
	for (;;) {
		do
			i++;
		while (v[i] < pivot);
		do
			j--;
		while (v[j] > pivot);
		if (i >= j)
			break;
		swap(&v[i], &v[j]);
	}
	quick_sort(v, j + 1);
	quick_sort(v + j + 1, n - j - 1);
}

/* radix_sort - a byte at a time, lowest first; an even number of passes ends in v */
static void radix_sort(uint64_t *v, uint64_t *tmp, long n)
{
	for (int shift = 0; shift < 64; shift += 8) {
		long start[257] = {0};
		uint64_t *t = v;

		for (long i = 0; i < n; i++)
			start[(v[i] >> shift & 255) + 1]++;
		for (int b = 0; b < 256; b++)
			start[b + 1] += start[b];
		for (long i = 0; i < n; i++)
			tmp[start[v[i] >> shift & 255]++] = v[i];
		v = tmp;
		tmp = t;
	}
}

int main(int argc, char **argv)
{
	struct wl_size s = wl_options(argc, argv, sizes);
	uint64_t *a = wl_alloc((size_t)s.n, sizeof(*a));
	uint64_t *b = wl_alloc((size_t)s.n, sizeof(*b));
	uint64_t *tmp = wl_alloc((size_t)s.n, sizeof(*tmp));
	uint64_t seed = 1, sum = 0;

	for (long r = 0; r < s.reps; r++) {
		for (long i = 0; i < s.n; i++)
			a[i] = b[i] = wl_rand(&seed) >> (r & 7) * 4;
		quick_sort(a, s.n);
		radix_sort(b, tmp, s.n);
		if (memcmp(a, b, (size_t)s.n * sizeof(*a))) {
			fprintf(stderr, "sort: quicksort and radix sort disagree\n");
			return 1;
		}
		for (long i = 0; i < s.n; i++)
			sum = wl_mix(sum, a[i]);
	}
	return wl_report("sort", s, sum);
}
