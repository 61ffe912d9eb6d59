/* SPDX-License-Identifier: MIT
 *
 * collect_fill.c - how far a killed thread has logged
 *
 * The log pointer of code that runs is in a register, which nobody can read when its process has been killed. But what was
 * stored is in the ring, and logs are dense and stored in ascending order (analyzer/README.md). So a chunk that is
 * given back is filled with a byte that logs seldom end in:
 *
 *   chunk:  │ 0 0 0 │ the thread's log … stored ▲ fill fill fill │ 0 0 0 … never touched │
 *           0   ring_desc.unfilled              │              ring_desc.filled         end
 *           up to the last byte that is no fill: stored, all of it
 *           (a stream's first chunks are used from some way in, RING_PART; a later one's log may begin below the fill)
 *
 * That byte itself may not be log yet: a log of six bytes is stored as eight (TAIL), and where a thread went back
 * into a region from a signal handler more than was valid was copied (TAIL_COPIED, rt_sigframe.c). What is before those
 * is. Logs that end in fill only make less of them known. No thread does anything for this.
 *
 * Filling is done by stores past the caches. The thread writes these lines again soon: left in this core's cache, each
 * would have to be fetched from there and invalidated first, which makes it write at a third of its speed.
 */
#define _DEFAULT_SOURCE
#include <emmintrin.h>
#include <string.h>
#include <sys/mman.h>
#include "collect.h"

#define FILL 0xa5
#define LINE 64u
#define TAIL 16u
#define TAIL_COPIED 512u
#define END ((uint32_t)RING_BYTES)
_Static_assert(END / LINE < RING_UNKNOWN, "a number of lines has room");
_Static_assert(END % LINE == 0 && TAIL_COPIED % LINE == 0, "whole lines");

static void fill(uint8_t *p, uint32_t n, uint8_t byte)
{
	const __m128i v = _mm_set1_epi8((char)byte);

	for (uint32_t i = 0; i < n; i += sizeof(v))
		_mm_stream_si128((__m128i *)(p + i), v);
	_mm_sfence();
}

/* Bytes lo to hi of the chunk were written to, and maybe a few more. */
void fill_again(struct collect *c, uint32_t chunk, uint32_t lo, uint32_t hi)
{
	struct ring_desc *d = ring_desc(c->ring, chunk);
	uint8_t *p = ring_chunk(c->ring, chunk);

	hi = (hi + TAIL_COPIED + LINE - 1) / LINE;
	hi = hi < END / LINE ? hi : END / LINE;
	lo /= LINE;
	p += lo * LINE;
	if (!d->filled)
		d->unfilled = d->filled = (uint16_t)lo; /* the first time */
	/* what is apart from the fill stays zero: nobody has had its pages made. Of unknown contents nothing becomes
	 * known */
	if (lo > d->filled || hi < d->unfilled) {
		fill(p, (hi - lo) * LINE, 0);
		return;
	}
	fill(p, (hi - lo) * LINE, FILL);
	d->unfilled = (uint16_t)(lo < d->unfilled ? lo : d->unfilled);
	d->filled = (uint16_t)(hi > d->filled ? hi : d->filled);
}

/* end of the pages from `from` on that exist: looking at others would make them */
static uint32_t there(const uint8_t *p, uint32_t from)
{
	unsigned char page[END / RING_PAGE + 1];
	uint32_t first = from / RING_PAGE, n = (END - first * RING_PAGE + RING_PAGE - 1) / RING_PAGE, i = 0;

	if (mincore((void *)(p + first * RING_PAGE), (size_t)n * RING_PAGE, page))
		return from;
	while (i < n && (page[i] & 1))
		i++;
	i = (first + i) * RING_PAGE;
	return i < END ? i : END;
}

/* Where the log ends that a thread stored in its chunk, which it had published up to `from`: offsets in the chunk */
uint32_t fill_end(struct collect *c, uint32_t chunk, uint32_t from, bool copied)
{
	const struct ring_desc *d = ring_desc(c->ring, chunk);
	uint32_t filled = d->filled * LINE, unfilled = d->unfilled * LINE;
	uint32_t tail = copied ? TAIL_COPIED : TAIL, at;
	const uint8_t *p = ring_chunk(c->ring, chunk);

	if (d->filled == RING_UNKNOWN || from > END)
		return from;
	at = there(p, from);
	while (at > from && at > filled && !p[at - 1])
		at--;
	if (at <= filled)
		while (at > from && at > unfilled && p[at - 1] == FILL)
			at--;
	if (at <= unfilled)
		while (at > from && !p[at - 1])
			at--;
	return at > from + tail ? at - tail : from;
}
