/* SPDX-License-Identifier: MIT
 *
 * ring.h - the memory that traced processes and their ptrace-collect share
 *
 * One for each exec'd image and everything it forks: it is a shared mapping, so a child has it already,
 * whatever became of its root directory, its user or its descriptors.
 *
 *   memfd:  struct ring_head │ ring_proc … │ ring_desc, one per chunk … │ TCB pages, one per thread │ chunks
 *                                                                       └ struct rt_tcb, ring_thread
 *
 * A chunk is RUN_CHUNK_SPAN bytes of address space, of which a thread uses the first half. Its way:
 *
 *   free list ─▶ a thread writes ─▶ push on `full` ─▶ ptrace-collect copies it out ─▶ free list
 *
 * `full` is a stack that only grows, by compare and swap, until the collector takes all of it and turns it
 * round: a thread that is killed at any point has handed its chunk over or it has not. What it has not is found by
 * ring_thread.chunk, up to the log pointer in its TCB: x86 stores become visible in program order, so
 * everything below a published log pointer is complete. Behind it, what is no fill has been stored, too
 * (collect_fill.c). A chunk may be found both ways, when its thread is killed just then: the collector marks those that
 * it has taken (RING_NOBODY).
 *
 * Who writes what: threads: their ring_thread, descriptors of chunks they have, `full`, `wake`, `fresh`, the state of
 * their ring_proc; the collector: `freed`, `ready`, `error`, `owner`, ring_proc.done, answers in ring_thread.pt, and tcb.limit
 * where it asks for a keyframe.
 */
#ifndef RING_H
#define RING_H

#include <stddef.h>
#include <stdint.h>
#include "run.h"

#define RING_MAGIC 0x474e495254505450ull
#define RING_VERSION 4
#define RING_THREADS 4096 /* at once, at most */
#define RING_PROCS 1024
#define RING_SPARE 64 /* chunks beyond one per thread, at most */
#define RING_ENDED 16 /* chunks of threads that ended, beyond those */
#define RING_NONE 0xffffffffu
#define RING_UNKNOWN 0xffffu
#define RING_PAGE 4096u

/* A traced process image. Free entries are taken by who is about to fork. */
enum ring_state { RING_FREE, RING_TAKEN, RING_RUN, RING_EXEC, RING_EXIT, RING_STOP };
struct ring_proc {
	uint32_t state; /* enum ring_state */
	uint32_t pid;
	uint32_t uid, parent; /* number of the process among all that ever were; its parent's */
	uint32_t nmodules; /* records of its parent's modules.bin that hold for it */
	uint32_t start; /* RUN_START_*; 0 for the first */
	uint32_t done; /* futex: 1 its log is complete, or will be without it */
	uint32_t stop_reason; /* enum run_stop */
	uint32_t exit_code; /* state RING_EXIT: the argument of exit_group */
	uint32_t nlive; /* threads that have a ring_thread, but for those that say they exit */
	uint32_t halted, zero; /* futex: bumped when a thread has said where it is (rt_halt.c) */
	uint64_t stop_uid; /* ring_thread.uid of the thread that stopped it */
	uint64_t extra; /* bytes to save beyond its log pointer at an asynchronous stop */
	struct run_stop_state stop; /* valid when state is RING_STOP */
};

/* A chunk, valid from when a thread gets it; bytes, ncut and tsc_close from when it is handed over. */
enum ring_kind {
	RING_LOG,
	RING_END, /* the thread's last */
	RING_MODULES, /* not of a stream: records for modules.bin */
	RING_NOBODY, /* taken out of the ring */
};
struct ring_desc {
	uint32_t next; /* on a list: index + 1 of the next */
	uint16_t kind; /* enum ring_kind */
	uint16_t key; /* run_chunk.key, in eights: so much at the beginning is no part of the stream */
	uint32_t proc, tid;
	uint64_t uid; /* of the thread */
	uint64_t first; /* stream position of the first byte */
	uint32_t start; /* where it begins in the chunk's span */
	uint32_t bytes;
	uint64_t tsc_open, tsc_close;
	uint32_t ncut; /* struct run_cut at ring_cuts() */
	/* when no thread has it, in lines of 64 bytes: where fill begins, where it ends (or RING_UNKNOWN); the rest is 0 */
	uint16_t unfilled, filled;
};
_Static_assert(sizeof(struct ring_desc) == 64, "a cache line: two threads do not share one");

