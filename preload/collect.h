/* SPDX-License-Identifier: MIT
 *
 * collect.h - what the files of ptrace-collect share
 */
#ifndef COLLECT_H
#define COLLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "ring.h"

struct collect {
	struct ring_head *ring;
	size_t ring_size;
	const char *run, *live;
	int run_fd, proc_fd; /* directories: the run may be renamed while it goes on */
	bool root; /* this process image made the run directory: keeps run.json */
	int codec; /* run_chunk.codec */
	int log_fd; /* locked (flock) while more is coming */
	uint64_t spool; /* bytes of spool, at most */
	int pid_fd; /* pidfd of the traced process, -1 if the kernel has none */
	uint32_t seq;
	uint64_t raw_bytes, disk_bytes; /* of the log; disk_bytes is where its next record goes */
	int error; /* errno of the first failed write */
	uint64_t t_start; /* seconds since the epoch */
	char *cmd, *env, *exe; /* JSON text */
	bool salvaged;
};

#define CHUNK_MAX (RUN_CHUNK_SIZE + 2 * RUN_CHUNK_SLACK) /* bytes of a chunk, at most */

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

/* collect_chunk.c: 0 or errno */
int write_at(int fd, const void *p, size_t n, uint64_t at);
int chunk_init(struct collect *c);
int pack_init(struct pack *k);
/* table: as for lz_pack */
void chunk_pack(const struct collect *c, struct pack *k, uint16_t *table, const void *p, uint64_t n);
int chunk_append(struct collect *c, const struct pack *k, const struct ring_desc *d, int kind);

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
void work_last(struct collect *c, uint64_t n, const struct ring_desc *d,
	       int kind); /* n bytes of chunk `head`, after all others */
bool work_finish(int ms); /* true when everything is on disk, false when that takes longer */

/* collect_spool.c: at most `limit` bytes. A chunk's n bytes: spool_put is false when there is no room for
 * them; spool_get (0 or errno) reads them once */
void spool_init(struct collect *c, uint64_t limit);
bool spool_put(const uint8_t *p, uint64_t n, uint64_t *at);
int spool_get(uint8_t *to, uint64_t n, uint64_t at);

/* collect_json.c */
void json_describe(struct collect *c); /* reads /proc/PID while it is there */
enum json_when { JSON_RUNNING, JSON_ENDED /* its end is known, its log not yet written */, JSON_FINAL };
int json_proc(struct collect *c, enum json_when when);
int json_run(struct collect *c, enum json_when when);
void json_stop(struct collect *c); /* stop.bin */
void live_clean(struct collect *c);

/* collect_watch.c */
enum fate { FATE_ALIVE, FATE_GONE, FATE_EXECED };
int watch_open(struct collect *c);
enum fate watch(struct collect *c);
void watch_exit(struct collect *c, int ms); /* waits for a process that said it exits */

#endif
