/* SPDX-License-Identifier: MIT
 *
 * merge.c - the records of several threads in one order by time
 *
 *   lane: one thread's walk, a coroutine that stops at each batch ──┐
 *   lane ───────────────────────────────────────────────────────────┼─▶ heap by the time of the next record ─▶ fn
 *   lane ───────────────────────────────────────────────────────────┘
 *
 * A batch has the times that are known in it; the records between two are spread evenly. A thread's own order is kept
 * whatever the times say. Lanes are opened when their stream begins and closed when it ends, so there are as
 * many as threads were alive at a time. Everything runs in the caller's thread, one lane at a time: what a
 * decode shares (names, maps, notes) needs no locks.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include "dec.h"

#define STACK_SIZE (512u << 10) /* names of places may be looked up in a walk, with libdw */
#define NOUT DECODE_TIMES /* records gathered for a call of fn */
#define LARGE 256 /* so many of one thread are handed on as they are */

struct lane {
	struct merge *m;
	uint32_t thread; /* in the run */
	uint64_t start; /* TSC */
	ucontext_t ctx;
	char *stack;
	struct ptrace_rec *rec, last;
	size_t n, at; /* of the batch: records, the next one */
	uint32_t seg; /* that record is behind res.when[seg] */
	uint32_t told; /* the same, of the record whose time was given to fn last */
	uint64_t time; /* of record `at` */
	bool done;
	int status;
	struct walk_result res;
	struct ptrace_stats st;
};

struct merge {
	const struct decode *d;
	ucontext_t main;
	struct lane **heap;
	uint32_t nheap;
	struct lane *lane; /* all, by start */
	uint32_t n, next; /* next: to be opened */
	struct ptrace_rec out[NOUT];
	size_t nout;
	bool stop; /* fn wants no more */
	int status;
};

/* ---- a lane ----------------------------------------------------------------------------------- */

static int batch(void *ctx, struct ptrace_rec *rec, size_t n)
{
	struct lane *l = ctx;

	l->rec = rec;
	l->n = n;
	l->at = 0;
	swapcontext(&l->ctx, &l->m->main);
	return l->m->stop;
}

static void lane_main(unsigned lo, unsigned hi)
{
	struct lane *l = (struct lane *)((uintptr_t)lo | (uintptr_t)hi << 32);
	const struct decode *d = l->m->d;

	l->status = decode_thread(d->run, l->thread, d->o, batch, l, &l->st, &l->res);
	l->done = true;
}

/* of record i, not before the last one that was asked for with the same seg */
static uint64_t time_at(const struct lane *l, uint32_t *seg, size_t i)
{
	const struct walk_when *k;

	while (*seg + 2 < l->res.nwhen && l->res.when[*seg + 1].at <= i)
		(*seg)++;
	k = &l->res.when[*seg];
	return k->tsc + (uint64_t)((unsigned __int128)(k[1].tsc - k->tsc) * (i - k->at) / (k[1].at - k->at));
}

static uint64_t time_of(struct lane *l, size_t i)
{
	return time_at(l, &l->seg, i);
}

/* number of records from the first on whose time is not after `until` */
static size_t up_to(struct lane *l, uint64_t until)
{
	size_t lo = l->at, hi;

	for (; l->seg + 2 < l->res.nwhen && l->res.when[l->seg + 1].tsc <= until; l->seg++)
		lo = l->res.when[l->seg + 1].at;
	lo = lo > l->at ? lo : l->at;
	hi = l->res.when[l->seg + 1].at;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (time_of(l, mid) <= until)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* runs it up to its next batch, or its end */
static void resume(struct lane *l)
{
	l->n = l->at = l->seg = l->told = 0;
	swapcontext(&l->m->main, &l->ctx);
	if (l->n)
		l->time = time_of(l, 0);
}

static int lane_open(struct lane *l)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	l->stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			-1, 0);
	if (l->stack == MAP_FAILED || mprotect(l->stack, page, PROT_NONE) || getcontext(&l->ctx))
		return -1;
	l->ctx.uc_stack.ss_sp = l->stack;
	l->ctx.uc_stack.ss_size = STACK_SIZE;
	l->ctx.uc_link = &l->m->main;
	makecontext(&l->ctx, (void (*)(void))lane_main, 2, (unsigned)(uintptr_t)l,
		    (unsigned)((uintptr_t)l >> 32));
	resume(l);
	return 0;
}

/* A stream that ended: its counts are passed on. */
static void lane_close(struct lane *l)
{
	const struct decode *d = l->m->d;

	stats_add(d->st, &l->st);
	if (l->status > l->m->status)
		l->m->status = l->status;
	if (d->ended)
		d->ended(d->ctx, l->thread, l->status, &l->res);
	walk_result_free(&l->res);
	munmap(l->stack, STACK_SIZE);
	l->stack = NULL;
}

/* ---- the heap --------------------------------------------------------------------------------- */

static bool before(const struct lane *a, const struct lane *b)
{
	return a->time != b->time ? a->time < b->time : a->thread < b->thread;
}

