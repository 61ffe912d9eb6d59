/* SPDX-License-Identifier: MIT
 *
 * rt_ring.c - the memory shared with ptrace-collect (ring.h): made, waited for; its chunks; what is written
 * into them by the runtime
 *
 * A full chunk is handed over and another one taken; when there is none the thread waits until
 * one is free. Nothing is ever dropped. The collector's death is seen in a robust futex
 * (set_robust_list(2)): that works whoever reaps it.
 */
#include "rt.h"

_Static_assert(UC_RIP == 21 * 8 && UC_EFLAGS == 22 * 8 && UC_SIGMASK == 37 * 8, "eight-byte words");

#define SPINS 2000
#define MANY 64 /* threads, from where on each gets small chunks only */
#define SMALL (64u << 10)
#define YOUNG (32ull << 20) /* bytes of a stream up to which it gets parts of chunks (RING_PART), */
#define GROWN (64ull << 20) /* and up to which chunks may come whose other parts have not been touched */

static uint32_t chunk_of(uint64_t at) /* index of the chunk that holds this address */
{
	return (uint32_t)((at - (uint64_t)ring_chunk(rt.ring, 0)) / RUN_CHUNK_SPAN);
}

/* A region's log pointer may lie before its chunk by what map_xlat.off says: there is something of ours before
 * the first chunk, too. */
bool rt_in_ring(uint64_t addr)
{
	return rt.ring && addr - rt.ring->base < ring_size(rt.ring);
}

/* ---- made and waited for ---- */

/* A fault on the first touch of a page costs more than all the logging in it; not being able to prefault
 * (before Linux 5.14) only costs that. The collector has the pages of the first chunks made ahead of the
 * program. */
static void populate(uint32_t chunk, uint32_t from)
{
	rt_sc(__NR_madvise, ring_chunk(rt.ring, chunk) + from, RUN_CHUNK_SIZE + RUN_CHUNK_SLACK - from,
	      MADV_POPULATE_WRITE);
}

/* Address space only: pages come when they are touched. Limits on address space and on files, which count
 * it all the same, leave room for fewer threads. */
static void size_for_limits(uint32_t *nthreads, uint32_t *nchunks)
{
	const uint64_t each = RUN_CHUNK_SPAN + RING_PAGE + RT_PRIVATE;
	uint64_t space = rt_limit_space() / 8 / each, file = rt_limit_file() / (RUN_CHUNK_SPAN + RING_PAGE);
	uint64_t n = RING_THREADS, all;

	file = file > 1 ? file - 1 : 0; /* one for what is before the chunks */
	n = space < n ? space : n;
	n = file < n + rt.nchunks ? file - rt.nchunks : n;
	if (file < rt.nchunks + 2u || n < 2)
		n = 2;
	all = n + rt.nchunks + RING_ENDED;
	*nthreads = (uint32_t)n;
	*nchunks = (uint32_t)(all > file && file >= n + rt.nchunks ? file : all);
}

static int ring_map(int fd)
{
	uint32_t nthreads, nchunks;
	struct ring_head *h;
	uint64_t size, base;
	long r;

	size_for_limits(&nthreads, &nchunks);
	size = ring_chunk_off(nthreads, nchunks, nchunks);
	r = rt_sc(__NR_ftruncate, fd, size);
	if (r == -EFBIG)
		rt_take_xfsz();
	if (rt_err(r))
		return (int)r;
	base = rt_place_far(size, RUN_CHUNK_SPAN, fd, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE);
	rt.private = rt_place_far((uint64_t)nthreads * RT_PRIVATE, RT_PAGE, -1, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
	if (!base || !rt.private)
		return -ENOMEM;
	rt_sc(__NR_madvise, base, size, 16 /* MADV_DONTDUMP: no part of the program's core */);
	h = rt.ring = (void *)base;
	h->magic = RING_MAGIC;
	h->version = RING_VERSION;
	h->nthreads = nthreads;
	h->nchunks = nchunks;
	h->spare = rt.nchunks - 1;
	h->base = base;
	h->pt = rt.pt_set;
	h->record = rt.how == RT_RECORD;
	rt.main = rt_thread_first();
	populate(rt.main->th.chunk, rt_chunk_desc(rt.main)->start);
	return 0;
}

static void cannot_start(int r)
{
	char buf[RT_PATH + 32];
	struct rt_str s = rt_str(buf, sizeof(buf));

	rt_put(&s, "cannot start ");
	rt_put(&s, rt.collect);
	rt_say(buf, ": ", rt_strerror(r), "; running untraced (see PTRACE_COLLECT in libptrace_rt(7))");
}

/* 0, or -errno; what failed is said */
int rt_ring_open(void)
{
	long fd = rt_sc(__NR_memfd_create, "ptrace-ring", 1 /* MFD_CLOEXEC */);
	int r;

	if (rt_err(fd)) {
		rt_say("cannot make shared memory: ", rt_strerror(fd), "; running untraced", NULL);
		return (int)fd;
	}
	r = ring_map((int)fd);
	if (r)
		rt_say("cannot map the log: ", rt_strerror(r),
		       r == -EFBIG ? "; running untraced (raise the limit: ulimit -f)"
				   : "; running untraced (PTRACE_RING=2 needs least)",
		       NULL);
	if (!r) {
		r = rt_spawn_collector((int)fd);
		if (r)
			cannot_start(r);
	}
	rt_close((int)fd);
	return r;
}

int rt_ring_ready(void)
{
	int r = rt_spawn_wait();

	if (r)
		cannot_start(r);
	return r;
}

bool rt_ring_dead(void)
{
	return __atomic_load_n(&rt.ring->owner, __ATOMIC_ACQUIRE) & FUTEX_OWNER_DIED;
}

void rt_ring_kick(void)
{
	__atomic_add_fetch(&rt.ring->wake, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&rt.ring->asleep, __ATOMIC_SEQ_CST))
		rt_futex_wake(&rt.ring->wake);
}

