/* SPDX-License-Identifier: MIT
 *
 * collect.h - what the files of ptrace-collect share
 *
 *   collect.c        the ring, the main loop
 *   collect_proc.c   the processes that use it, from their birth to their end
 *   collect_watch.c  is one still there?
 *   collect_ns.c     which one is it, in a pid namespace of its own?
 *   collect_work.c   chunks out of the ring, to be compressed by threads  (collect_spool.c: where they wait)
 *   collect_fill.c   what a killed thread stored beyond what it published
 *   collect_chunk.c  a chunk compressed (collect_lz.c), appended to its thread's log
 *   collect_json.c   run.json, proc.json, stop.bin
 *   collect_pt*.c    Intel PT: events, buffers, pt-TID.bin (collect_pt.h)
 */
#ifndef COLLECT_H
#define COLLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "ring.h"

struct collect {
	struct ring_head *ring;
	size_t ring_size;
	uint64_t ring_ino; /* of its memfd */
	const char *run, *live;
	const char *stream; /* a FIFO that takes the chunks instead of a log, or NULL: of one thread */
	int stream_fd;
	int run_fd; /* the run may be renamed while it goes on */
	bool root; /* the first process image made the run directory: keeps run.json */
	int codec; /* run_chunk.codec */
	uint64_t spool; /* bytes of spool, at most */
	int error; /* errno of the first failed write */
};

/* A traced process image. Stays known when it is gone: it may be a parent. */
struct cproc {
	struct cproc *next; /* of the live ones */
	struct cproc *older; /* of all */
	struct ring_proc *p; /* NULL when it is over */
	uint32_t uid, pid;
	uint32_t host; /* its pid here (collect_ns.c); 0: not found */
	bool inner; /* in a pid namespace below ours */
	char *name; /* its directory in the run's */
	char *parent; /* its parent's, or NULL */
	int dir_fd; /* locked (flock) while more of its logs is coming */
	int pid_fd; /* pidfd, -1 if the kernel has none */
	bool first; /* the one that started the collector */
	bool ending; /* proc.json says how it ended; when everything up to item `last` is written it is over */
	bool let_go;
	uint64_t last;
	uint32_t nthreads;
	uint64_t raw_bytes, disk_bytes; /* of its logs */
	uint64_t shared; /* where the next record goes in threads.log */
	uint64_t t_start; /* seconds since the epoch */
	const char *cmd, *env, *exe; /* JSON text */
	bool salvaged;
	struct
	{ /* Intel PT: threads that have or had it, that should have; bytes of packets; losses, how often */
		uint32_t threads, failed;
		uint64_t bytes, truncated, partial, collision, lost;
	} pt;
	uint32_t state, stop_reason, exit_code; /* as it ended */
	int status; /* as wait(2) gives it, -1 if not known */
};

/* A thread that has a log. */
struct cthread {
	struct cthread *next; /* same hash */
	struct cproc *p;
	uint64_t uid;
	uint32_t tid, again; /* again: threads of the process that had the same tid before */
	uint64_t taken; /* bytes of its stream that came in */
	/* the writer's */
	uint32_t seq;
	uint64_t disk; /* where its next record goes */
	bool made;
};

#define CHUNK_MAX (RUN_CHUNK_SIZE + 2 * RUN_CHUNK_SLACK) /* bytes of a chunk, at most, with its cuts */

#define LZ_BITS 14
#define LZ_TABLE (1u << LZ_BITS)

/* A chunk ready to be appended. */
struct pack {
	void *buf; /* owned, cap bytes */
	size_t cap;
	const void *data; /* buf, or the chunk itself where it does not get smaller */
	size_t size, raw; /* bytes on disk, before compression */
	int codec; /* run_chunk.codec */
	uint64_t xxh3;
};

/* collect_write.c: 0 or errno */
int write_at(int fd, const void *p, size_t n, uint64_t at);
int writev_at(int fd, struct iovec *v, int n, uint64_t at); /* all of it; v is used up */

/* collect_chunk.c: 0 or errno */
int pack_init(struct pack *k);
/* table: as for lz_pack */
void chunk_pack(const struct collect *c, struct pack *k, uint16_t *table, const void *p, uint64_t n);
int chunk_begin(struct collect *c, struct cthread *t); /* makes the log: one that is empty says so */
/* kind: run_chunk.kind */
int chunk_append(struct collect *c, struct cthread *t, const struct pack *k, const struct ring_desc *d,
		 int kind);

