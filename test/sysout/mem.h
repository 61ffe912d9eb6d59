/* SPDX-License-Identifier: MIT
 *
 * mem.h - the writable memory of another process, to be compared with itself
 */
#ifndef SYSOUT_MEM_H
#define SYSOUT_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct area { /* a mapping, or part of one, page by page */
	uint64_t lo, hi;
	bool shared; /* with other processes, perhaps */
	bool blind; /* may be written, not read: not in snapshots */
	bool zero; /* pages of it that are not in a snapshot are zero */
	size_t at; /* of its contents in the snapshot's bytes */
};

struct near { /* where to look when all is too much */
	uint64_t addr[8];
	int n;
};

struct snap {
	pid_t pid;
	int pagemap; /* open as long as the process has the same memory */
	struct area *map, *run; /* what is mapped; what was read of it: both by rising address */
	size_t nmap, nrun, cap_map, cap_run;
	uint8_t *bytes;
	size_t nbytes, cap;
	const struct near *near; /* only what is near these was read */
};

/* The address space is another one, or may be: what is mapped is read again. */
void snap_maps(struct snap *s, pid_t pid);
/* Reads all that the process may write, or, when that is more than budget bytes and n is given, what is near. */
void snap_take(struct snap *s, size_t budget, const struct near *n);
/* what is mapped, as in another snapshot */
void snap_same(struct snap *s, const struct snap *as);
/* the mapping that addr is in, or NULL */
const struct area *snap_map(const struct snap *s, uint64_t addr);
/* Calls differ(arg, addr, length) for each piece that is not the same in both. */
void snap_diff(const struct snap *old, const struct snap *new,
	       void (*differ)(void *arg, uint64_t addr, uint64_t len), void *arg);
void snap_free(struct snap *s);

#endif
