// SPDX-License-Identifier: MIT
/*
 * forks_prog.c - many children that end at once, before anybody may have noticed them: test/forks.sh looks for
 * each one's trace. Forked ones return through their parent's frames; four times as many are made by vfork.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int at[64];

static __attribute__((noinline)) int child(int depth)
{
	pid_t pid = 0;

	at[depth % 64] = depth;
	if (depth)
		return child(depth - 1) + at[depth % 64];
	pid = fork();
	return pid ? -1000 : 1;
}

static __attribute__((noinline)) int by_vfork(void)
{
	pid_t pid = vfork();

	if (!pid)
		_exit(7);
	return pid < 0;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 200, bad = 0, status;

	for (int i = 0; i < n; i++)
		if (child(i % 20) > 0 && at[0] == 0)
			_exit(7);
	/* faster than they can be written, and more than are known at a time */
	for (int i = 0; i < 4 * n; i++)
		bad += by_vfork();
	while (wait(&status) > 0)
		bad += !WIFEXITED(status) || WEXITSTATUS(status) != 7;
	printf("%d\n", bad);
	return bad != 0;
}
