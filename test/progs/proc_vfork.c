// SPDX-License-Identifier: MIT
// BREAKS: vfork: the call returns twice on one stack; what the child changed stays changed. It ends by _exit,
// by exec, and by an exec that fails.
// BUILD: cc -O1
// ORACLE: yes
// VARIANTS: clang
#define _GNU_SOURCE
#include <sys/wait.h>

#include "check.h"

static volatile unsigned seen[8];

static int __attribute__((noinline)) one(int how)
{
	char *argv[] = { "false", NULL }; /* its accesses do not depend on process ids, as a shell's do */
	volatile unsigned local = how;
	int st;
	pid_t pid = vfork();

	CHECK(pid >= 0);
	if (!pid) {
		seen[how] = work(how, 50);
		local += 10;
		if (how == 1)
			execv("/bin/false", argv);
		if (how == 2)
			execv("/nonexistent", argv);
		_exit(20 + how);
	}
	CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st));
	CHECK(seen[how] == work(how, 50) && local == how + 10u);
	return WEXITSTATUS(st);
}

int main(void)
{
	int a = one(0), b = one(1), c = one(2);

	printf("proc_vfork %d %d %d\n", a, b, c);
	return 0;
}
