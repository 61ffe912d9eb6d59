/* SPDX-License-Identifier: MIT
 *
 * collect_pt_read.c - what is new in an event's AUX area, and what its ring says of it
 *
 *   AUX area   …──tail════════════════head──…    packets: taken up to head, tail given back
 *   ring       …──tail─AUX──AUX──LOST─head──…    PERF_RECORD_AUX: offset, size, flags
 *
 * The kernel writes a stretch's AUX record before it moves aux_head over it (perf_aux_output_end in
 * kernel/events/ring_buffer.c), so records are read after aux_head. What stands behind the last record waits for its own,
 * which is on its way where the kernel was interrupted just there. One that does not come had no room in the ring
 * (RUN_PT_RING_LOST): a thread that sleeps often has one written each time. Where the area cannot have been full then, only the
 * record is lost. Else it may have said so, and nobody says so again: the bytes are taken, something may be missing behind them, and
 * the event is enabled, which does nothing where it is.
 *
 * The kernel looks at aux_tail when the thread comes to the processor, and stops the unit where the next piece of the area is not
 * free. Until the thread leaves the processor and its record is missed, aux_tail moves up to three times: by who was
 * reading just then, up to the records that were there, and up to where aux_head stood.
 *
 * When the area has been full the kernel turns the event off (TRUNCATED): it must be enabled again, and what comes then
 * is of use from its first PSB on. An event that only may be off is disabled first, so that all losses are where
 * the head stands then: it may just have been turned off, behind what was read.
 */
#include <string.h>
#include "collect_pt.h"

#define RECORD_LEAST 128 /* in so much an AUX record has room, and one that tells of lost ones */

static uint64_t acquire(const void *p)
{
	return __atomic_load_n((const uint64_t *)p, __ATOMIC_ACQUIRE);
}

static void release(void *p, uint64_t v)
{
	__atomic_store_n((uint64_t *)p, v, __ATOMIC_RELEASE);
}

static void ring_copy(const struct pt_area *a, uint64_t at, void *to, size_t n)
{
	const uint8_t *ring = (const uint8_t *)a->page + a->page->data_offset;
	size_t off = at & (a->ring_size - 1), k = a->ring_size - off;

	k = k < n ? k : n;
	memcpy(to, ring + off, k);
	memcpy((uint8_t *)to + k, ring, n - k);
}

/* the bytes up to `to` */
static int take(struct pt_read *r, const struct pt_area *a, const struct pt_sink *s, uint64_t to,
		unsigned flags)
{
	uint64_t n = to - r->offset, off = r->offset & (a->aux_size - 1), k = a->aux_size - off;
	int err;

	if (!n && !flags)
		return 0;
	k = k < n ? k : n;
	if (r->gap)
		flags |= RUN_PT_GAP;
	err = s->data(s->arg, r->offset, a->aux + off, k, a->aux, n - k, flags);
	r->gap = false;
	r->offset = to;
	return err;
}

/* the area may have been full when its head came to `to` */
static bool was_full(const struct pt_read *r, const struct pt_area *a, uint64_t to)
{
	return to - r->tail[2] + a->piece >= a->aux_size;
}

/* A stretch that no record told of, up to `to`: what its record said is not known. */
static int untold(struct pt_read *r, const struct pt_area *a, const struct pt_sink *s, uint64_t to)
{
	int err = s->note(s->arg, RUN_PT_RING_LOST, 0) || take(r, a, s, to, 0);

	r->told = to;
	if (was_full(r, a, to))
		r->gap = r->again = true;
	return err;
}

/* PERF_RECORD_AUX behind its header (linux/perf_event.h) */
struct aux_record {
	uint64_t offset, size, flags;
};

