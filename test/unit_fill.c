/* SPDX-License-Identifier: MIT
 *
 * unit_fill.c - where a killed thread's log ends, against what a model thread has stored
 *
 * Chunks are used over and over, whole and by their last part only, for logs of all lengths and of bytes that look like
 * fill. Then a thread stores some more and stops anywhere: what collect_fill.c takes for log must have been stored as
 * such, and all of it but for a tail and what looks like fill must be found.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "../preload/collect.h"

#define CHUNKS 3
#define SMALL (RUN_CHUNK_SIZE - (64u << 10)) /* where a thread's part of a chunk begins when there are many */
#define COPIED 256
#define TAIL 16
#define TAIL_COPIED 512

static struct collect c;
static unsigned long passed, failed;
static uint64_t seed = 88172645463325252ull;

static uint32_t rnd(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 20) % n;
}

static void check(int ok, const char *what, uint32_t got, uint32_t want)
{
	if (ok) {
		passed++;
		return;
	}
	if (failed++ < 10)
		printf("FAIL: %s: %u, stored %u\n", what, got, want);
}

static uint8_t any(void)
{
	static const uint8_t like[] = {0, 0, 1, 0xa5, 0xa5, 7};
	uint32_t i = rnd(20);

	return i < sizeof(like) ? like[i] : (uint8_t)rnd(256);
}

/* the thread's log of n bytes from lo on; of what is behind it some bytes may be anything */
static void log_to(uint32_t chunk, uint32_t lo, uint32_t n, bool copied)
{
	uint8_t *p = ring_chunk(c.ring, chunk) + lo;

	for (uint32_t i = 0; i < n; i++)
		p[i] = any();
	for (uint32_t i = 0, k = copied ? rnd(COPIED) : rnd(5); i < k; i++)
		p[n + i] = any();
}

static uint32_t length(uint32_t lo)
{
	uint32_t most = (uint32_t)RING_BYTES - TAIL_COPIED - lo;

	switch (rnd(4)) {
	case 0:
		return rnd(200);
	case 1:
		return rnd(9000);
	default:
		return rnd(most);
	}
}

static void one(void)
{
	uint32_t chunk = rnd(CHUNKS), lo = rnd(3) ? 0 : SMALL, n = length(lo), from = lo + rnd(n + 1);
	bool copied = rnd(2);
	uint32_t tail = copied ? TAIL_COPIED : TAIL, end = lo + n, got, least = end;
	const uint8_t *p = ring_chunk(c.ring, chunk);
	uint8_t byte;

	log_to(chunk, lo, n, copied);
	got = fill_end(&c, chunk, from, copied);
	check(got >= from && got <= (end > from ? end : from), "more than was stored", got, end);
	byte = end > ring_desc(c.ring, chunk)->filled ? 0 : 0xa5;
	while (least > from && (p[least - 1] == byte || p[least - 1] == 0xa5))
		least--;
	check(got + tail >= least, "too little", got, least);
	fill_again(&c, chunk, lo, end);
	got = fill_end(&c, chunk, lo, false);
	check(got == lo, "something is left of what was filled", got, lo);
}

int main(void)
{
	size_t size = ring_chunk_off(2, CHUNKS, CHUNKS);

	c.ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (c.ring == MAP_FAILED)
		return 2;
	c.ring->nthreads = 2;
	c.ring->nchunks = CHUNKS;
	for (int i = 0; i < 400; i++)
		one();
	/* what nobody knows the contents of */
	ring_desc(c.ring, 0)->filled = RING_UNKNOWN;
	log_to(0, 0, 5000, false);
	check(fill_end(&c, 0, 100, false) == 100, "unknown contents", fill_end(&c, 0, 100, false), 100);
	printf("%lu passed, %lu failed\n", passed, failed);
	return failed != 0;
}
