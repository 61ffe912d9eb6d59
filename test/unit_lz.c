/* SPDX-License-Identifier: MIT
 *
 * unit_lz.c - the collector's compressor against liblz4, which must give back what went in
 *
 * Source and destination end at a page that cannot be touched: reading or writing one byte too far
 * ends the test. Inputs are what finds mistakes in such a compressor: sizes around every limit of the
 * format, repetitions at every distance (0, 1, beyond 64 KiB), runs that overlap, literals in runs of all
 * lengths, and mixes of them.
 */
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "../preload/collect.h"

#define MAX (RUN_CHUNK_SIZE + RUN_CHUNK_SLACK)
#define PAGE 4096ul

static uint16_t table[LZ_TABLE];
static uint8_t *src_end, *dst_end;
static uint8_t back[MAX];
static unsigned long passed, failed;
static uint64_t seed = 88172645463325252ull;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* the end of n bytes with a guard page behind it */
static uint8_t *guarded(size_t n)
{
	size_t size = (n + PAGE - 1) & -PAGE;
	uint8_t *p = mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + size, PAGE, PROT_NONE))
		exit(2);
	return p + size;
}

/* returns the compressed size of the n bytes before src_end */
static size_t round_trip(const char *what, size_t n)
{
	const uint8_t *src = src_end - n;
	uint8_t *dst = dst_end - lz_bound(n);
	size_t k;

	memset(table, 0xa5, sizeof(table)); /* what an earlier chunk left must not matter */
	k = lz_pack(table, src, n, dst);
	if (k <= lz_bound(n) && LZ4_decompress_safe((char *)dst, (char *)back, (int)k, MAX) == (int)n &&
	    !memcmp(back, src, n)) {
		passed++;
		return k;
	}
	failed++;
	printf("FAIL: %s, %zu bytes\n", what, n);
	return k;
}

static void periodic(size_t n, size_t period)
{
	uint8_t *p = src_end - n;

	for (size_t i = 0; i < n; i++)
		p[i] = i < period ? (uint8_t)rnd() : p[i - period];
}

/* stretches copied from a random distance, with random bytes between */
static void mixed(size_t n, size_t far)
{
	uint8_t *p = src_end - n;

	for (size_t i = 0; i < n;) {
		size_t len = 1 + (rnd() & 7 ? rnd() % 40 : rnd() % 2000), off = 1 + rnd() % far;
		bool copy = i >= off && rnd() % 4;

		for (; len && i < n; len--, i++)
			p[i] = copy ? p[i - off] : (uint8_t)rnd();
	}
}

/* like a log: a few words in a fixed order, some of which change a little each time round */
static void words(size_t n)
{
	uint8_t *p = src_end - n;
	uint64_t w[24];

	for (size_t i = 0; i < 24; i++)
		w[i] = rnd() >> (rnd() & 1 ? 16 : 0);
	for (size_t i = 0, k = 0; i < n; k++) {
		size_t len = k % 3 ? 8 : 6;

		if (k % 5 == 0)
			w[k % 24] += 16;
		len = len < n - i ? len : n - i;
		memcpy(p + i, &w[k % 24], len);
		i += len;
	}
}

static void small_sizes(void)
{
	for (size_t n = 0; n <= 700; n++) {
		for (size_t period = 1; period <= 20; period++) {
			periodic(n, period);
			round_trip("short, periodic", n);
		}
		mixed(n, 60);
		round_trip("short, mixed", n);
		periodic(n, n);
		round_trip("short, random", n);
	}
}

static void large_sizes(void)
{
	static const size_t period[] = {1,	2,     3,      6,      7,     8,     15,    31,
					32,	33,    255,    1000,   4096,  65527, 65534, 65535,
					65536,	65537, 65544,  131072, 70000, 65000, 65520, 65528,
					100000, 14,    131071, 262144, 64,    65};

	for (size_t i = 0; i < sizeof(period) / sizeof(period[0]); i++) {
		periodic(MAX, period[i]);
		if (round_trip("long, periodic", MAX) > MAX / 2 && period[i] < 65536)
			failed++, printf("FAIL: period %zu is not compressed\n", period[i]);
	}
	for (int i = 0; i < 150; i++) {
		size_t n = MAX - rnd() % 70;

		mixed(n, i % 3 ? 70000 : 300);
		round_trip("long, mixed", n);
	}
	periodic(MAX, MAX);
	round_trip("long, random", MAX);
	words(MAX);
	if (round_trip("long, words", MAX) > MAX / 3)
		failed++, puts("FAIL: words are not compressed");
}

int main(void)
{
	src_end = guarded(MAX);
	dst_end = guarded(lz_bound(MAX));
	small_sizes();
	large_sizes();
	printf("%lu passed, %lu failed\n", passed, failed);
	return failed != 0;
}
