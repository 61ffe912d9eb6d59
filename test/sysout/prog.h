/* SPDX-License-Identifier: MIT
 *
 * prog.h - what the files of sysout_prog share
 */
#ifndef SYSOUT_PROG_H
#define SYSOUT_PROG_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "rt_sysout_nr.h"

enum { NOUT = 6, OUT_SIZE = 8192 };
extern uint8_t out[NOUT][OUT_SIZE]; /* what calls write to */

void fill(void); /* with the pattern */
long call(long nr, ...);

/* a call on freshly filled memory, always with six arguments */
#define SIX(nr, a, b, c, d, e, f, ...)                                                                       \
	call(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define RAW(name, ...) SIX(__NR_##name, __VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define C(name, ...) (fill(), RAW(name, __VA_ARGS__))
#define C0(name) (fill(), SIX(__NR_##name, 0, 0, 0, 0, 0, 0, 0))
#define BAD ((void *)8) /* no memory is there */

void files(void);
void names(void);
void polls(void);
void edges(void);
void sockets(void);
void memory(void);
void process(void);
void signals(void);
void clocks(void);
void ipc(void);
void ioctls(void);
void ttys(void);
void numbers(void);

#endif
