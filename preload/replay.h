/* SPDX-License-Identifier: MIT
 *
 * replay.h - what ptrace-replay hands to the runtime in the process image it has restored
 *
 * ptrace-replay maps the program's memory as start.bin has it and libptrace_rt.so as a fresh one, and jumps to
 * that library's entry point (rt_replay_entry) with the address of a struct replay_info in rdi. All
 * it points to stays where it is, between lo and hi, until the process ends.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include <stdint.h>
#include "run.h"

#define REPLAY_MAGIC 0x31504552545054ull
#define REPLAY_VERSION 4

struct replay_range {
	uint64_t lo, hi;
};

struct replay_info {
	uint64_t magic;
	uint32_t version;
	uint32_t
		killed; /* the program was, while it computed: behind its last call nobody knows how far it came */
	char **envp; /* the runtime's settings: PTRACE_DIR, PTRACE_VERIFY, … */
	const struct run_start *start; /* registers to begin with */
	const void *rec; /* the record stream, whole */
	uint64_t rec_size; /* bytes */
	const struct run_start
		*memory; /* what memory is like at the last REC_PLACE: the whole file. NULL: not known */
	uint32_t why, zero; /* enum rec_why: how the recording ends; 0: it does not say */
	uint64_t lo, hi; /* addresses that belong to ptrace-replay */
	uint32_t pid, tid; /* as recorded */
	/* where the program will have memory at one time or another, ascending: nothing of the runtime's may be there */
	const struct replay_range *future;
	uint64_t nfuture;
};

/* exit status of the process when the replay did not come to the recording's end */
#define REPLAY_EXIT_DIVERGED 86
#define REPLAY_EXIT_FAILED 87
#define REPLAY_EXIT_LOST 88 /* the place between two system calls at which it ends cannot be recognized */

#endif
