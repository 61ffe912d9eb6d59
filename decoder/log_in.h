/* SPDX-License-Identifier: MIT
 *
 * log_in.h - what log.c and log_disk.c share: a log that is being read
 */
#ifndef LOG_IN_H
#define LOG_IN_H

#include <pthread.h>
#include "dec.h"

#define NSLOT 4

struct slot {
	uint8_t *buf; /* LOG_MIN bytes of room, then the payload: stream, cuts */
	size_t cap, n, all; /* of the stream: bytes up to the next pause, and all */
	uint64_t pos; /* of its first byte in the stream */
	uint64_t file_pos, seq; /* of its chunk */
	uint32_t ncut;
	uint64_t tsc_open, tsc_close;
	uint8_t *key; /* keyframe that stands before it, key_n bytes; 0: none */
	size_t key_n, key_cap;
};

/* A chunk with a keyframe that was entered. */
struct key_at {
	uint64_t file_pos, seq, pos;
	uint32_t counter;
};

struct log {
	char *path;
	int fd;
	uint32_t pid, tid;
	/* helper's */
	uint8_t *disk;
	size_t disk_cap;
	uint64_t file_pos, seq, next;
	bool ended; /* the process */
	bool many, one; /* LOG_MANY, LOG_ONE */
	bool stream; /* log_stream: of a replay, read once, in order, from a pipe */
	/* shared, under lock */
	pthread_mutex_t lock;
	pthread_cond_t change;
	struct slot slot[NSLOT];
	uint64_t head, tail; /* slots filled, slots given back */
	bool done, quit, clean;
	char *why;
	uint64_t raw, disk_bytes;
	uint64_t counted; /* in the file: up to where those two count */
	/* walker's */
	struct key_at *keys; /* counters ascend */
	size_t nkeys;
	bool threaded, have;
	pthread_t helper;
	uint64_t end_pos; /* stream position of the current buffer's last pause, or its end */
	uint32_t cut; /* next one of the current buffer */
	uint64_t limit; /* UINT64_MAX: none */
	uint32_t limit_bytes;
	struct log_times times; /* of the current chunk, with LOG_MANY */
};

/* next chunk into s: 1 got one, 0 end, -1 damage (l->why) */
int log_chunk(struct log *l, struct slot *s, bool *last);
int log_check_cuts(struct log *l, const struct slot *s); /* 0, or -1 and l->why */
struct run_cut log_cut(const struct slot *s, uint32_t i);

#endif
