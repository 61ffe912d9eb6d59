/* SPDX-License-Identifier: MIT
 *
 * replay_in.h - what the files of ptrace-replay hand to each other
 *
 *   replay.c         options, the child, how it ended
 *   replay_area.c    memory at addresses that the program and the runtime leave alone
 *   replay_rec.c     the record stream: read, checked, in the area
 *   replay_lib.c     libptrace_rt.so, fresh, in the area
 *   replay_mod.c     are the modules' files what they were?
 *   replay_place.c   memory to compare with, where a signal ended the recording
 *   replay_image.c   start.bin ─▶ plan: the system calls that make the image
 *   replay_stub.S    executes the plan in the child, and is all that runs there before the runtime
 */
#ifndef REPLAY_IN_H
#define REPLAY_IN_H

#include "dec.h"
#include "replay.h"
#include "run_rec.h"

/* ---- replay_rec.c ---- */

#define REC_SLOT (1ull << 38)
#define REC_SLOTS 512 /* 47 bits of addresses */
struct rec_stream {
	int fd; /* an unlinked file with all of it */
	uint64_t size; /* bytes of whole records */
	bool ended; /* the last one is a REC_END: nobody killed the process */
	bool killed; /* somebody did, and not within a system call */
	uint32_t why; /* enum rec_why of that record */
	uint32_t status, signal; /* what the replay exits with then, or ends by */
	uint64_t calls;
	bool placed; /* the last but one is a REC_PLACE: it ends between two system calls */
	struct replay_range *range; /* what calls returned, ascending; owned */
	uint64_t nrange, caprange;
	uint64_t brk; /* as it was at first */
	uint64_t slot[REC_SLOTS / 64]; /* bit n: a call returned memory in the n-th REC_SLOT bytes */
};
/* the stream of the image in dir; tmp: where there is room for it. 0, or -1 with err */
int rec_open(struct rec_stream *r, const char *dir, uint32_t pid, uint32_t tid, const char *tmp,
	     struct ptrace_error *e);

/* ---- replay_area.c: everything of ours that the child keeps, in one piece of address space ---- */

/* Begins it where neither the start state nor the recording has anything. 0, or -1 with err */
int area_open(const struct start *s, const struct rec_stream *rec, struct ptrace_error *e);
/* size bytes more of it, as by mmap: anonymous if fd is -1. Zeroed, page aligned. NULL with err */
void *area_map(uint64_t size, int prot, int fd, uint64_t off, struct ptrace_error *e);
void *area_copy(const void *p, size_t n, struct ptrace_error *e);
uint64_t area_lo(void);
uint64_t area_hi(void);

/* ---- replay_lib.c: a library with relative relocations only; its entry point, 0 with err ---- */

uint64_t lib_load(const char *path, struct ptrace_error *e);

/* ---- replay_mod.c: 0, or -1 with err ---- */

int modules_check(const char *dir, struct ptrace_error *e);

/* ---- replay_image.c ---- */

struct plan_call { /* offsets are in replay_stub.S */
	uint64_t nr, arg[6];
	uint64_t want; /* its result, else the plan has failed; PLAN_ANY */
};
#define PLAN_ANY (~0ull)
struct plan {
	struct plan_call *call; /* in the area when it is complete */
	uint32_t n;
	char **what; /* each call does, for messages */
};
/* files: opened here, to be inherited by the child. */
int plan_make(struct plan *p, const char *dir, const struct start *s, struct ptrace_error *e);

/* ---- replay_place.c ---- */

/* What memory was like where the image in dir ends, between two system calls, into the area; NULL if nobody has written
 * that down. 0, or -1 with err */
int place_memory(const char *dir, const struct run_start **s, struct ptrace_error *e);

/* ---- replay_stub.S: position-independent, copied to the area ---- */

struct stub_args { /* offsets are in replay_stub.S */
	const struct plan_call *call;
	uint64_t n;
	uint64_t entry, info; /* where to go, with what in rdi */
	uint64_t stack; /* its end */
	uint64_t report; /* descriptor: which call failed, and its result: two words */
};
typedef void stub_fn(const struct stub_args *); /* does not return */
extern const char stub_begin[], stub_end[];

#endif
