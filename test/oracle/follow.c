/* SPDX-License-Identifier: MIT
 *
 * follow.c - the oracle for programs with threads and children
 *
 * One task is stepped at a time, a slice of steps each, so that a thread that spins lets the others go on. A
 * system call may wait for another task: it is begun, and others are stepped until it returns. What a
 * thread does must not depend on how fast the others are, or no two runs have the same accesses: that is the
 * program's business (test/README.md).
 *
 * A task begins at the first instruction behind the system call that made it. The kernel stops it there with
 * SIGSTOP (PTRACE_O_TRACECLONE), and the maker in its call, until both are let go on. A task that
 * executes another program ends for us: it is let go.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "oracle.h"

#define SLICE 2000 /* steps */
#define IDLE 20 /* rounds in which nobody runs, before who has slept does */
#define PATIENCE 50 /* looks at a system call before others are stepped */
#define FLAG_TF 0x100ull

enum state { READY, IN_CALL, ENDED };

struct task {
	struct stepper s;
	enum state state;
	bool slept; /* and has not been stepped since */
	unsigned mm; /* tasks with equal numbers share their memory */
	struct task *next;
};

static struct task *tasks, **last = &tasks;
static unsigned ntasks, nmm, decoded_mm;
static int first_status;
static pid_t first_pid;
static bool first_gone; /* executes another program, untraced: its status is to be waited for */

static struct task *task_add(pid_t pid, unsigned mm)
{
	struct task *t = calloc(1, sizeof(*t));

	if (!t)
		fail("no memory");
	t->s.pid = pid;
	t->s.number = ntasks++;
	t->s.recording = true;
	t->mm = mm;
	*last = t;
	last = &t->next;
	return t;
}

/* The trap flag of the maker's step is in r11, where the system call put the flags. */
static void fix_r11(struct stepper *s)
{
	get_regs(s);
	if (!(s->regs.r11 & FLAG_TF))
		return;
	s->regs.r11 &= ~FLAG_TF;
	if (ptrace(PTRACE_POKEUSER, s->pid, offsetof(struct user_regs_struct, r11), s->regs.r11) < 0)
		fail("cannot repair r11");
}

static bool makes_task(int event)
{
	return event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK;
}

/* CLONE_VM: vfork(2) has it, fork(2) has not, clone(2) and clone3(2) say. */
static bool shares_memory(const struct task *maker, int event)
{
	uint64_t flags = maker->s.regs.rdi;

	if (maker->s.nr == SYS_fork || event == PTRACE_EVENT_FORK)
		return maker->s.nr == SYS_clone && flags & CLONE_VM;
	if (maker->s.nr == SYS_clone3 && tracee_read(maker->s.pid, maker->s.regs.rdi, &flags, 8) != 8)
		fail("cannot read clone3's arguments");
	return maker->s.nr == SYS_vfork || flags & CLONE_VM;
}

static void made(struct task *maker, int event)
{
	unsigned long pid = 0;
	struct task *t;
	int status;

	if (ptrace(PTRACE_GETEVENTMSG, maker->s.pid, 0, &pid) < 0)
		fail("cannot read the new thread's number");
	if (waitpid((pid_t)pid, &status, __WALL) != (pid_t)pid)
		fail("lost a new thread");
	t = task_add((pid_t)pid, shares_memory(maker, event) ? maker->mm : ++nmm);
	if (ended(status)) {
		t->state = ENDED;
	} else {
		fix_r11(&t->s);
		t->state = READY;
	}
	step_go_on(&maker->s);
}

static void gone(struct task *t, int status)
{
	t->state = ENDED;
	if (!ended(status)) {
		/* an execve */
		if (ptrace(PTRACE_DETACH, t->s.pid, 0, 0) < 0)
			fail("cannot let a program go");
		first_gone |= t->s.pid == first_pid;
	} else if (t->s.pid == first_pid) {
		first_status = status;
	}
}

/* Has the system call returned? */
static bool look(struct task *t)
{
	int status;
	pid_t r = waitpid(t->s.pid, &status, __WALL | WNOHANG);

	if (r < 0)
		fail("lost a thread");
	if (r == 0)
		return false;
	if (!ended(status) && makes_task(status >> 16)) {
		made(t, status >> 16);
		return false;
	}
	t->state = READY;
	t->slept = t->s.nr == SYS_nanosleep || t->s.nr == SYS_clock_nanosleep;
	if (!step_end(&t->s, status))
		gone(t, status);
	return true;
}

static void slice(struct task *t)
{
	int status;

	if (waitpid(t->s.pid, &status, __WALL | WNOHANG) == t->s.pid) {
		gone(t, status); /* somebody ended the process */
		return;
	}
	if (t->mm != decoded_mm) {
		decode_flush();
		tracee_maps_changed();
		decoded_mm = t->mm;
	}
	t->slept = false;
	for (int i = 0; i < SLICE && t->state == READY && !t->slept; i++) {
		if (step_begin(&t->s, &status)) {
			if (!step_end(&t->s, status))
				gone(t, status);
			continue;
		}
		t->state = IN_CALL;
		for (int k = 0; k < PATIENCE && t->state == IN_CALL; k++) {
			if (!look(t))
				sched_yield();
		}
	}
}

bool follow(struct stepper *first, int *status)
{
	static const long options = PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE |
				    PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;
	struct timespec nap = {0, 100000};
	unsigned alive = 0, ran = 0;
	static unsigned idle; /* rounds in which nobody ran */

	if (!tasks) {
		struct task *t = task_add(first->pid, 0);

		t->s = *first;
		first_pid = first->pid;
		if (ptrace(PTRACE_SETOPTIONS, first->pid, 0, options) < 0)
			fail("cannot follow threads and children");
	}
	for (struct task *t = tasks; t; t = t->next) {
		if (t->state == IN_CALL)
			look(t);
		if (t->state == READY && (!t->slept || idle > IDLE)) {
			slice(t);
			ran++;
			idle = 0;
		}
		alive += t->state != ENDED;
	}
	first->steps = first->recorded = first->unreadable = 0;
	for (struct task *t = tasks; t; t = t->next) {
		first->steps += t->s.steps;
		first->recorded += t->s.recorded;
		first->unreadable += t->s.unreadable;
	}
	if (alive) {
		if (!ran) { /* everybody waits */
			nanosleep(&nap, NULL);
			idle++;
		}
		return true;
	}
	if (first_gone && waitpid(first_pid, &first_status, 0) < 0)
		fail("lost the program");
	*status = first_status;
	return false;
}
