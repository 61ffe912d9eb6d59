/* SPDX-License-Identifier: MIT
 *
 * scratch.h - memory for the analysis of one group
 *
 * Groups are many, most are small, and each is analysed in dozens of arrays that are gone when it is done. So each thread
 * has one piece of memory that the arrays are cut off, one behind the other. It is not given back but used for the next
 * group, when it is in the cache. What is handed out is given back from the end, as the frames of calls are:
 *
 *   struct scratch_mark m = scratch_mark();
 *   ... scratch(n) ...
 *   scratch_release(m);       everything since then is gone
 *
 * So nothing that outlives the release may be in there, and who keeps an array over the return of a function says so.
 */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scratch_mark {
	void *piece;
	size_t used;
};

struct scratch_mark scratch_mark(void);
void scratch_release(struct scratch_mark m);
/* n bytes, aligned for anything, NULL when out of memory: not initialised; zeroed */
void *scratch(size_t n);
void *scratch_zero(size_t n);
/* p with `was` bytes becomes one with n, in place where it was the last one handed out; p NULL: a new one. NULL when out of
 * memory: p stands */
void *scratch_more(void *p, size_t was, size_t n);
/* before a thread ends (par.c) */
void scratch_end(void);

#endif