/* Intel PT of a thread: what it waits for, set by the thread, and the collector's answer. */
enum ring_pt_state {
	RING_PT_NONE,
	RING_PT_OPEN, /* an event, that does not run yet */
	RING_PT_START, /* that it runs; opened first where it is not */
	RING_PT_OPENED,
	RING_PT_ON,
	RING_PT_FAILED,
};
/* Of the image. The runtime fills it in before there is a collector, which says why not in `why` before it answers. */
struct ring_pt {
	uint32_t cf; /* enum ring_cf: who tells the control flow */
	uint32_t cyc; /* with CYC packets */
	uint32_t noretc, zero; /* returns are not compressed */
	int32_t psb, mtc; /* exponents of their periods; mtc -1: none */
	uint64_t aux, ring; /* bytes of the buffers, powers of two */
	uint64_t key; /* bytes of log, or of packets, from keyframe to keyframe */
	uint64_t rt_base, counter_branch, counter_ptw; /* as in struct run_pt_info */
	uint32_t counter; /* the collector's: run_pt_info.counter */
	uint32_t ptwrite; /* the collector's: the PMU takes PTWRITE packets */
	char why[512]; /* one line: why this one (run.json, cf_reason) */
};
enum ring_cf { RING_CF_SOFT, RING_CF_PT, RING_CF_NONE }; /* NONE: nobody, a test */

/* At the end of a TCB's page. */
/* ENDED: its last chunk is on its way, it is not counted as alive any more, and about to free its TCB */
enum ring_life { RING_THREAD_FREE, RING_THREAD_TAKEN, RING_THREAD_LIVE, RING_THREAD_ENDED };
struct ring_thread {
	uint32_t life; /* enum ring_life */
	uint32_t proc; /* index */
	uint32_t tid;
	uint32_t chunk; /* RING_NONE while it waits for one */
	uint64_t uid; /* number of the thread among all that ever were */
	uint32_t calling; /* it is in a system call: nothing was logged behind the published log pointer */
	uint32_t copied; /* what stands behind the log pointer may not all be log (rt_sigframe.c) */
	uint32_t pt; /* futex: enum ring_pt_state */
	uint32_t pt_error; /* errno of RING_PT_FAILED */
	uint64_t
		rec; /* where the record stream ends (rt_record.c): in place of the log pointer, which is not used. Or 0 */
	uint32_t key; /* counter of its last keyframe */
	uint32_t zero;
};
#define RING_THREAD_OFF (RING_PAGE - 64)

struct ring_head {
	uint64_t magic;
	uint32_t version;
	uint32_t nthreads, nchunks; /* TCBs, chunks there is address space for */
	uint32_t spare; /* chunks there may be beyond one per thread */
	uint64_t base; /* run-time address in the traced processes */
	uint32_t ready; /* futex: 1 the collector is up, 2 it failed (error) */
	uint32_t error; /* errno of a failed write; threads stop at their next slow path */
	uint32_t owner; /* robust futex: the kernel sets FUTEX_OWNER_DIED if the collector dies */
	uint32_t nprocs; /* entries of ring_proc ever used */
	uint32_t nslots; /* TCBs ever used */
	uint32_t live; /* threads that have one */
	uint32_t record; /* the threads write record streams (run_rec.h) */
	uint32_t switched; /* the process goes on as another image, recorded in full */
	uint32_t hint, proc_hint; /* a TCB, a ring_proc that may be free */
	uint32_t nproc_uid;
	uint64_t nuid;
	uint32_t fresh __attribute__((aligned(64))); /* chunks ever used */
	uint32_t full; /* stack: index + 1 of the newest chunk handed over */
	uint32_t wake; /* futex: bumped whenever the collector has something to look at */
	uint32_t asleep; /* it waits for that */
	uint64_t free
		__attribute__((aligned(64))); /* stack: index + 1 of a chunk, above it a count of changes */
	uint32_t freed; /* futex: bumped when a chunk came free */
	struct ring_pt pt __attribute__((aligned(64)));
};
_Static_assert(sizeof(struct ring_head) <= RING_PAGE, "the head is one page");

static inline struct ring_proc *ring_proc(struct ring_head *h, uint32_t i)
{
	return (struct ring_proc *)((char *)h + RING_PAGE) + i;
}

