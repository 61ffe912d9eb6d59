/* SPDX-License-Identifier: MIT
 *
 * alone.h - one program, its stream and what it executed in files (alone.c)
 */
#ifndef ALONE_H
#define ALONE_H

#include "sim.h"
#include "sim_tasks.h"

/* dir: OUT; max: record till the first system call after so many instructions, 0: to the end */
void alone_open(const char *dir, const struct pt_cpu_config *cpu, uint64_t max);
void alone_close(void);
void alone_figures(double seconds);

#endif