void rt_ring_wait_done(struct ring_proc *p)
{
	rt_ring_kick();
	while (!__atomic_load_n(&p->done, __ATOMIC_ACQUIRE) && !rt_ring_dead())
		rt_futex_wait(&p->done, 0, 100);
}

/* ---- chunks ---- */

/* One that was used before, or, up to one for each thread and some more, one that was not. Threads that ended
 * wait for nobody, and have mostly touched little of theirs: new ones need not wait for those. */
static uint32_t get_chunk(bool *fresh)
{
	struct ring_head *h = rt.ring;
	uint32_t c = ring_pop_free(h), n;

	*fresh = false;
	if (c != RING_NONE)
		return c;
	n = __atomic_load_n(&h->fresh, __ATOMIC_RELAXED);
	/* a collector that died had some in its hands: those are lost */
	while (n < h->nchunks && (n < h->live + h->spare + RING_ENDED || rt_ring_dead()))
		if (__atomic_compare_exchange_n(&h->fresh, &n, n + 1, true, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			*fresh = true;
			return n;
		}
	return RING_NONE;
}

/* Without a collector: nobody takes what was handed over, and a thread that the program makes needs a chunk all the
 * same. false: there was none */
static bool reclaim(void)
{
	uint32_t top = __atomic_exchange_n(&rt.ring->full, 0, __ATOMIC_ACQUIRE), i;
	bool any = top != 0;

	while (top) {
		i = top - 1;
		top = ring_desc(rt.ring, i)->next;
		ring_desc(rt.ring, i)->filled = RING_UNKNOWN;
		ring_push_free(rt.ring, i);
	}
	return any;
}

/* RING_NONE when there is no collector that could free one, and all are in use */
static uint32_t wait_chunk(bool *fresh)
{
	struct ring_head *h = rt.ring;

	for (uint32_t i = 0;; i++) {
		uint32_t freed = __atomic_load_n(&h->freed, __ATOMIC_ACQUIRE), c = get_chunk(fresh);

		if (c != RING_NONE)
			return c;
		if (i < SPINS) {
			__asm__ volatile("pause");
			continue;
		}
		if (i == SPINS)
			rt_ring_kick();
		if (!rt_ring_dead())
			rt_futex_wait(&h->freed, freed, 100);
		else if (!reclaim())
			return get_chunk(fresh);
	}
}

/* How much of a chunk is used by a stream at position first. What is never written needs no pages: most programs are
 * short. With Intel PT each begins with a keyframe, and what gets lost ends there. */
static uint32_t chunk_room(uint64_t first)
{
	uint32_t room = rt.ring->live > MANY ? SMALL : first < YOUNG ? RING_PART : RUN_CHUNK_SIZE;

	return rt.ring->pt.cf == RING_CF_PT && rt.ring->pt.key < room ? (uint32_t)rt.ring->pt.key : room;
}

/* What the collector asks for meanwhile (ring_ask_key()) is lost: a keyframe is on its way. */
static void set_limit(struct rt_tcb *t)
{
	__atomic_store_n(&t->t.limit, (t->chunk | (RUN_CHUNK_SIZE - 1)) + 1, __ATOMIC_RELAXED);
}

/* t gets a chunk for the bytes of its stream from position first on; false when there is none */
bool rt_chunk_take(struct rt_tcb *t, uint64_t first)
{
	bool fresh;
	uint32_t c = wait_chunk(&fresh);
	struct ring_desc *d;

	if (c == RING_NONE)
		return false;
	d = ring_desc(rt.ring, c);
	d->kind = RING_LOG;
	d->proc = t->th.proc;
	d->tid = t->th.tid;
	d->uid = t->th.uid;
	d->first = first;
	d->start = RUN_CHUNK_SIZE - chunk_room(first);
	if (first && (fresh || (!d->start && first < GROWN)))
		populate(c, d->start); /* this thread writes a lot */
	d->bytes = d->ncut = d->key = 0;
	d->tsc_open = rt_now();
	t->th.copied = 0;
	t->chunk = (uint64_t)ring_chunk(rt.ring, c) + d->start;
	t->t.lp = t->chunk;
	if (t->th.rec)
		t->th.rec = t->chunk;
	set_limit(t);
	__atomic_store_n(&t->th.chunk, c, __ATOMIC_RELEASE);
	return true;
}

struct ring_desc *rt_chunk_desc(const struct rt_tcb *t)
{
	return ring_desc(rt.ring, t->th.chunk);
}

#define ENDS 8 /* of threads, each with a chunk, until the collector is woken */

/* what t has written goes to the collector; t has no chunk then */
void rt_chunk_give(struct rt_tcb *t, uint32_t kind)
{
	static uint32_t ended;
	uint32_t c = t->th.chunk;
	struct ring_desc *d = ring_desc(rt.ring, c);

	if (t->th.rec)
		t->t.lp = t->th.rec;
	d->kind = kind;
	d->tid = t->th.tid;
	d->bytes = (uint32_t)(t->t.lp - t->chunk);
	d->tsc_close = rt_now();
	ring_push_full(rt.ring, c);
	__atomic_store_n(&t->th.chunk, RING_NONE, __ATOMIC_RELEASE);
	/* To wake the collector costs more than all else at a thread's end. It looks by itself, too, and what waits for it kicks. */
	if (kind != RING_END || rt.pt || __atomic_add_fetch(&ended, 1, __ATOMIC_RELAXED) % ENDS == 0)
		rt_ring_kick();
}

/* to the collector, for this process, in a chunk of its own. 0 or -errno */
int rt_ring_message(uint32_t kind, const void *p, uint32_t n)
{
	bool fresh;
	uint32_t c = wait_chunk(&fresh);
	struct ring_desc *d;

	if (c == RING_NONE)
		return -EPIPE;
	d = ring_desc(rt.ring, c);
	d->kind = kind;
	d->proc = rt.main->th.proc;
	d->start = d->ncut = d->key = 0;
	d->bytes = n;
	memcpy(ring_chunk(rt.ring, c), p, n);
	ring_push_full(rt.ring, c);
	rt_ring_kick();
	return 0;
}

/* From here on t's log is thrown away: it goes round in the chunk it has. The collector has taken what
 * was in it. */
static void throw_away(struct rt_tcb *t)
{
	struct ring_proc *p = rt_proc(t);
	uint32_t run = RING_RUN;

	/* stopped by a process that shares our memory, perhaps */
	if (__atomic_compare_exchange_n(&p->state, &run, RING_STOP, false, __ATOMIC_RELEASE,
					__ATOMIC_RELAXED))
		p->stop_reason = RUN_STOP_UNSUPPORTED;
	rt_ring_wait_done(p);
	t->t.lp = t->chunk;
	set_limit(t);
	rt_chunk_desc(t)->ncut = rt_chunk_desc(t)->key = 0;
	rt_chunk_desc(t)->filled = RING_UNKNOWN;
}

/* 0, or an enum run_stop: t cannot go on logging, and keeps its chunk */
static int next_chunk(struct rt_tcb *t)
{
	struct ring_head *h = rt.ring;
	uint32_t c = t->th.chunk;
	uint64_t next = rt_ring_pos(t, t->t.lp);

	if (rt.stopped) {
		throw_away(t);
		return 0;
	}
	if (h->error || rt_ring_dead())
		return h->error ? RUN_STOP_SPACE : RUN_STOP_COLLECTOR;
	rt_chunk_give(t, RING_LOG);
	if (rt_chunk_take(t, next))
		return 0;
	t->th.chunk = c; /* as it was: nobody will look at it */
	return RUN_STOP_COLLECTOR;
}

uint32_t rt_ring_room(struct rt_tcb *t)
{
	if (!(t->t.lp >> RUN_CHUNK_FULL_BIT & 1) && rt_chunk_desc(t)->ncut < RING_CUTS)
		return 0;
	return (uint32_t)next_chunk(t);
}

/* the chunk is full: 0 to go on at tcb.resume with a new log pointer, RT_DO_LEAVE */
int rt_chunk_full(struct rt_tcb *t)
{
	int why;

	if ((t->t.what & 0xff) == NONDET_XBEGIN)
		return rt_transaction(t);
	if (t->t.what) {
		rt_nondet(t);
		if (t->th.rec)
			t->t.lp = t->th.rec;
		t->sv.gpr[R15] = t->t.lp;
		return 0;
	}
	if (t->th.rec) { /* recording: what the copies log is not kept */
		t->sv.gpr[R15] = t->t.lp = t->th.rec;
		if (!(t->th.rec >> RUN_CHUNK_FULL_BIT & 1))
			return 0;
	}
	why = next_chunk(t);
	if (why && rt_stop_here(t, (uint32_t)why))
		return rt_stop_leave(t, (uint32_t)why, 0);
	if (!why && rt.pt && !rt.stopped)
		rt_pt_key(t);
	t->sv.gpr[R15] = t->t.lp;
	rt_reach_last = 0; /* a log pointer of another chunk may be the same */
	return 0;
}

/* ---- written by the runtime ---- */

uint64_t rt_ring_pos(const struct rt_tcb *t, uint64_t lp)
{
	return rt_chunk_desc(t)->first + (lp - t->chunk) - ring_keyed(rt_chunk_desc(t));
}

/* A mark and n bytes that belong to it. There is room behind every position at which a copy leaves for the runtime
 * (RUN_CHUNK_SLACK). Whole before the log pointer is behind it: a killed process leaves nothing half said */
static void mark(struct rt_tcb *t, uint32_t word, uint64_t arg, const void *p, uint32_t n)
{
	uint8_t *at = (uint8_t *)t->t.lp;

	memcpy(at, &word, 4);
	memcpy(at + 4, &arg, 8);
	memcpy(at + 12, p, n);
	__atomic_store_n(&t->t.lp, (uint64_t)at + 12 + n, __ATOMIC_RELEASE);
}

void rt_called(struct rt_tcb *t, uint32_t nr, uint64_t result)
{
	mark(t, RUN_MARK_SYSCALL | nr << RUN_MARK_ID_SHIFT, result, NULL, 0);
}

void rt_event(struct rt_tcb *t, uint32_t ev, uint64_t arg)
{
	mark(t, RUN_MARK_EVENT | ev << RUN_MARK_ID_SHIFT, arg, NULL, 0);
}

void rt_event_with(struct rt_tcb *t, uint32_t ev, uint64_t arg, const void *p, uint32_t n)
{
	mark(t, RUN_MARK_EVENT | ev << RUN_MARK_ID_SHIFT, arg, p, n);
}

void rt_cut(struct rt_tcb *t, uint64_t at, uint32_t bytes)
{
	struct ring_desc *d = rt_chunk_desc(t);

	if (t->th.rec)
		return; /* in a record stream nothing is interrupted */
	ring_cuts(rt.ring, t->th.chunk)[d->ncut] = (struct run_cut){(uint32_t)(at - t->chunk), bytes};
	__atomic_store_n(&d->ncut, d->ncut + 1, __ATOMIC_RELEASE);
}

void rt_cut_undo(struct rt_tcb *t)
{
	if (!t->th.rec)
		rt_chunk_desc(t)->ncut--;
}

/* n bytes into the stream, over as many chunks as it takes */
void rt_log(struct rt_tcb *t, const void *from, uint64_t n)
{
	const uint8_t *p = from;

	while (n) {
		uint64_t lim = (uint64_t)ring_chunk(rt.ring, chunk_of(t->chunk)) + RUN_CHUNK_SIZE, k;

		k = t->t.lp < lim ? lim - t->t.lp : 0;
		k = k < n ? k : n;
		memcpy((void *)t->t.lp, p, k);
		t->t.lp += k;
		if (t->th.rec)
			__atomic_store_n(&t->th.rec, t->t.lp, __ATOMIC_RELEASE);
		p += k;
		n -= k;
		if (n && next_chunk(t)) { /* the trace is about to end anyway */
			rt_hold_block(t);
			rt_stop_here(t, RUN_STOP_COLLECTOR);
			t->t.lp = t->chunk;
		}
	}
}