#define RING_DESC_OFF                                                                                        \
	((RING_PAGE + RING_PROCS * sizeof(struct ring_proc) + RING_PAGE - 1) / RING_PAGE * RING_PAGE)

static inline struct ring_desc *ring_desc(struct ring_head *h, uint32_t i)
{
	return (struct ring_desc *)((char *)h + RING_DESC_OFF) + i;
}

static inline uint32_t ring_keyed(const struct ring_desc *d) /* bytes of the keyframe at its beginning */
{
	return d->key * 8u;
}

static inline uint64_t ring_tcb_off(uint32_t nchunks, uint32_t i)
{
	uint64_t end = RING_DESC_OFF + nchunks * sizeof(struct ring_desc);

	return (end + RING_PAGE - 1) / RING_PAGE * RING_PAGE + (uint64_t)i * RING_PAGE;
}

static inline struct tcb *ring_tcb(struct ring_head *h, uint32_t i)
{
	return (struct tcb *)((char *)h + ring_tcb_off(h->nchunks, i));
}

static inline struct ring_thread *ring_thread(struct ring_head *h, uint32_t i)
{
	return (struct ring_thread *)((char *)ring_tcb(h, i) + RING_THREAD_OFF);
}

/* The collector wants a keyframe: at its next space check the thread finds its chunk full. Should it be about to set the
 * limit itself, this is lost, and asked for once more. */
static inline void ring_ask_key(struct ring_thread *th)
{
	struct tcb *t = (struct tcb *)((char *)th - RING_THREAD_OFF);

	__atomic_store_n(&t->limit, 0, __ATOMIC_RELAXED);
}

/* offset of chunk i, or, for nchunks, the size of it all */
static inline uint64_t ring_chunk_off(uint32_t nthreads, uint32_t nchunks, uint32_t i)
{
	uint64_t end = ring_tcb_off(nchunks, nthreads);

	return (end + RUN_CHUNK_SPAN - 1) / RUN_CHUNK_SPAN * RUN_CHUNK_SPAN + (uint64_t)i * RUN_CHUNK_SPAN;
}

static inline uint64_t ring_size(const struct ring_head *h)
{
	return ring_chunk_off(h->nthreads, h->nchunks, h->nchunks);
}

static inline uint8_t *ring_chunk(struct ring_head *h, uint32_t i)
{
	return (uint8_t *)h + ring_chunk_off(h->nthreads, h->nchunks, i);
}

/* cuts of the chunk, behind all that the thread may write of its stream */
#define RING_CUTS 1024
/* a chunk's bytes, at most: the slack, and what the runtime writes without looking (events, marks) */
#define RING_PART (256u << 10) /* of a chunk, its end: what a stream gets at its beginning */
#define RING_BYTES (RUN_CHUNK_SIZE + 2 * RUN_CHUNK_SLACK - RING_CUTS * sizeof(struct run_cut))
static inline struct run_cut *ring_cuts(struct ring_head *h, uint32_t i)
{
	return (struct run_cut *)(ring_chunk(h, i) + RUN_CHUNK_SIZE + 2 * RUN_CHUNK_SLACK);
}

/* the lists; both sides use the free one */
static inline void ring_push_full(struct ring_head *h, uint32_t i)
{
	uint32_t top = __atomic_load_n(&h->full, __ATOMIC_RELAXED);

	do
		ring_desc(h, i)->next = top;
	while (!__atomic_compare_exchange_n(&h->full, &top, i + 1, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static inline void ring_push_free(struct ring_head *h, uint32_t i)
{
	uint64_t top = __atomic_load_n(&h->free, __ATOMIC_RELAXED), n;

	do {
		ring_desc(h, i)->next = (uint32_t)top;
		n = ((top >> 32) + 1) << 32 | (i + 1);
	} while (!__atomic_compare_exchange_n(&h->free, &top, n, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static inline uint32_t ring_pop_free(struct ring_head *h) /* index or RING_NONE */
{
	uint64_t top = __atomic_load_n(&h->free, __ATOMIC_ACQUIRE), n;

	do {
		if (!(uint32_t)top)
			return RING_NONE;
		n = ((top >> 32) + 1) << 32 | ring_desc(h, (uint32_t)top - 1)->next;
	} while (!__atomic_compare_exchange_n(&h->free, &top, n, true, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE));
	return (uint32_t)top - 1;
}

#endif
