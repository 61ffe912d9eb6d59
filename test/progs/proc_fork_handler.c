// SPDX-License-Identifier: MIT
// BREAKS: fork in a signal handler: the child returns from the handler, through a frame that it did not see made, and from
// the functions that were interrupted; also from a handler within a handler, on an alternate stack.
// BUILD: cc -O2
// VARIANTS: O0
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>

#include "check.h"

static volatile sig_atomic_t depth;
static volatile pid_t child = -1;
static char alt[65536];

static void handler(int sig)
{
	if (sig == SIGUSR1 && depth == 2)
		raise(SIGUSR2); // the fork is in the handler of that
	else
		child = fork();
	CHECK(child >= 0);
}

static unsigned __attribute__((noinline)) deep(int n, unsigned x)
{
	unsigned s;

	if (!n) {
		raise(SIGUSR1);
		return work(x, 20);
	}
	s = deep(n - 1, x * 3 + 1);
	return s * 31 + work(s, 5);
}

static unsigned once(int how)
{
	unsigned s, in_child;
	int st;

	depth = how;
	child = -1;
	s = deep(6, 7);
	if (!child)
		_exit(s & 127);
	CHECK(waitpid(child, &st, 0) == child && WIFEXITED(st));
	in_child = WEXITSTATUS(st);
	CHECK(in_child == (s & 127));
	return s;
}

int main(void)
{
	struct sigaction a = { .sa_handler = handler };
	stack_t ss = { .ss_sp = alt, .ss_size = sizeof(alt) };
	unsigned s;

	CHECK(!sigaltstack(&ss, NULL) && !sigaction(SIGUSR1, &a, NULL));
	a.sa_flags = SA_ONSTACK;
	CHECK(!sigaction(SIGUSR2, &a, NULL));
	s = once(1);
	s = s * 31 + once(2);
	printf("proc_fork_handler %x\n", s);
	return 0;
}
