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

/* Whoever uses the loop is told: */
struct sim_hooks {
	void (*call)(struct task *t,
		     bool begins); /* at a system call's entry and exit; regs may be changed */
	void (*user)(struct task *t); /* it is about to go on in user mode, at regs.rip */
	/* it executes another program; it is still in the kernel. by: the thread that it was, when it was not the first */
	void (*exec)(struct task *t, struct task *by);
	void (*exit)(struct task *t); /* it is about to end; it is in the kernel */
	void (*gone)(struct task *t); /* it is no more */
	void (*pmi)(struct task *t,
		    uint64_t ip); /* t->pmi was set: an interrupt before the instruction at ip */
};
extern const struct sim_hooks *sim_hooks;

/* Stop a thread that runs in user mode, if it does; sim_continue lets it go on. False: it has ended. */
bool sim_stop(struct task *t);
void sim_continue(struct task *t);

#endif
