// SPDX-License-Identifier: MIT
// BREAKS: processes that all fork, to a depth of five, 63 of them, all at once.
// BUILD: cc -O2
// PT_LONG: yes
// THREADS: 63
#include <sys/wait.h>

#include "check.h"

static unsigned tree(int depth, unsigned id)
{
	unsigned s = work(id, 100) & 15;
	pid_t pid[2];
	int st;

	if (!depth)
		return s;
	for (int i = 0; i < 2; i++) {
		pid[i] = fork();
		CHECK(pid[i] >= 0);
		if (!pid[i])
			_exit(tree(depth - 1, id * 2 + i) & 127);
	}
	for (int i = 0; i < 2; i++) {
		CHECK(waitpid(pid[i], &st, 0) == pid[i] && WIFEXITED(st));
		s = s * 3 + WEXITSTATUS(st);
	}
	return s;
}

int main(void)
{
	printf("proc_tree %u\n", tree(5, 1));
	return 0;
}
