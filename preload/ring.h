/* SPDX-License-Identifier: MIT
 *
 * ring.h - the memory that the traced process and ptrace-collect share
 *
 *   memfd:  span 0                          span 1      span 2   …  span nchunks
 *           page 0: struct ring_head        chunk 0     chunk 1
 *           page 1: struct rt_tcb
 *
 * Spans are RUN_CHUNK_SPAN bytes. One producer (the traced thread), one consumer. The TCB is
 * in shared memory so that what a killed process had published (tcb.lp) is there for the
 * collector: x86 stores become visible in program order, so everything below a published
 * log pointer is complete.
 *
 * The producer owns `head`, `wake`, `state`, the descriptor of chunk head % nchunks; the
 * collector owns `tail`, `ready`, `done`, `error`, `owner`.
 */
#ifndef RING_H
#define RING_H

#include <stdint.h>
#include "run.h"

#define RING_MAGIC 0x474e495254505450ull
#define RING_VERSION 1
#define RING_MAX 64
#define RING_TCB_OFF 4096

enum ring_state { RING_RUN, RING_EXEC, RING_EXIT, RING_STOP };

struct ring_desc {
	uint64_t first; /* stream position of the chunk's first byte */
	uint64_t bytes; /* set when handed over */
	uint64_t tsc_open, tsc_close;
};

struct ring_head {
	uint64_t magic;
	uint32_t version, nchunks;
	uint32_t pid, tid;
	uint64_t base; /* run-time address of span 0 in the traced process */
	uint32_t head; /* chunks handed over so far */
	uint32_t tail; /* futex: chunks written so far */
	uint32_t wake; /* futex: bumped whenever the collector has something to look at */
	uint32_t state; /* enum ring_state */
	uint32_t ready; /* futex: 1 the collector is up, 2 it failed (error) */
	uint32_t done; /* futex: 1 everything is written, the collector is finished */
	uint32_t error; /* errno of a failed write; the runtime stops at its next slow path */
	uint32_t owner; /* robust futex: the kernel sets FUTEX_OWNER_DIED if the collector dies */
	uint32_t stop_reason; /* enum run_stop */
	uint32_t exit_code; /* state RING_EXIT: the argument of exit_group */
	uint64_t extra; /* bytes to save beyond the log pointer at an asynchronous stop */
	struct run_stop_state stop; /* valid when state is RING_STOP */
	struct ring_desc desc[RING_MAX];
};
_Static_assert(sizeof(struct ring_head) <= RING_TCB_OFF, "the head is one page");

#endif