static int aux(struct pt_read *r, const struct pt_area *a, const struct pt_sink *s,
	       const struct aux_record *x)
{
	const unsigned known = RUN_PT_F_TRUNCATED | RUN_PT_F_PARTIAL | RUN_PT_F_COLLISION;
	unsigned flags = (unsigned)x->flags & known;
	uint64_t to = x->offset + x->size;
	int err;

	/* what was overwritten before it was taken, or makes no sense, is not data */
	if (to < r->offset || to - r->offset > a->aux_size)
		return 0;
	if (x->offset > r->told && untold(r, a, s, x->offset))
		return -1;
	r->told = to > r->told ? to : r->told;
	if (!flags)
		return 0; /* goes with what follows it */
	err = take(r, a, s, to, flags);
	r->truncated += !!(flags & RUN_PT_F_TRUNCATED);
	r->partial += !!(flags & RUN_PT_F_PARTIAL);
	r->collision += !!(flags & RUN_PT_F_COLLISION);
	if (flags & RUN_PT_F_TRUNCATED)
		r->gap = r->again = true;
	return err;
}

static int record(struct pt_read *r, const struct pt_area *a, const struct pt_sink *s, uint64_t at,
		  const struct perf_event_header *h)
{
	struct aux_record x = {0, 0, 0};
	uint64_t v[2] = {0, 0};
	uint32_t id[2] = {0, 0};
	size_t n = h->size - sizeof(*h);

	at += sizeof(*h);
	switch (h->type) {
	case PERF_RECORD_AUX:
		if (n < sizeof(x))
			return 0;
		ring_copy(a, at, &x, sizeof(x));
		return aux(r, a, s, &x);
	case PERF_RECORD_LOST: /* id, lost */
		if (n < sizeof(v))
			return 0;
		ring_copy(a, at, v, sizeof(v));
		r->lost += v[1];
		return s->note(s->arg, RUN_PT_LOST, v[1]);
	case PERF_RECORD_ITRACE_START: /* pid, tid */
		if (n < sizeof(id))
			return 0;
		ring_copy(a, at, id, sizeof(id));
		return s->note(s->arg, RUN_PT_ITRACE_START, (uint64_t)id[0] << 32 | id[1]);
	default:
		return 0;
	}
}

bool pt_read(struct pt_read *r, const struct pt_area *a, const struct pt_sink *s)
{
	uint64_t end = acquire(&a->page->aux_head), head = acquire(&a->page->data_head),
		 tail = a->page->data_tail;
	uint64_t from = r->offset, first = tail, before = r->moved;
	bool ok = true, full;

	if (head - tail > a->ring_size) { /* not by this kernel */
		ok = !s->note(s->arg, RUN_PT_RING_LOST, 0);
		tail = head;
	}
	while (ok && tail < head) {
		struct perf_event_header h;

		ring_copy(a, tail, &h, sizeof(h));
		if (h.size < sizeof(h) || h.size > head - tail) {
			ok = !s->note(s->arg, RUN_PT_RING_LOST, 0);
			break;
		}
		ok = !record(r, a, s, tail, &h);
		tail += h.size;
	}
	r->moved = 0;
	if (ok && end > r->told && end - r->told <= a->aux_size) {
		if (before > r->told)
			ok = !untold(r, a, s, end);
		else
			r->moved = end;
	}
	if (ok && r->told - r->offset <= a->aux_size)
		take(r, a, s, r->told, 0);
	/* Without a word: no event runs on with a full area. One that was full before anything could be written to it has had a
	 * record, of no bytes */
	full = r->offset - from >= a->aux_size - 4096 ||
	       (was_full(r, a, r->offset) && head - r->ring_tail + RECORD_LEAST >= a->ring_size);
	if (full && !r->again)
		r->gap = r->again = true;
	if (r->offset != from) {
		memmove(r->tail + 1, r->tail, sizeof(r->tail) - sizeof(r->tail[0]));
		r->tail[0] = from;
	}
	release(&a->page->aux_tail, r->offset);
	r->ring_tail = a->page->data_tail;
	release(&a->page->data_tail, head);
	return r->offset != from || head != first || r->moved;
}

void pt_read_rest(struct pt_read *r, const struct pt_area *a, const struct pt_sink *s)
{
	uint64_t from;

	do
		from = r->offset;
	while (pt_read(r, a, s) && (r->offset != from || r->moved));
	r->again = false;
	r->gap = true;
}
