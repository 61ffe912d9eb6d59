// SPDX-License-Identifier: MIT
// BREAKS: SECCOMP_MODE_STRICT in a child: read, write and exit (of the thread, not exit_group) alone are
// allowed.
// BUILD: cc -O2
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "check.h"

int main(void)
{
	unsigned v = 0;
	int fd[2], st;
	pid_t pid;

	CHECK(!pipe(fd));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
		for (int i = 0; i < 50; i++) {
			v = v * 31 + work(i, 2000);
			(void)!write(fd[1], &v, sizeof(v));
		}
		syscall(SYS_exit, 17);
	}
	for (int i = 0; i < 50; i++)
		CHECK(read(fd[0], &v, sizeof(v)) == sizeof(v));
	CHECK(waitpid(pid, &st, 0) == pid);
	CHECK(WIFEXITED(st) && WEXITSTATUS(st) == 17);
	printf("proc_seccomp_strict %x\n", v);
	return 0;
}
