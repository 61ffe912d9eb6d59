/* SPDX-License-Identifier: MIT
 *
 * walk.c - one thread: set-up, and the end of its stream
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "walk.h"

const struct map_block *block_here(const struct walker *w)
{
	uint32_t i;

	if (!w->m || !w->pc)
		return NULL;
	i = w->pc - w->m->code;
	if (i >= w->m->map->nop)
		return NULL;
	for (;; i--) {
		const struct sem_op *o = &w->m->map->op[i];

		if (o->op == SEM_BLOCK && (uint64_t)o->imm < w->m->map->nblock)
			return &w->m->map->block[o->imm];
		if (!i)
			return NULL;
	}
}

uint64_t here(const struct walker *w)
{
	const struct map_block *b = block_here(w);

	return b ? w->m->bias + b->vaddr : 0;
}

const char *place(struct walker *w, uint64_t ip, char *buf, size_t n)
{
	return sym_text(w->proc->run ? w->proc->run->sym : NULL, w->proc, ip, false, buf, n);
}

int lost(struct walker *w, const char *fmt, ...)
{
	char what[300], at[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	snprintf(w->res->why, sizeof(w->res->why), "lost the stream at %s, position %llu: %.300s",
		 place(w, here(w), at, sizeof(at)), (unsigned long long)log_pos(w->log, w->p), what);
	w->end = WALK_LOST;
	return 1;
}

/* returns 1, like lost: an enum walk_end may be 0 */
int log_ended(struct walker *w)
{
	const char *why = log_why(w->log);

	if (w->execing && !why && w->p == w->lim) {
		w->end = WALK_EXIT;
		w->res->exec = true;
		if (w->goes_on && w->proc->rest) {
			bool counted = !sig_undo(w, w->goes_on);

			hand_give(w, w->proc->rest, w->goes_on, counted);
		}
		return 1;
	}
	snprintf(w->res->why, sizeof(w->res->why), "%s",
		 why		     ? why
		 : w->proc->untraced ? w->proc->stop
		 : log_clean(w->log) ? "the stream ends without an end event"
				     : "the stream ends at its last complete chunk (the run was killed, or "
				       "is still going on)");
	w->end = WALK_LOG_ENDS;
	return 1;
}

/* Reads, writes and prefetches of a batch are counted side by side in one word; what WALK_BLOCK adds goes
 * to the bits above. */
#define KIND_BITS 21
#define KIND_MASK ((1ull << KIND_BITS) - 1)
_Static_assert(PTRACE_R == 0 && PTRACE_W == 1 && PTRACE_P == 2 && WALK_BLOCK % 4 == 3, "shifts in flush");
_Static_assert(NREC <= KIND_MASK, "a batch cannot overflow");

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* A known time: records before it are not later, those behind it not earlier. Time does
 * not run back, however a processor's counter was set. */
int walk_time(struct walker *w, uint64_t tsc)
{
	struct walk_result *res = w->res;
	struct walk_when *e = &res->when[res->nwhen - 1];
	uint32_t at = w->out - (w->buf + REC_KEEP);

	if (!w->o->timed)
		return 0;
	tsc = later(e->tsc, tsc);
	if (!at || (res->nwhen > 1 && e->at == at && e[-1].at == at))
		e->tsc = tsc;
	else
		res->when[res->nwhen++] = (struct walk_when){at, tsc};
	return res->nwhen == NWHEN - 1 ? flush(w) : 0;
}

/* The time at the batch's end: what a recording of control flow has, else an estimate. Where a time that log_time
 * does not know of may be next, the last one that is known: an estimate might be later than that. */
static void time_end(struct walker *w, uint32_t n)
{
	struct walk_result *res = w->res;
	uint64_t last = res->when[res->nwhen - 1].tsc;
	bool known = w->blind || res->when[res->nwhen - 1].at == n;
	uint64_t t = w->flow->tsc;

	if (!t)
		t = known ? last : log_time(w->log, w->p);
	res->when[res->nwhen++] = (struct walk_when){n, later(last, t)};
}

