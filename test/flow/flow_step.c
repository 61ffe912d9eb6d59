// SPDX-License-Identifier: MIT
//
// flow_step.c - what a traced program's first thread executes, instruction by instruction
//
//   flow_step -o FILE [-E NAME=VALUE]... -- CMD ARGS...
//
// The program runs with the runtime in it. From where the runtime has set gs, shortly before its constructor returns,
// every instruction is stepped, the copies' and the runtime's own too, and its address written to FILE: eight bytes
// each. FLOW_BROKEN is set in one that was interrupted by a signal and did not execute. So FILE tells of control
// flow what Intel PT would (flow_list.c). Exit status: the program's; 125 own failure.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../oracle/oracle.h"
#include "flow_list.h"

#define ARCH_SET_GS_CODE 0x1001

static struct user_regs_struct regs;

void fail(const char *what)
{
	fprintf(stderr, "flow_step: %s: %s\n", what, strerror(errno));
	exit(125);
}

static int wait_for(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, __WALL) < 0)
		fail("lost the program");
	if (WIFEXITED(status))
		exit(WEXITSTATUS(status));
	if (WIFSIGNALED(status))
		exit(128 + WTERMSIG(status));
	return status;
}

static void get(pid_t pid)
{
	if (ptrace(PTRACE_GETREGS, pid, 0, &regs) < 0)
		fail("cannot read registers");
}

/* up to the end of the system call that sets gs */
static void run_to_gs(pid_t pid)
{
	bool inside = false, here = false;
	int sig = 0;

	for (;;) {
		if (ptrace(PTRACE_SYSCALL, pid, 0, sig) < 0)
			fail("cannot continue the program");
		sig = WSTOPSIG(wait_for(pid));
		if (sig != (SIGTRAP | 0x80)) {
			sig = sig == SIGTRAP ? 0 : sig;
			continue;
		}
		sig = 0;
		inside = !inside;
		get(pid);
		if (!inside && here)
			return;
		here = inside && regs.orig_rax == SYS_arch_prctl && regs.rdi == ARCH_SET_GS_CODE;
	}
}

/* A child of a process that is stepped would be sent the trap of its first step. */
static bool makes_child(pid_t pid)
{
	if ((ptrace(PTRACE_PEEKTEXT, pid, regs.rip, 0) & 0xffff) != 0x050f) /* syscall */
		return false;
	return regs.rax == SYS_clone || regs.rax == SYS_clone3 || regs.rax == SYS_fork ||
	       regs.rax == SYS_vfork;
}

/* one instruction; the signal that is about to be delivered, 0 if none */
static int step(pid_t pid, int sig)
{
	bool call = !sig && makes_child(pid);

	for (int stops = call ? 2 : 1; stops; stops--) {
		if (ptrace(call ? PTRACE_SYSCALL : PTRACE_SINGLESTEP, pid, 0, sig) < 0)
			fail("cannot step");
		sig = WSTOPSIG(wait_for(pid));
		if (call && sig != (SIGTRAP | 0x80))
			break;
		sig = stops > 1 ? 0 : sig;
	}
	return sig == SIGTRAP || sig == (SIGTRAP | 0x80) ? 0 : sig;
}

int main(int argc, char **argv)
{
	const char *out = NULL;
	char *env[64];
	uint64_t at;
	int c, n = 0, sig;
	pid_t pid;
	FILE *f;

	while ((c = getopt(argc, argv, "+o:E:")) != -1)
		if (c == 'o')
			out = optarg;
		else if (c == 'E' && n < 64)
			env[n++] = optarg;
		else
			return 125;
	f = out && optind < argc ? fopen(out, "wbe") : NULL;
	if (!f) {
		fprintf(stderr, "usage: flow_step -o FILE [-E NAME=VALUE]... -- CMD ARGS...\n");
		return 125;
	}
	pid = tracee_start(argv + optind, env, n);
	if (ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD) < 0)
		fail("cannot trace");
	run_to_gs(pid);
	for (;;) {
		get(pid);
		at = regs.rip;
		fwrite(&at, sizeof(at), 1, f); /* it may not come back from exit */
		sig = step(pid, 0);
		if (!sig)
			continue;
		/* about to be delivered, and nothing was executed: or behind a system call that it interrupted */
		get(pid);
		if (regs.rip == at)
			fseek(f, -(long)sizeof(at), SEEK_CUR);
		at = regs.rip | FLOW_BROKEN;
		fwrite(&at, sizeof(at), 1, f);
		if (step(pid, sig)) {
			fprintf(stderr, "flow_step: a second signal at %#lx\n", (unsigned long)regs.rip);
			exit(125);
		}
	}
}
