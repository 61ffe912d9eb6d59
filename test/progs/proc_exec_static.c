// SPDX-License-Identifier: MIT
// BREAKS: exec of a static program, which loads no library: it must run all the same, and the trace says why
// it ends there. From a child, then in place.
// BUILD: cc -O2
// HELPER: proc_static proc_static.c -static
// STATUS: 12
#include <sys/wait.h>

#include "check.h"

int main(int argc, char **argv)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 32);
	int st;
	pid_t pid;

	(void)argc;
	CHECK(n > 0);
	path[n] = 0;
	strcpy(strrchr(path, '/') + 1, "proc_static");
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		execl(path, "proc_static", "child", (char *)NULL);
		_exit(98);
	}
	CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st));
	printf("proc_exec_static %d %x\n", WEXITSTATUS(st), work(1, 100));
	fflush(stdout);
	execl(path, "proc_static", "in place", argv[1], (char *)NULL);
	return 1;
}
