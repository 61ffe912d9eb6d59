// SPDX-License-Identifier: MIT
// BREAKS: an exec that fails returns: the program goes on, and so does its trace, as often as it happens.
// BUILD: cc -O2
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "check.h"

static char *volatile nowhere = (char *)16;

int main(void)
{
	char *argv[] = { "x", NULL }, *env[] = { "A=b", NULL };
	char path[] = "/tmp/proc_exec_fails.XXXXXX";
	int fd = mkstemp(path), e[5];
	unsigned s = 0;

	CHECK(fd >= 0 && write(fd, "\x7f""ELF nonsense", 13) == 13);
	for (int i = 0; i < 3; i++) {
		CHECK(execve("/nonexistent/program", argv, env) == -1);
		e[0] = errno;
		s += work(i, 100);
		CHECK(execve("/", argv, env) == -1);
		e[1] = errno;
		CHECK(execveat(-1, "relative", argv, env, 0) == -1);
		e[2] = errno;
		CHECK(execve(nowhere, argv, env) == -1);
		e[3] = errno;
		fchmod(fd, 0700);
		if (i == 2)
			close(fd); /* not busy any more: not an ELF file */
		CHECK(execve(path, argv, env) == -1);
		e[4] = errno;
		s += e[4];
	}
	unlink(path);
	printf("proc_exec_fails %d %d %d %d %d %x\n", e[0] == ENOENT, e[1] == EACCES, e[2] == EBADF, e[3] == EFAULT,
	       e[4] == ENOEXEC, s);
	return 0;
}
