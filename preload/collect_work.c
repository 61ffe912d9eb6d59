/* SPDX-License-Identifier: MIT
 *
 * collect_work.c - from the ring to disk, out of the program's way
 *
 * Traced programs write faster than one core compresses. So a chunk does not stay in the ring until it
 * is compressed: the main thread copies it out at once, and the program goes on.
 *
 *   ring ─▶ take() ─┬─▶ a buffer in memory ─┐
 *                   └─▶ collect_spool.c ────┴─▶ worker(): compress ─▶ append in stream order
 *
 * Buffers are bounded, and so is the spool; when both are used up the chunk stays where it is and the
 * program waits. While it runs, the workers leave it a processor; when it waits or has ended its
 * processor is idle, and one more of them works.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "collect.h"

#define WORKERS 4
#define BUFFERS 32
#define SMALL (64u << 10) /* what is no larger, as of threads that end soon, has memory of its own size, */
#define SMALL_ALL (32u << 20) /* as long as all of them together have no more than this */
#define PACKS (2 * WORKERS)
#define RETRY 64 /* chunks after which the spool is tried again */

/* a chunk on its way */
struct item {
	struct ring_desc d;
	struct cthread *t;
	int kind; /* run_chunk.kind */
	uint8_t *buf; /* one of the buffers, or of its own size (`small` bytes, else 0), or NULL: */
	uint32_t small;
	uint64_t at; /* offset in the spool */
	struct pack *pack; /* set when it is compressed */
};

static struct {
	pthread_mutex_t lock;
	/* an item came, and the spare worker may have it, too; a buffer, pack or place came free; `out` moved */
	pthread_cond_t more, more_spare, room, turn;
	struct collect *c;
	struct item item[WORK_MAX];
	uint64_t in, next, out; /* items that came, were claimed, are on disk */
	uint8_t *buf[BUFFERS]; /* free ones */
	uint32_t nbuf, nmade;
	uint32_t small; /* bytes, of all items */
	struct pack pack[PACKS], *free_pack[PACKS];
	uint32_t npack;
	uint64_t pack_ns, put_ns; /* processor time of compressing a chunk, of spooling one: recent ones */
	bool appending;
	bool pressed; /* the program waits, or has ended */
} work = {.lock = PTHREAD_MUTEX_INITIALIZER,
	  .more = PTHREAD_COND_INITIALIZER,
	  .more_spare = PTHREAD_COND_INITIALIZER,
	  .room = PTHREAD_COND_INITIALIZER,
	  .turn = PTHREAD_COND_INITIALIZER};

static struct item *item_at(uint64_t n)
{
	return &work.item[n % WORK_MAX];
}

/* ---- in: the main thread ---- */

/* with the lock */
static void press(bool on)
{
	if (on && !work.pressed)
		pthread_cond_signal(&work.more_spare);
	work.pressed = on;
}

/* with the lock: memory for n bytes of it, or NULL */
static uint8_t *get_buffer(struct item *it, uint64_t n)
{
	if (n && n <= SMALL && n <= SMALL_ALL - work.small) {
		uint8_t *own = malloc(n);

		if (own) {
			it->small = (uint32_t)n;
			work.small += it->small;
			return own;
		}
	}
	if (work.nbuf)
		return work.buf[--work.nbuf];
	if (work.nmade == BUFFERS)
		return NULL;
	uint8_t *p = malloc(CHUNK_MAX);

	work.nmade += p != NULL;
	return p;
}

static uint64_t thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void learn(uint64_t *mean, uint64_t ns)
{
	uint64_t m = __atomic_load_n(mean, __ATOMIC_RELAXED);

	__atomic_store_n(mean, m ? m - m / 8 + ns / 8 : ns, __ATOMIC_RELAXED);
}

/* Into the spool, unless that takes as long as compressing: it costs a page of the page cache for each of the
 * chunk's, and to read them back. Where pages are dear, or logs easy, the program rather waits. */
static bool spooled(const uint8_t *p, uint64_t n, uint64_t *at)
{
	uint64_t t = thread_ns();
	static uint32_t tries;
	bool ok;

	if (2 * work.put_ns > __atomic_load_n(&work.pack_ns, __ATOMIC_RELAXED) && ++tries % RETRY)
		return false;
	ok = spool_put(p, n, at);
	if (ok)
		learn(&work.put_ns, thread_ns() - t);
	return ok;
}

/* Room for n bytes: it->buf, or, when that is NULL, it is in the spool by now, put together in `flat` first
 * if it is of two pieces. Waits when there is no room. */
