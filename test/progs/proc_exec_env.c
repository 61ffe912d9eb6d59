// SPDX-License-Identifier: MIT
// BREAKS: exec with an environment made from nothing: the program that runs then sees that and no more.
// BUILD: cc -O2
#include <sys/wait.h>

#include "check.h"

extern char **environ;

int main(int argc, char **argv)
{
	char *args[] = { "proc_exec_env", "child", NULL }, *env[] = { "ONLY=this", NULL };
	int st;
	pid_t pid;

	if (argc > 1) {
		int n = 0;

		while (environ[n])
			n++;
		CHECK(!strcmp(argv[1], "child") && getenv("ONLY"));
		return n;
	}
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		execve("/proc/self/exe", args, env);
		_exit(98);
	}
	CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st));
	printf("proc_exec_env %d\n", WEXITSTATUS(st));
	return argv[0] == NULL;
}
