// SPDX-License-Identifier: MIT
// BREAKS: every kind of end a parent can see, by wait4 and waitid: status, signal, core flag, stopped and
// continued; that nobody else is there to be waited for; times and memory of the child.
// BUILD: cc -O2
// THREADS: 9
// KILLED: yes
#define _GNU_SOURCE
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "check.h"

static int go[2];
static int *volatile nowhere = (int *)8;

static pid_t child(int how)
{
	struct rlimit none = { 0, 0 };
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid)
		return pid;
	setrlimit(RLIMIT_CORE, &none);
	work(how, 100);
	switch (how) {
	case 0:
		_exit(200);
	case 1:
		abort();
	case 2:
		raise(SIGTERM);
		break;
	case 3:
		*(volatile int *)nowhere = 1;
		break;
	case 4:
		__builtin_trap();
	case 5:
		raise(SIGSTOP);
		(void)!read(go[0], &how, 1); /* not gone before it is seen */
		_exit(55);
	case 6:
		kill(getpid(), SIGKILL);
		break;
	case 7:
		exit(1000); /* the low eight bits */
	}
	_exit(99);
}

int main(void)
{
	struct rusage ru;
	siginfo_t si;
	int st;
	pid_t pid;

	CHECK(!pipe(go));
	printf("proc_wait");
	for (int how = 0; how < 8; how++) {
		fflush(stdout);
		pid = child(how);
		if (how == 5) {
			CHECK(waitpid(pid, &st, WUNTRACED) == pid && WIFSTOPPED(st) && WSTOPSIG(st) == SIGSTOP);
			kill(pid, SIGCONT);
			CHECK(waitpid(pid, &st, WCONTINUED) == pid && WIFCONTINUED(st));
			CHECK(write(go[1], "x", 1) == 1);
		}
		memset(&si, 0, sizeof(si));
		CHECK(!waitid(P_PID, pid, &si, WEXITED | WNOWAIT) && si.si_pid == pid);
		CHECK(wait4(pid, &st, 0, &ru) == pid && ru.ru_maxrss > 0);
		printf(" %d:%d:%d", si.si_code, si.si_status, WIFSIGNALED(st) ? -WTERMSIG(st) : WEXITSTATUS(st));
	}
	CHECK(wait(&st) == -1 && errno == ECHILD);
	CHECK(waitid(P_ALL, 0, &si, WEXITED | __WALL) == -1 && errno == ECHILD);
	printf("\n");
	return 0;
}
