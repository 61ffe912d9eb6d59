/* SPDX-License-Identifier: MIT
 *
 * collect_work.c - compresses several chunks at a time
 *
 * LZ4 takes 0.5 to 2 GB/s a core, traced programs write more. When the program has to wait for a
 * chunk its processor is idle, so a second thread is of use even where there are two processors.
 *
 *   claim:  chunk `next` (lock)  ──▶ chunk_pack (no lock) ──▶ wait for tail == chunk (lock) ──▶
 *   chunk_append (its turn: nobody else) ──▶ tail++ (lock)
 *
 * The log is therefore in stream order, and the traced program gets chunks back in ring order.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <pthread.h>
#include <sched.h>
#include "collect.h"

#define WORKERS 4

static struct {
	pthread_mutex_t lock;
	pthread_cond_t turn; /* tail moved */
	uint32_t next; /* first chunk nobody has claimed */
	struct pack pack[WORKERS]; /* [0]: the main thread's */
	struct collect *c;
	bool flush; /* the processor has clflushopt */
} work = {.lock = PTHREAD_MUTEX_INITIALIZER, .turn = PTHREAD_COND_INITIALIZER};

static const uint8_t *chunk_at(struct collect *c, uint32_t n)
{
	return (const uint8_t *)c->ring + (1ull + n % c->ring->nchunks) * RUN_CHUNK_SPAN;
}

static uint32_t waiting(struct collect *c)
{
	return __atomic_load_n(&c->ring->head, __ATOMIC_ACQUIRE) - work.next;
}

static void append(struct collect *c, const struct pack *k, const struct ring_desc *d, int kind)
{
	if (chunk_append(c, k, d, kind))
		__atomic_store_n(&c->ring->error, c->error, __ATOMIC_RELEASE);
}

/* The traced thread writes these lines again soon. Left in this core's cache, each would have to be
 * fetched from there and invalidated first, which makes the thread write at a third of its speed. */
static void flush(const uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; work.flush && i < n; i += 64)
		__asm__ volatile("clflushopt %0" : : "m"(p[i]) : "memory");
}

/* with the lock held, as at return: one chunk from claim to disk; false: there is none */
static bool one(struct collect *c, struct pack *k)
{
	struct ring_head *h = c->ring;
	const struct ring_desc *d;
	uint32_t n;

	if (!waiting(c))
		return false;
	n = work.next++;
	pthread_mutex_unlock(&work.lock);
	d = &h->desc[n % h->nchunks];
	if (d->bytes <= RUN_CHUNK_SIZE + RUN_CHUNK_SLACK)
		chunk_pack(c, k, chunk_at(c, n), d->bytes);
	if (k->data == k->buf)
		flush(chunk_at(c, n), d->bytes);
	pthread_mutex_lock(&work.lock);
	while (h->tail != n)
		pthread_cond_wait(&work.turn, &work.lock);
	pthread_mutex_unlock(&work.lock);
	if (d->bytes <= RUN_CHUNK_SIZE + RUN_CHUNK_SLACK)
		append(c, k, d, 0);
	if (k->data != k->buf)
		flush(chunk_at(c, n), d->bytes);
	pthread_mutex_lock(&work.lock);
	__atomic_add_fetch(&h->tail, 1, __ATOMIC_RELEASE);
	futex_wake(&h->tail);
	pthread_cond_broadcast(&work.turn);
	return true;
}

/* The traced thread's wake-up reaches all of them: whoever comes first claims the chunk. */
static void *helper(void *arg)
{
	struct ring_head *h = work.c->ring;
	struct pack *k = arg;

	for (;;) {
		uint32_t wake = __atomic_load_n(&h->wake, __ATOMIC_ACQUIRE);

		pthread_mutex_lock(&work.lock);
		while (one(work.c, k))
			;
		pthread_mutex_unlock(&work.lock);
		futex_wait(&h->wake, wake, 1000);
	}
	return NULL;
}

/* helpers are a convenience: where they cannot be had, the main thread does it all */
int work_init(struct collect *c)
{
	uint32_t max = c->ring->nchunks - 1;
	unsigned eax, ebx, ecx, edx;
	cpu_set_t cpus;
	int n = sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : CPU_COUNT(&cpus);

	work.c = c;
	work.flush = __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ebx & bit_CLFLUSHOPT);
	if (n > WORKERS)
		n = WORKERS;
	for (int i = 1; i < n && (uint32_t)i < max; i++) {
		pthread_t t;

		if (pack_init(&work.pack[i]) || pthread_create(&t, NULL, helper, &work.pack[i]))
			break;
		pthread_detach(t);
	}
	return pack_init(&work.pack[0]);
}

bool work_drain(struct collect *c)
{
	bool any = false;

	pthread_mutex_lock(&work.lock);
	while (one(c, &work.pack[0]))
		any = true;
	pthread_mutex_unlock(&work.lock);
	return any;
}

void work_last(struct collect *c, uint64_t n, const struct ring_desc *d, int kind)
{
	struct ring_head *h = c->ring;

	pthread_mutex_lock(&work.lock);
	while (h->tail != work.next)
		pthread_cond_wait(&work.turn, &work.lock);
	pthread_mutex_unlock(&work.lock);
	chunk_pack(c, &work.pack[0], chunk_at(c, h->head), n);
	append(c, &work.pack[0], d, kind);
}
