// SPDX-License-Identifier: MIT
// BREAKS: five hundred forks in turn: what a child takes must be given back, and a process must not slow down
// with its history.
// BUILD: cc -O2
// PT_LONG: yes
// THREADS: 501
#include <sys/wait.h>

#include "check.h"

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 500, st;
	unsigned s = 0;

	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid)
			_exit(work(i, 10) & 127);
		CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st));
		s = s * 31 + WEXITSTATUS(st);
	}
	printf("proc_fork_loop %x\n", s);
	return 0;
}
