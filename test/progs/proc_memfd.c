// SPDX-License-Identifier: MIT
// BREAKS: programs without a name: fexecve of a memfd that is sealed and closed on exec, execveat with an
// empty path: the file is gone when anybody wants to read it.
// BUILD: cc -O2
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"

extern char **environ;

int main(int argc, char **argv)
{
	char *args[] = { "from memory", "child", NULL };
	int fd, self, st, r[2];
	struct stat sb;

	if (argc > 1) {
		CHECK(!strcmp(argv[0], "from memory"));
		return work(argc, 200) & 63;
	}
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid) {
			CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st));
			r[i] = WEXITSTATUS(st);
			continue;
		}
		fd = memfd_create("nameless", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		CHECK(fd >= 0 && self >= 0 && !fstat(self, &sb));
		for (off_t left = sb.st_size; left > 0;) {
			ssize_t n = sendfile(fd, self, NULL, left);

			CHECK(n > 0);
			left -= n;
		}
		CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
		if (i == 0)
			fexecve(fd, args, environ);
		else
			execveat(fd, "", args, environ, AT_EMPTY_PATH);
		_exit(98);
	}
	CHECK(r[0] == r[1] && r[0] == (int)(work(2, 200) & 63));
	printf("proc_memfd %d\n", r[0]);
	return 0;
}
