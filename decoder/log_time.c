/* SPDX-License-Identifier: MIT
 *
 * log_time.c - the time at a position of a stream
 *
 *   chunk   open ──────┬────────────┬─────── close      heads of chunks (struct run_chunk)
 *                  RUN_EV_TIME  RUN_EV_TIME             in the stream
 *
 * Known times are exact; between two of them, time is taken to pass evenly with the position. The next known
 * time is ahead of the walk, so a chunk's events are looked for when it is read, by their bytes: a mark's
 * word and a time that fits between the last known one and the chunk's end. Something else that looks like one
 * shifts an estimate; the walk itself never relies on it, it passes on what it reads.
 */
#include <stdlib.h>
#include <string.h>
#include "dec.h"

#define TIME_MARK (RUN_MARK_EVENT | RUN_EV_TIME << RUN_MARK_ID_SHIFT)

static void add(struct log_times *t, uint64_t pos, uint64_t tsc)
{
	if (t->n == t->cap) {
		t->cap = t->cap ? t->cap * 2 : 16;
		t->at = xrealloc(t->at, t->cap, sizeof(*t->at));
	}
	t->at[t->n++] = (struct log_when){pos, tsc};
}

void times_scan(struct log_times *t, const uint8_t *b, size_t n, uint64_t first, uint64_t open,
		uint64_t close)
{
	const uint8_t *p = b, *end = b + n;
	uint64_t last = open;

	close = close < open ? open : close;
	t->n = t->hint = 0;
	add(t, first, open);
	while (end - p >= 12 && (p = memchr(p, TIME_MARK & 0xff, end - p - 11))) {
		uint32_t mark;
		uint64_t tsc;

		memcpy(&mark, p, sizeof(mark));
		memcpy(&tsc, p + 4, sizeof(tsc));
		if (mark == TIME_MARK && tsc >= last && tsc <= close) {
			add(t, first + (uint64_t)(p - b), tsc);
			add(t, first + (uint64_t)(p - b) + 12, tsc);
			last = tsc;
			p += 12;
		} else {
			p++;
		}
	}
	add(t, first + n, close);
}

uint64_t times_at(struct log_times *t, uint64_t pos)
{
	const struct log_when *a;

	if (!t->n)
		return 0;
	if (pos <= t->at[0].pos)
		return t->at[0].tsc;
	if (t->at[t->hint].pos > pos)
		t->hint = 0;
	while (t->hint + 1 < t->n && t->at[t->hint + 1].pos <= pos)
		t->hint++;
	a = &t->at[t->hint];
	if (t->hint + 1 == t->n)
		return a->tsc;
	return a->tsc +
	       (uint64_t)((unsigned __int128)(a[1].tsc - a->tsc) * (pos - a->pos) / (a[1].pos - a->pos));
}
