// SPDX-License-Identifier: MIT
// BREAKS: a program that debugs its own child: reads and writes its memory, sees its system calls' numbers,
// results and its exec.
// BUILD: cc -O2
// PT_NO: its child has a tracer already, the simulator, and a thread can have one (ptrace(2), EPERM)
#define _GNU_SOURCE
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "check.h"

static volatile long shared_name = 41;

int main(void)
{
	struct user_regs_struct r;
	int st, calls = 0, in = 0, seen_getppid = 0;
	long v;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		CHECK(!ptrace(PTRACE_TRACEME, 0, 0, 0));
		raise(SIGSTOP);
		for (int i = 0; i < 3; i++)
			syscall(SYS_getppid);
		_exit(shared_name & 127);
	}
	CHECK(waitpid(pid, &st, 0) == pid && WIFSTOPPED(st) && WSTOPSIG(st) == SIGSTOP);
	CHECK(!ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD));
	errno = 0;
	v = ptrace(PTRACE_PEEKDATA, pid, &shared_name, 0);
	CHECK(!errno && v == 41);
	CHECK(!ptrace(PTRACE_POKEDATA, pid, &shared_name, v + 36));
	for (;;) {
		CHECK(!ptrace(PTRACE_SYSCALL, pid, 0, 0));
		CHECK(waitpid(pid, &st, 0) == pid);
		if (!WIFSTOPPED(st))
			break;
		CHECK(WSTOPSIG(st) == (SIGTRAP | 0x80));
		in = !in;
		if (!in)
			continue;
		CHECK(!ptrace(PTRACE_GETREGS, pid, 0, &r));
		calls++;
		seen_getppid += r.orig_rax == SYS_getppid;
	}
	CHECK(WIFEXITED(st) && seen_getppid == 3 && calls >= 4);
	printf("proc_ptrace %d\n", WEXITSTATUS(st));
	return 0;
}
