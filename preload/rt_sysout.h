/* SPDX-License-Identifier: MIT
 *
 * rt_sysout.h - which memory of the program a system call wrote
 *
 *     rt_sysin(nr, arg, &before);           what the call may overwrite and is needed after it
 *     ret = the system call
 *     class = rt_sysout(nr, arg, ret, &before, out, RT_SYSOUT_MAX, &n);
 *
 * For recordings that keep of a program only what the kernel told it. The process has one thread, so memory
 * that is looked at after a call is what the kernel left there.
 *
 * A range may have more bytes than the kernel wrote (a structure it filled in part, a set of descriptors),
 * never fewer, and all of it can be read (in a write-only mapping by plain loads, not by the kernel). What is none of a
 * call's results is not here:
 *
 *   - signal frames, and what the kernel writes when the last thread ends (set_tid_address, robust lists);
 *   - the rseq area, in which the kernel changes cpu_id and node_id whenever it moves the thread;
 *   - vDSO and vvar, which hold the clock;
 *   - mappings of files, which change with write(2), ftruncate(2) and so on of the file by whomever: also private
 *     ones, where the program has not written to a page itself;
 *   - memory after MADV_FREE, which becomes zero whenever the kernel likes;
 *   - what the program writes to itself by /proc/self/mem, or has others write (ptrace(2)).
 *
 * Needs nothing of the runtime but rt_copy_out(), so test/sysout.c builds it into a tracer of its own.
 */
#ifndef RT_SYSOUT_H
#define RT_SYSOUT_H

#include <stddef.h>
#include <stdint.h>

enum {
	OUT_NONE, /* wrote no memory */
	OUT_LIST, /* wrote out[0 .. n - 1]; n may be 0 */
	OUT_MAP, /* changed the address space or dropped contents; wrote out[], mostly nothing */
	OUT_STOP, /* what it wrote, or will write, is not known */
	OUT_SPECIAL, /* made, ended or replaced a process, or rt_sigreturn; wrote out[] (CLONE_PARENT_SETTID) */
};

enum { RT_SYSOUT_MAX = 1100 }; /* ranges: an iovec of the longest kind (UIO_MAXIOV), and some */

struct out_range {
	uint64_t addr, len; /* bytes */
};

/* of a call that is about to be made; only for rt_sysout() */
struct sys_before {
	uint64_t ptr[4]; /* pointers and lengths in memory that may be overwritten; by call */
	uint32_t odd; /* the call may overwrite its own description: OUT_STOP */
};

/* Most calls need nothing; a number is looked at as the kernel does, in its low 32 bits. */
void rt_sysin(long nr, const uint64_t arg[6], struct sys_before *before);

/* ret: as the kernel returns it, -errno for failures, never one of its own restart codes.
 * Returns OUT_*; more than max ranges are OUT_STOP. */
int rt_sysout(long nr, const uint64_t arg[6], long ret, const struct sys_before *before,
	      struct out_range *out, int max, int *n);

/* The memory is another process's, or was changed by a call that rt_sysout() was not asked about. */
void rt_sysout_forget(void);

/* rt_lib.c's: 0, or -errno for memory that is not there */
int rt_copy_out(void *to, uint64_t from, size_t n);

#endif