static void place(struct item *it, const uint8_t *p, uint64_t n, const uint8_t *cuts, uint64_t ncuts)
{
	static uint8_t flat[CHUNK_MAX];

	pthread_mutex_lock(&work.lock);
	for (;;) {
		it->buf = get_buffer(it, n + ncuts);
		if (it->buf)
			break;
		pthread_mutex_unlock(&work.lock);
		if (ncuts) {
			memcpy(flat, p, n);
			memcpy(flat + n, cuts, ncuts);
		}
		if (spooled(ncuts ? flat : p, n + ncuts, &it->at))
			return;
		pthread_mutex_lock(&work.lock);
		if (!work.nbuf) {
			press(true);
			pthread_cond_wait(&work.room, &work.lock);
		}
	}
	press(false);
	pthread_mutex_unlock(&work.lock);
	memcpy(it->buf, p, n);
	memcpy(it->buf + n, cuts, ncuts);
}

/* what a chunk holds becomes the next item */
static void take(struct collect *c, uint32_t chunk, const struct ring_desc *d, int kind)
{
	struct cthread *t = proc_thread(c, d);
	const uint8_t *p = ring_chunk(c->ring, chunk) + d->start;
	struct item *it = item_at(work.in);
	uint32_t ncut = d->ncut < RING_CUTS ? d->ncut : RING_CUTS;

	/* of nobody; or found in its thread's hands, too, when it had been handed over */
	if (!t || d->first != t->taken || d->start + (uint64_t)d->bytes > RING_BYTES ||
	    ring_keyed(d) > d->bytes)
		return;
	t->taken += d->bytes - ring_keyed(d);
	pthread_mutex_lock(&work.lock);
	while (work.in - work.out == WORK_MAX)
		pthread_cond_wait(&work.room, &work.lock);
	pthread_mutex_unlock(&work.lock);
	*it = (struct item){.d = *d, .t = t, .kind = kind};
	it->d.ncut = ncut;
	place(it, p, d->bytes, (const uint8_t *)ring_cuts(c->ring, chunk), ncut * sizeof(struct run_cut));
	if (kind)
		proc_forget(t);
	pthread_mutex_lock(&work.lock);
	work.in++;
	pthread_cond_signal(&work.more);
	if (work.pressed)
		pthread_cond_signal(&work.more_spare);
	pthread_mutex_unlock(&work.lock);
}

/* a chunk that was handed over; it is free then */
static void one(struct collect *c, uint32_t i)
{
	struct ring_desc *d = ring_desc(c->ring, i);

	if (d->kind == RING_MODULES)
		proc_modules(c, d, ring_chunk(c->ring, i));
	else
		take(c, i, d, d->kind == RING_END);
	d->kind = RING_NOBODY;
	fill_again(c, i, d->start, d->start + d->bytes);
	ring_push_free(c->ring, i);
	__atomic_add_fetch(&c->ring->freed, 1, __ATOMIC_RELEASE);
	futex_wake(&c->ring->freed);
}

bool work_drain(struct collect *c)
{
	struct ring_head *h = c->ring;
	uint32_t top = __atomic_exchange_n(&h->full, 0, __ATOMIC_ACQUIRE), first = 0;
	bool any = top != 0;

	while (top && top <= h->nchunks) { /* turned round: the oldest first */
		uint32_t next = ring_desc(h, top - 1)->next;

		ring_desc(h, top - 1)->next = first;
		first = top;
		top = next;
	}
	while (first) {
		uint32_t next = ring_desc(h, first - 1)->next;

		one(c, first - 1);
		first = next;
	}
	return any;
}

void work_left(struct collect *c, uint32_t chunk, uint64_t bytes, int kind)
{
	struct ring_desc d = *ring_desc(c->ring, chunk);
	const struct run_cut *cut = ring_cuts(c->ring, chunk);

	/* a process may be killed between writing a cut and moving its log pointer there */
	while (d.ncut && d.ncut <= RING_CUTS && (uint64_t)cut[d.ncut - 1].at + cut[d.ncut - 1].bytes > bytes)
		d.ncut--;
	d.bytes = (uint32_t)bytes;
	if (ring_keyed(&d) > d.bytes) /* or in the midst of a keyframe */
		d.key = d.bytes = 0;
	d.tsc_close = d.tsc_open;
	take(c, chunk, &d, kind);
}

uint64_t work_in(void)
{
	return work.in;
}

bool work_finish(uint64_t in, int ms)
{
	struct timespec t;
	bool done;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += ms % 1000 * 1000000l;
	if (t.tv_nsec >= 1000000000) {
		t.tv_nsec -= 1000000000;
		t.tv_sec++;
	}
	pthread_mutex_lock(&work.lock);
	press(true);
	while (work.out < in && ms && pthread_cond_timedwait(&work.turn, &work.lock, &t) != ETIMEDOUT)
		;
	done = work.out >= in;
	pthread_mutex_unlock(&work.lock);
	return done;
}

