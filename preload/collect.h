/* SPDX-License-Identifier: MIT
 *
 * collect.h - what the files of ptrace-collect share
 */
#ifndef COLLECT_H
#define COLLECT_H

#include <stdbool.h>
#include <stdint.h>
#include "ring.h"

struct collect {
	struct ring_head *ring;
	size_t ring_size;
	const char *run, *live;
	int run_fd, proc_fd; /* directories: the run may be renamed while it goes on */
	bool root; /* this process image made the run directory: keeps run.json */
	int codec; /* run_chunk.codec */
	int log_fd;
	int pid_fd; /* pidfd of the traced process, -1 if the kernel has none */
	uint32_t seq;
	uint64_t raw_bytes, disk_bytes;
	int error; /* errno of the first failed write */
	uint64_t t_start; /* seconds since the epoch */
	char *cmd, *env, *exe; /* JSON text */
	void *buf; /* compressed chunk */
	size_t buf_size;
	bool salvaged;
};

/* collect_chunk.c */
int chunk_init(struct collect *c);
int chunk_write(struct collect *c, const void *p, uint64_t n, const struct ring_desc *d, int kind);

/* collect_json.c */
void json_describe(struct collect *c); /* reads /proc/PID while it is there */
int json_proc(struct collect *c, bool final);
int json_run(struct collect *c, bool final);
void json_stop(struct collect *c); /* stop.bin */
void live_clean(struct collect *c);

/* collect_watch.c */
enum fate { FATE_ALIVE, FATE_GONE, FATE_EXECED };
int watch_open(struct collect *c);
enum fate watch(struct collect *c);
void watch_exit(struct collect *c, int ms); /* waits for a process that said it exits */

#endif
