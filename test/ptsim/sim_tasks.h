/* SPDX-License-Identifier: MIT
 *
 * sim_tasks.h - the loop over stops, and what it tells: the kernel's part of the simulator
 */
#ifndef SIM_TASKS_H
#define SIM_TASKS_H

#include "sim.h"

#define SIM_OPTIONS                                                                                          \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |            \
	 PTRACE_O_TRACEEXIT)

/* Run the tree of pid, stopped at its execve, to its end; pid's exit status as a shell would give it. */
int sim_run(pid_t pid);
struct task *sim_task(pid_t pid);

/* To be defined by who uses it. */
void sim_call(struct task *t, bool begins); /* at a system call's entry and exit; regs may be changed */
void sim_exec(struct task *t); /* it executes another program; it is still in the kernel */
void sim_exit(struct task *t); /* it is about to end; it is in the kernel */
void sim_gone(struct task *t); /* it is no more */

#endif