/* collect_lz.c */
size_t lz_bound(size_t n); /* what lz_pack may write, at most */
/* n bytes (under 2 GiB) as an LZ4 block to `to`, lz_bound(n) bytes; table: LZ_TABLE entries of scratch. Returns
 * the block's size */
size_t lz_pack(uint16_t *table, const void *from, size_t n, void *to);

/* collect.c */
void futex_wake(uint32_t *word);
void futex_wait(uint32_t *word, uint32_t val, long ms);

/* collect_work.c */
#define WORK_MAX 8192 /* chunks that wait, at most */
int work_init(struct collect *c); /* 0 or errno */
/* has the pages made that the program will write to, while it starts */
void work_populate(struct collect *c);
bool work_drain(struct collect *c); /* takes on what has been handed over; true if there was something */
/* what a thread left in its chunk; kind: run_chunk.kind */
void work_left(struct collect *c, uint32_t chunk, uint64_t bytes, int kind);
void work_begin(const struct cproc *p);
uint64_t work_in(void); /* items that came */
bool work_finish(uint64_t in,
		 int ms); /* true when the first `in` are on disk, false when that takes longer */

/* collect_spool.c: at most `limit` bytes. A chunk's n bytes: spool_put is false when there is no room for
 * them; spool_get (0 or errno) reads them once */
void spool_init(int dir_fd, uint64_t limit);
bool spool_put(const uint8_t *p, uint64_t n, uint64_t *at);
int spool_get(uint8_t *to, uint64_t n, uint64_t at);

/* collect_fill.c: offsets in a chunk */
void fill_again(struct collect *c, uint32_t chunk, uint32_t lo, uint32_t hi);
uint32_t fill_end(struct collect *c, uint32_t chunk, uint32_t from, bool copied);

/* collect_proc.c */
int proc_first(struct collect *c, const char *name); /* 0 or errno */
struct cproc *proc_at(uint32_t index); /* of a ring_proc in use; NULL if unknown */
struct cthread *proc_thread(struct collect *c, const struct ring_desc *d); /* made when it is new */
void proc_forget(struct cthread *t); /* its log is complete */
void proc_modules(struct collect *c, const struct ring_desc *d, const void *p);
int proc_open(const struct collect *c, const struct cproc *p, const char *file, int flags); /* fd or -1 */
/* births, ends, deaths; false when no process is left. *soon: look again in 2 ms */
bool proc_look(struct collect *c, bool *soon);

/* collect_pt.c */
void pt_requests(struct collect *c); /* opens and starts events of threads that wait for that */
void pt_end(struct cproc *p,
	    bool gone); /* all events of p; gone: it is, and does not just stop being traced */

/* collect_json.c */
/* what its parent was, or, without one, what /proc/PID says */
void json_describe(struct cproc *p, const struct cproc *from);
enum json_when { JSON_RUNNING, JSON_ENDED /* its end is known, its log not yet written */, JSON_FINAL };
int json_proc(struct collect *c, struct cproc *p, enum json_when when);
int json_run(struct collect *c, struct cproc *p, enum json_when when);
void json_stop(const struct cproc *p); /* stop.bin */
void live_clean(struct collect *c);

/* collect_ns.c */
void ns_find(const struct collect *c, struct cproc *p,
	     const struct cproc *from); /* host, inner; from: its parent or NULL */
uint32_t ns_thread(const struct cproc *p,
		   uint32_t tid); /* its thread that is tid to itself; 0: there is none */

/* collect_watch.c */
enum fate { FATE_ALIVE, FATE_GONE, FATE_EXECED };
void watch_open(struct cproc *p);
bool watch_gone(const struct cproc *p);
enum fate watch(struct collect *c, struct cproc *p);
/* does it map the ring? if_hidden: the answer when its maps may not be read, so that one goes on until it dies */
bool watch_ring(const struct collect *c, uint32_t pid, bool if_hidden);
void watch_exit(struct cproc *p, int ms); /* waits for a process that said it exits */

#endif
