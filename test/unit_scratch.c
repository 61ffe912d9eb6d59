/* SPDX-License-Identifier: MIT
 *
 * unit_scratch.c - scratch memory: what is handed out keeps its bytes until it is released, and nothing else has them
 *
 * Random arrays, each filled with a byte of its own; marks are taken and released as calls nest; before each array is
 * given back all of its bytes must be as they were left.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "scratch.h"

#define ROUNDS 200000
#define MOST 400

static uint64_t seed = 88172645463325252u;
static struct array {
	uint8_t *p, fill;
	size_t n;
} array[MOST];
static struct {
	struct scratch_mark at;
	unsigned narray;
} mark[MOST];
static unsigned narray, nmark, done;

static uint64_t draw(uint64_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % n;
}

static void fail(const char *what)
{
	printf("unit_scratch: %s (step %u)\n", what, done);
	exit(1);
}

static size_t size(void)
{
	return draw(50) ? draw(draw(4) ? 100 : 9000) : draw(3000000);
}

static void look(const struct array *a)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->p[i] != a->fill)
			fail("bytes have changed");
}

static void fill(struct array *a, size_t from)
{
	memset(a->p + from, a->fill, a->n - from);
}

static void one_more(void)
{
	struct array *a = &array[narray++];
	bool zero = draw(3) == 0;

	a->n = size();
	a->fill = (uint8_t)draw(256);
	a->p = zero ? scratch_zero(a->n) : scratch(a->n);
	if (!a->p || (uintptr_t)a->p % 16)
		fail("no memory, or not aligned");
	for (size_t i = 0; zero && i < a->n; i++)
		if (a->p[i])
			fail("not zeroed");
	fill(a, 0);
}

/* mostly the last one, which can grow where it is */
static void larger(void)
{
	struct array *a = &array[draw(3) ? narray - 1 : draw(narray)];
	size_t was = a->n;

	if (nmark && a < array + mark[nmark - 1].narray)
		return; /* handed out before the mark: would move behind it */
	a->n += size();
	a->p = scratch_more(a->p, was, a->n);
	if (!a->p)
		fail("no memory");
	for (size_t i = 0; i < was; i++)
		if (a->p[i] != a->fill)
			fail("bytes have changed on the way");
	fill(a, was);
}

static void release(void)
{
	unsigned from = mark[--nmark].narray;

	for (unsigned i = from; i < narray; i++)
		look(&array[i]);
	scratch_release(mark[nmark].at);
	narray = from;
}

int main(void)
{
	for (done = 0; done < ROUNDS; done++) {
		unsigned what = (unsigned)draw(40);

		if ((what < 4 || !nmark) && nmark < MOST) {
			mark[nmark].at = scratch_mark();
			mark[nmark++].narray = narray;
		} else if (what < 8 || narray == MOST) {
			release();
		} else if (what < 20 && narray) {
			larger();
		} else {
			one_more();
		}
		if (what == 39)
			scratch_end(); /* does nothing while any is in use */
		if (!draw(1000))
			while (nmark)
				release();
	}
	while (nmark)
		release();
	scratch_end();
	puts("unit_scratch: ok");
	return 0;
}
