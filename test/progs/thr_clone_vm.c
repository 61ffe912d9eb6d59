// SPDX-License-Identifier: MIT
// BREAKS: CLONE_VM without CLONE_THREAD: another process in the same memory, with another pid, at the same
// time; it ends by returning, and by exec.
// BUILD: cc -O2
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "check.h"

static _Alignas(16) char stack[2][65536];
static unsigned result[2];
static volatile int go;

static int child(void *arg)
{
	long i = (long)arg;

	while (!go) /* both are alive at once */
		;
	result[i] = work(i, 500);
	return 40 + i;
}

static int exec_child(void *arg)
{
	char *argv[] = { "true", NULL }, *envp[] = { NULL };

	execve(arg, argv, envp);
	return 98;
}

int main(void)
{
	pid_t pid[2];
	int st;

	for (long i = 0; i < 2; i++) {
		pid[i] = clone(child, stack[i] + sizeof(stack[i]), CLONE_VM | SIGCHLD, (void *)i);
		CHECK(pid[i] > 0);
	}
	go = 1;
	for (long i = 0; i < 2; i++) {
		CHECK(waitpid(pid[i], &st, 0) == pid[i]);
		CHECK(WIFEXITED(st) && WEXITSTATUS(st) == 40 + i);
		CHECK(result[i] == work(i, 500));
	}
	pid[0] = clone(exec_child, stack[0] + sizeof(stack[0]), CLONE_VM | SIGCHLD, "/bin/true");
	CHECK(pid[0] > 0 && waitpid(pid[0], &st, 0) == pid[0]);
	CHECK(WIFEXITED(st) && WEXITSTATUS(st) == 0);
	printf("thr_clone_vm %x %x\n", result[0], result[1]);
	return 0;
}
