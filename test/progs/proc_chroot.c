// SPDX-License-Identifier: MIT
// BREAKS: chroot into an empty folder, then another user: no path of ours leads anywhere any more, nothing of
// the run may be opened again.
// BUILD: cc -O2
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"

int main(void)
{
	char dir[] = "/tmp/proc_chroot.XXXXXX";
	unsigned s;
	int st;
	pid_t pid;

	if (geteuid())
		SKIP("proc_chroot", "needs root");
	CHECK(mkdtemp(dir) && !chmod(dir, 0755));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		CHECK(!chroot(dir) && !chdir("/"));
		CHECK(!setgroups(0, NULL) && !setresgid(65534, 65534, 65534) && !setresuid(65534, 65534, 65534));
		CHECK(open("/proc/self/maps", O_RDONLY) < 0 && open("/x", O_CREAT | O_WRONLY, 0600) < 0);
		pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			_exit(work(1, 300) & 63);
		CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st));
		_exit(WEXITSTATUS(st) ^ (work(2, 300) & 63));
	}
	CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st));
	s = WEXITSTATUS(st);
	CHECK(s == ((work(1, 300) ^ work(2, 300)) & 63));
	CHECK(!rmdir(dir)); /* empty still */
	printf("proc_chroot %u\n", s);
	return 0;
}
