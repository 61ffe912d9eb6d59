// SPDX-License-Identifier: MIT
// BREAKS: fork handlers in all three places, atexit handlers in parent and child, output buffered across the
// fork.
// BUILD: cc -O2 -pthread
// THREADS: 3
// ORACLE: yes
#include <pthread.h>
#include <sys/wait.h>

#include "check.h"

static int before, parent, child;

static void on_before(void)
{
	before = before * 2 + 1;
}
static void on_parent(void)
{
	parent += before;
}
static void on_child(void)
{
	child += before * 100;
}
static void at_end(void)
{
	printf("proc_atfork end %d %d %d\n", before, parent, child);
}

int main(void)
{
	int st;

	CHECK(!pthread_atfork(on_before, on_parent, on_child));
	CHECK(!pthread_atfork(on_before, NULL, on_child));
	CHECK(!atexit(at_end));
	for (int i = 0; i < 2; i++) {
		pid_t pid;

		printf("proc_atfork round %d\n", i); /* in the buffer: printed by both */
		pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			exit(i);
		CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st) && WEXITSTATUS(st) == i);
	}
	return 0;
}
