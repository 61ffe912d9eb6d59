/* SPDX-License-Identifier: MIT
 *
 * ptrace_decode.h - public interface of libptrace_decode
 *
 * Two ways to the records of a run:
 *
 *   run directory ──ptrace_run_open──▶ ptrace_run_decode ──▶ your callback, in batches
 *   trace file (--format=bin) ──ptrace_trace_open──▶ ptrace_trace_read ──▶ your buffer
 *
 * Records (struct ptrace_rec) and their order are defined in trace.h. Functions that can fail
 * fill a struct ptrace_error with one line for the user and an exit status. A handle is used by
 * one thread at a time; different handles are independent. Described in libptrace_decode(3).
 */
#ifndef PTRACE_DECODE_H
#define PTRACE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Also the exit statuses of ptrace-decode. */
enum ptrace_status {
	PTRACE_OK = 0,
	PTRACE_PARTIAL = 1, /* what is intact was decoded, something was lost or is missing */
	PTRACE_USAGE = 2, /* wrong arguments */
	PTRACE_BAD = 3, /* the input cannot be read at all */
	PTRACE_VERIFY = 4, /* --verify found a wrong, unknown or missing address */
	PTRACE_IO = 5, /* the output could not be written, or no memory */
	PTRACE_PIPE = 141, /* the reader of the output went away (128 + SIGPIPE, as shells show it) */
};

struct ptrace_error {
	int status; /* enum ptrace_status */
	char text[500]; /* what, where, why, what to do; no newline; "" if no error */
};

/* A traced thread: ptrace_rec.tid indexes the table of these. */
struct ptrace_thread {
	uint32_t pid, tid; /* of the kernel */
	uint32_t image; /* number of execs of the process before this image */
	uint32_t again; /* earlier threads of the process that had this tid */
	uint64_t records; /* decoded so far; complete once decoding has ended */
};

/* A process image of the run. */
struct ptrace_process {
	uint32_t pid, image;
	uint32_t parent; /* number in the table of processes: the image it was forked from or, before its
	                       exec, was itself. UINT32_MAX if that is not in the run */
	uint32_t forked; /* 1: from another process */
	uint32_t first, threads; /* its threads in the table of threads */
	const char *command; /* owned by the handle; "" if not known */
	const char *end; /* how it ended, in words; "" if not known. Owned by the handle */
};

/* A module of a process of the run. */
struct ptrace_module {
	uint64_t bias; /* run-time address - link-time address */
	uint64_t lo, hi; /* span at run time, hi exclusive */
	uint32_t pid, image;
	uint32_t traced; /* 1 if it was instrumented, 0 if it ran opaque */
	uint32_t zero;
	const char *path; /* owned by the handle */
};

/* What a decode found. Times in seconds, sizes in bytes. */
struct ptrace_stats {
	uint64_t instructions, accesses, reads, writes, prefetches;
	uint64_t log_bytes_raw, log_bytes_disk; /* of the streams, before and after compression */
	uint64_t log_bytes_used; /* of log_bytes_raw, consumed by the walk */
	uint64_t opaque_entries; /* transfers after which opaque code ran */
	uint64_t callbacks; /* entries of traced code from opaque code */
	uint64_t checked, wrong; /* addresses compared in a verify run, and those that differed */
	uint64_t unknown; /* addresses or values the decoder could not know */
	uint64_t missing; /* places where the decode of a thread stopped early, or left something out */
	/* Intel PT: how often control flow was lost and found again, and what was left out, of a thread that was not
	 * found again up to its end: bytes of the log, and time where it is known (TSC ticks) */
	uint64_t losses, lost_bytes, lost_tsc;
	double seconds; /* wall clock, decoding only */
};

typedef struct ptrace_run ptrace_run;
typedef struct ptrace_trace ptrace_trace;

/* Open a run directory; may still be being written. NULL with *err on failure. Damage found
 * on the way that leaves something to decode is reported through `note` (may be NULL). */
ptrace_run *ptrace_run_open(const char *dir, void (*note)(void *ctx, const char *line), void *ctx,
			    struct ptrace_error *err);
void ptrace_run_close(ptrace_run *run);

/* Tables; *list is owned by the handle and valid until the next call on it. Return the count. */
uint32_t ptrace_run_processes(const ptrace_run *run, const struct ptrace_process **list);
uint32_t ptrace_run_threads(const ptrace_run *run, const struct ptrace_thread **list);
uint32_t ptrace_run_modules(const ptrace_run *run, const struct ptrace_module **list);

/* Called with n records, in program order of each thread: of one thread with PTRACE_BY_THREAD. Return 0 to go on,
 * anything else to stop the decode (which then returns PTRACE_OK with what was counted so far). */
typedef int (*ptrace_batch_fn)(void *ctx, const struct ptrace_rec *rec, size_t n);

/* Decode thread number `thread` of the table, or all with -1. Returns an enum ptrace_status:
 * PTRACE_OK, PTRACE_PARTIAL (err says what was lost first), PTRACE_BAD, PTRACE_IO. */
int ptrace_run_decode(ptrace_run *run, int thread, ptrace_batch_fn fn, void *ctx, struct ptrace_stats *stats,
		      struct ptrace_error *err);

/* The same for n threads, given by their numbers in ascending order, in the order wanted. PTRACE_BY_TIME: one
 * order of all by time. The order of each thread is exact; that across threads is by time stamps, estimated
 * between them (ptrace-decode(1)). */
enum ptrace_merge {
	PTRACE_BY_THREAD = 0, /* one thread after the other */
	PTRACE_BY_TIME = 1,
};
int ptrace_run_decode_threads(ptrace_run *run, const uint32_t *list, uint32_t n, enum ptrace_merge merge,
			      ptrace_batch_fn fn, void *ctx, struct ptrace_stats *stats,
			      struct ptrace_error *err);

/* Name of the code at a run-time address of a process image: "module+0x10 function+0x2". Returns
 * buf; an address in no module gives its hexadecimal number. */
const char *ptrace_run_symbol(ptrace_run *run, uint32_t thread, uint64_t ip, char *buf, size_t size);

/* Open a file written by `ptrace-decode --format=bin`. NULL with *err on failure. */
ptrace_trace *ptrace_trace_open(const char *path, struct ptrace_error *err);
void ptrace_trace_close(ptrace_trace *t);
/* Read up to n records. Returns their number, 0 at the end, or -1 with *err: damage (status
 * PTRACE_PARTIAL when the file is cut, i.e. has no end chunk). All records before are good. */
long ptrace_trace_read(ptrace_trace *t, struct ptrace_rec *rec, size_t n, struct ptrace_error *err);
uint32_t ptrace_trace_threads(const ptrace_trace *t, const struct ptrace_thread **list);
uint32_t ptrace_trace_modules(const ptrace_trace *t, const struct ptrace_module **list);

#ifdef __cplusplus
}
#endif
#endif