int flush(struct walker *w)
{
	struct ptrace_rec *first = w->buf + REC_KEEP;
	size_t n = w->out - first, keep = n < REC_KEEP ? n : REC_KEEP;
	uint64_t kinds = 0;

	if (!n)
		return 0;
	for (size_t i = 0; i < n; i++)
		kinds += 1ull << first[i].kind % 4 * KIND_BITS;
	w->st->reads += kinds & KIND_MASK;
	w->st->writes += kinds >> KIND_BITS & KIND_MASK;
	w->st->prefetches += kinds >> 2 * KIND_BITS & KIND_MASK;
	/* before the sinks, which may change the batch in place */
	memcpy(w->buf + REC_KEEP - keep, w->out - keep, keep * sizeof(*first));
	w->out = first;
	if (w->o->timed)
		time_end(w, n);
	if (w->fn && w->fn(w->ctx, first, n)) {
		w->end = WALK_CANCELLED;
		return 1;
	}
	w->res->when[0] = (struct walk_when){0, w->res->when[w->res->nwhen - 1].tsc};
	w->res->nwhen = 1;
	return 0;
}

static int by_count(const void *a, const void *b)
{
	const struct walk_place *x = a, *y = b;

	return x->count < y->count ? 1 : x->count > y->count ? -1 : x->ip < y->ip ? -1 : x->ip > y->ip;
}

static void finish(struct walker *w)
{
	struct walk_result *res = w->res;
	uint64_t raw, disk;

	sig_finish(w);
	if (w->end != WALK_CANCELLED) {
		enum walk_end end = w->end;

		if (!flush(w))
			w->end = end;
	}
	count_finish(w);
	log_sizes(w->log, &raw, &disk);
	w->st->log_bytes_raw += raw;
	w->st->log_bytes_disk += disk;
	w->st->log_bytes_used += w->p ? log_pos(w->log, w->p) : 0;
	w->st->missing += w->end == WALK_LOST || (w->end == WALK_LOG_ENDS);
	w->st->missing += res->losses;
	w->st->losses += res->losses;
	w->st->lost_bytes += res->lost_bytes;
	w->st->lost_tsc += res->lost_tsc;
	w->st->accesses = w->st->reads + w->st->writes + w->st->prefetches;
	for (uint32_t i = 0; i < w->pcap; i++)
		if (w->ptab[i].ip)
			w->ptab[res->nplace++] = w->ptab[i];
	res->place = w->ptab;
	if (res->nplace)
		qsort(res->place, res->nplace, sizeof(*res->place), by_count);
	res->end = w->end;
}

int walk_thread(struct proc *p, struct log *log, struct flow *flow, uint32_t tid, uint32_t index,
		const struct walk_opts *o, walk_fn fn, void *ctx, struct ptrace_stats *st,
		struct walk_result *res)
{
	struct walker *w = xcalloc(1, sizeof(*w));

	memset(res, 0, sizeof(*res));
	w->proc = p;
	w->log = log;
	w->flow = w->ask = flow ? flow : flow_none();
	w->o = o;
	w->fn = fn;
	w->ctx = ctx;
	w->st = st;
	w->res = res;
	res->nwhen = 1;
	w->index = index;
	w->buf = xrealloc(NULL, REC_KEEP + NREC, sizeof(*w->buf));
	memset(w->buf, 0, REC_KEEP * sizeof(*w->buf));
	w->out = w->buf + REC_KEEP;
	w->outlim = w->buf + REC_KEEP + (o->timed ? NREC_TIMED : NREC - REC_ROOM);
	w->mem = mem_new(p->start && p->start->s.tid == tid ? p->start : NULL, o->memory);
	w->capframe = 1024;
	w->frame = xrealloc(NULL, w->capframe, sizeof(*w->frame));
	if (!walk_start(w, tid) || walk_from_key(w))
		do
			walk_loop(w);
		while (walk_from_key(w));
	finish(w);
	why_finish(w);
	mod_free(w);
	mem_free(w->mem);
	mem_free(w->start_mem);
	free(w->frame);
	free(w->limbo);
	free(w->buf);
	free(w);
	return res->end;
}

void walk_result_free(struct walk_result *res)
{
	free(res->place);
	free(res->block);
	free(res->why_at);
	memset(res, 0, sizeof(*res));
}
