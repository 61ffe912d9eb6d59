/* SPDX-License-Identifier: MIT */
/*
 * workload.h - what every benchmark program in this folder shares: its options, its random
 * numbers and its checksum.
 *
 * A program is one thread, reads nothing but its options and prints one line:
 *
 *	NAME n=N reps=R checksum=HEX
 *
 * The line depends on the options alone (no time, no address, no libm function but sqrt,
 * which IEEE 754 defines exactly), so a traced run must print what a native run prints.
 */
#ifndef PTRACE_WORKLOAD_H
#define PTRACE_WORKLOAD_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct wl_size {
	const char *name; /* small, medium, large */
	long n; /* problem size: elements along one edge, or elements */
	long reps; /* how often the kernel is repeated */
};

#define WL_SIZES 3

/* wl_rand - next of a 64-bit xorshift* sequence; *state must not be 0 */
static inline uint64_t wl_rand(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545f4914f6cdd1dull;
}

/* wl_mix - fold one word into a checksum; order matters */
static inline uint64_t wl_mix(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * 0x9e3779b97f4a7c15ull;
	return sum ^ (sum >> 29);
}

/* wl_mix_doubles - fold the bit patterns of count doubles into a checksum */
static inline uint64_t wl_mix_doubles(uint64_t sum, const double *v, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t bits;

		memcpy(&bits, &v[i], sizeof(bits));
		sum = wl_mix(sum, bits);
	}
	return sum;
}

/* wl_alloc - count elements of size bytes, zeroed; ends the program when there is no memory */
static inline void *wl_alloc(size_t count, size_t size)
{
	void *p = calloc(count, size);

	if (!p) {
		fprintf(stderr, "workload: no memory for %zu elements of %zu bytes\n", count, size);
		exit(1);
	}
	return p;
}

/* wl_matrix - rows * cols doubles in [lo, lo + 1), the same for the same seed */
static inline double *wl_matrix(long rows, long cols, double lo, uint64_t seed)
{
	double *m = wl_alloc((size_t)rows * (size_t)cols, sizeof(*m));

	for (long i = 0; i < rows * cols; i++)
		m[i] = lo + (double)(wl_rand(&seed) >> 40) / (double)(1 << 24);
	return m;
}

/*
 * wl_options - parse "-s NAME", "-n N" and "-r REPS"; the default size is medium.
 * Returns the size to run; a wrong option ends the program with status 2.
 */
static inline struct wl_size wl_options(int argc, char **argv, const struct wl_size *sizes)
{
	struct wl_size use = sizes[1];
	int opt, i;

	while ((opt = getopt(argc, argv, "s:n:r:")) != -1) {
		switch (opt) {
		case 's':
			for (i = 0; i < WL_SIZES && strcmp(sizes[i].name, optarg); i++)
				;
			if (i == WL_SIZES)
				goto usage;
			use = sizes[i];
			break;
		case 'n':
			use.n = strtol(optarg, NULL, 10);
			break;
		case 'r':
			use.reps = strtol(optarg, NULL, 10);
			break;
		default:
			goto usage;
		}
	}
	if (optind == argc && use.n > 3 && use.reps > 0)
		return use;
usage:
	fprintf(stderr, "usage: %s [-s small|medium|large] [-n N] [-r REPS] (N > 3, REPS > 0)\n", argv[0]);
	exit(2);
}

/* wl_report - print the program's one line; returns its exit status */
static inline int wl_report(const char *name, struct wl_size size, uint64_t sum)
{
	printf("%s n=%ld reps=%ld checksum=%016llx\n", name, size.n, size.reps, (unsigned long long)sum);
	return fflush(stdout) ? 1 : 0;
}

#endif