static void sift_down(struct merge *m)
{
	uint32_t i = 0, k;

	for (; (k = 2 * i + 1) < m->nheap; i = k) {
		struct lane *t;

		if (k + 1 < m->nheap && before(m->heap[k + 1], m->heap[k]))
			k++;
		if (!before(m->heap[k], m->heap[i]))
			return;
		t = m->heap[i];
		m->heap[i] = m->heap[k];
		m->heap[k] = t;
	}
}

static void push(struct merge *m, struct lane *l)
{
	uint32_t i = m->nheap++;

	for (; i && before(l, m->heap[(i - 1) / 2]); i = (i - 1) / 2)
		m->heap[i] = m->heap[(i - 1) / 2];
	m->heap[i] = l;
}

/* opens what begins before the next record */
static int open_lanes(struct merge *m)
{
	while (m->next < m->n && !m->stop && (!m->nheap || m->lane[m->next].start <= m->heap[0]->time)) {
		struct lane *l = &m->lane[m->next++];

		if (lane_open(l)) {
			run_note(m->d->run, "no memory for one more thread at a time (%u are walked)",
				 m->nheap);
			m->status = PTRACE_IO;
			m->stop = true;
			if (l->stack == MAP_FAILED)
				l->stack = NULL;
			return -1;
		}
		if (l->done)
			lane_close(l);
		else
			push(m, l);
	}
	return 0;
}

/* ---- records ----------------------------------------------------------------------------------- */

static void flush_out(struct merge *m)
{
	if (m->nout && !m->stop && m->d->fn(m->d->ctx, m->out, m->nout))
		m->stop = true;
	m->nout = 0;
}

/* the next k records of a lane go out */
static void pass(struct merge *m, struct lane *l, size_t k)
{
	struct ptrace_rec *rec = l->rec + l->at;

	l->last = rec[k - 1]; /* before fn, which may change them */
	l->at += k;
	if (m->d->time) {
		for (size_t i = l->at - k; i < l->at; i++) {
			if (m->nout == NOUT)
				flush_out(m);
			m->d->time[m->nout] = time_at(l, &l->told, i);
			m->out[m->nout++] = l->rec[i];
		}
		return;
	}
	if (m->nout + k > NOUT || k >= LARGE)
		flush_out(m);
	if (k < LARGE) {
		memcpy(m->out + m->nout, rec, k * sizeof(*rec));
		m->nout += k;
	} else if (!m->stop && m->d->fn(m->d->ctx, rec, k)) {
		m->stop = true;
	}
}

/* May another thread's record not stand between these two? A write of what the same instruction has read: it may be
 * an atomic one. Accesses of a block, where the output shows its instructions. */
static bool together(const struct merge *m, const struct ptrace_rec *a, const struct ptrace_rec *b)
{
	if (m->d->o->blocks)
		return b->kind != WALK_BLOCK;
	return b->kind == PTRACE_W && a->kind == PTRACE_R && a->ip == b->ip && a->addr == b->addr &&
	       a->size == b->size;
}

/* The first lane of the heap goes on until another is due. */
static void advance(struct merge *m)
{
	struct lane *l = m->heap[0];
	uint64_t until = m->next < m->n ? m->lane[m->next].start : UINT64_MAX;
	size_t to;

	for (uint32_t k = 1; k <= 2 && k < m->nheap; k++)
		until = m->heap[k]->time < until ? m->heap[k]->time : until;
	to = up_to(l, until);
	to = to > l->at ? to : l->at + 1;
	for (;;) {
		while (to < l->n && together(m, &l->rec[to - 1], &l->rec[to]))
			to++;
		pass(m, l, to - l->at);
		if (l->at < l->n) {
			l->time = time_of(l, l->at);
			break;
		}
		resume(l);
		if (l->done || !together(m, &l->last, l->rec))
			break;
		to = 1;
	}
	if (l->done) {
		lane_close(l);
		m->heap[0] = m->heap[--m->nheap];
	}
	sift_down(m);
}

static int by_start(const void *a, const void *b)
{
	const struct lane *x = a, *y = b;

	return x->start != y->start ? x->start < y->start ? -1 : 1 : x->thread < y->thread ? -1 : 1;
}

int decode_by_time(const struct decode *d, const uint32_t *list, uint32_t n)
{
	struct merge *m = xcalloc(1, sizeof(*m));
	int status;

	m->d = d;
	m->n = n;
	m->lane = xcalloc(n, sizeof(*m->lane));
	m->heap = xcalloc(n, sizeof(*m->heap));
	for (uint32_t i = 0; i < n; i++) {
		const struct thread *t = d->run->thread[list[i]];
		char *path = thread_path(t, t->rec ? t->rec : t->proc);

		m->lane[i].m = m;
		m->lane[i].thread = list[i];
		m->lane[i].start = log_start(path, t->at);
		free(path);
	}
	qsort(m->lane, n, sizeof(*m->lane), by_start);
	while (!open_lanes(m) && m->nheap && !m->stop)
		advance(m);
	flush_out(m);
	m->stop = true; /* who is left ends at its next batch */
	for (uint32_t i = 0; i < n; i++) {
		struct lane *l = &m->lane[i];

		while (l->stack && !l->done)
			resume(l);
		if (l->stack)
			lane_close(l);
	}
	status = m->status;
	free(m->heap);
	free(m->lane);
	free(m);
	return status;
}