/* ---- out: the workers ---- */

/* with the lock: writes whatever is next in stream order and compressed, if nobody else does */
static void append_ready(void)
{
	if (work.appending)
		return;
	work.appending = true;
	while (work.out != work.in && item_at(work.out)->pack) {
		struct item *it = item_at(work.out);

		pthread_mutex_unlock(&work.lock);
		if (chunk_append(work.c, it->t, it->pack, &it->d, it->kind))
			__atomic_store_n(&work.c->ring->error, work.c->error, __ATOMIC_RELEASE);
		if (it->kind)
			free(it->t);
		pthread_mutex_lock(&work.lock);
		work.free_pack[work.npack++] = it->pack;
		if (it->small)
			free(it->buf);
		else if (it->buf)
			work.buf[work.nbuf++] = it->buf;
		work.small -= it->small;
		work.out++;
		pthread_cond_broadcast(&work.room);
		pthread_cond_broadcast(&work.turn);
	}
	work.appending = false;
	pthread_cond_broadcast(&work.turn);
}

/* Makes the logs of p's threads of which something waits: who finds that p has ended finds all of them. */
void work_begin(const struct cproc *p)
{
	pthread_mutex_lock(&work.lock);
	while (work.appending)
		pthread_cond_wait(&work.turn, &work.lock);
	work.appending = true;
	for (uint64_t i = work.out; i != work.in; i++) {
		struct cthread *t = item_at(i)->t;

		if (t->p == p && !t->made && !work.c->error)
			chunk_begin(work.c, t);
	}
	work.appending = false;
	append_ready();
	pthread_mutex_unlock(&work.lock);
}

struct worker {
	uint8_t *own; /* for what comes from the spool */
	bool spare; /* works only while the program does not */
	uint16_t table[LZ_TABLE]; /* for lz_pack */
};

static void *worker(void *arg)
{
	struct worker *w = arg;
	uint8_t *own = w->own;

	/* the main thread, for which the program may have to wait, goes first */
	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), getpriority(PRIO_PROCESS, 0) + 5);
	pthread_mutex_lock(&work.lock);
	for (;;) {
		struct item *it;
		struct pack *k;
		uint64_t t, n;
		int err = 0;

		while (work.next == work.in || (w->spare && !work.pressed))
			pthread_cond_wait(w->spare ? &work.more_spare : &work.more, &work.lock);
		if (!work.npack) { /* one comes free when the item before is written */
			pthread_cond_wait(&work.room, &work.lock);
			continue;
		}
		it = item_at(work.next++);
		k = work.free_pack[--work.npack];
		pthread_mutex_unlock(&work.lock);
		n = it->d.bytes + it->d.ncut * sizeof(struct run_cut);
		if (!it->buf)
			err = spool_get(own, n, it->at);
		t = it->small ? 0
			      : thread_ns(); /* a system call, and of no use where there is little to do */
		chunk_pack(work.c, k, w->table, it->buf ? it->buf : own, n);
		if (!it->small)
			learn(&work.pack_ns, thread_ns() - t);
		if (k->data == own) /* stored: the next chunk must not overwrite it */
			k->data = memcpy(k->buf, own, k->size);
		pthread_mutex_lock(&work.lock);
		if (err && !work.c->error)
			work.c->error = err;
		it->pack = k;
		append_ready();
	}
	return NULL;
}

void work_populate(struct collect *c)
{
	const uint32_t first = RUN_CHUNK_SIZE - RING_PART, n = RING_PART + RUN_CHUNK_SLACK;

	for (uint32_t i = 1; i <= c->ring->spare; i++)
		madvise(ring_chunk(c->ring, i) + first, n, MADV_POPULATE_WRITE);
}

/* workers to start with: as many as there are processors; one is a must */
int work_init(struct collect *c)
{
	cpu_set_t cpus;
	int n = sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : CPU_COUNT(&cpus), err = 0;

	work.c = c;
	for (int i = 0; i < PACKS && !err; i++) {
		err = pack_init(&work.pack[i]);
		work.free_pack[work.npack++] = &work.pack[i];
	}
	for (int i = 0; i < n && i < WORKERS && !err; i++) {
		struct worker *w = calloc(1, sizeof(*w));
		pthread_t t;
		int e;

		if (w) {
			w->own = malloc(CHUNK_MAX);
			w->spare = i && i == n - 1;
		}
		e = w && w->own ? pthread_create(&t, NULL, worker, w) : ENOMEM;

		if (!e)
			pthread_detach(t);
		else if (!i)
			err = e;
	}
	return err;
}
