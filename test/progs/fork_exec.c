// SPDX-License-Identifier: MIT
// BREAKS: fork (the child goes on in copied code), vfork through posix_spawn, waitpid; the child's output
// comes before the parent's.
// BUILD: cc -O2
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int main(void)
{
	char *argv[] = { "sh", "-c", "exit 3", NULL };
	int a[8] = { 0 }, st, st2 = 0;
	pid_t pid = fork();

	if (!pid) {
		for (int i = 0; i < 8; i++)
			a[i] = i + (i ? a[i - 1] : 0);
		_exit(a[7]);
	}
	waitpid(pid, &st, 0);
	if (posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ))
		return 1;
	waitpid(pid, &st2, 0);
	printf("fork_exec %d %d\n", WEXITSTATUS(st), WEXITSTATUS(st2));
	return 0;
}
