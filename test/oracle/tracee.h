/* SPDX-License-Identifier: MIT
 *
 * tracee.h - starting a program so that two runs have equal addresses, and looking at it (tracee.c)
 */
#ifndef TRACEE_H
#define TRACEE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Start argv stopped at the first instruction after execve, ASLR off, AT_RANDOM fixed.
 * setenvs: n strings NAME=VALUE added to the child's environment. Exits on error. */
pid_t tracee_start(char **argv, char **setenvs, int n);
/* The same by PTRACE_SEIZE with these options. */
pid_t tracee_seize(char **argv, char **setenvs, int n, long options);
/* A value from the auxiliary vector; 0 when it is not there. */
uint64_t tracee_auxv(pid_t pid, uint64_t type);
/* Turn PTRACE_ORACLE=1 in the initial environment into =0: it has served its purpose, the
 * programs this one executes must not run into a start marker nobody waits for, and the
 * environment is now the same as in the traced run. */
void tracee_env_disarm(pid_t pid);
/* Read up to n bytes, fewer at an unmapped page; returns the number read. */
size_t tracee_read(pid_t pid, uint64_t addr, void *buf, size_t n);
/* Is code at addr in a mapping through which or behind which it can change? */
bool tracee_code_is_mutable(pid_t pid, uint64_t addr);
/* The mappings may have changed: forget what is known about them. */
void tracee_maps_changed(void);
/* Has the program a handler for this signal? */
bool tracee_catches(pid_t pid, int sig);

#endif
