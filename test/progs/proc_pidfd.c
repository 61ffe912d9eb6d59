// SPDX-License-Identifier: MIT
// BREAKS: clone3 by hand: as a fork with a pidfd, and with a signal of the caller's choice at the child's end;
// waiting by descriptor.
// BUILD: cc -O2
// ORACLE: yes
#define _GNU_SOURCE
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "check.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

int main(void)
{
	struct clone_args a = { 0 };
	unsigned s = 0;
	siginfo_t si;

	for (int i = 0; i < 3; i++) {
		struct pollfd p = { .events = POLLIN };
		int fd = -1;
		long pid;

		a = (struct clone_args){ .flags = CLONE_PIDFD,
					 .pidfd = (unsigned long)&fd,
					 .exit_signal = i == 2 ? 0 : SIGCHLD };
		pid = syscall(SYS_clone3, &a, sizeof(a));
		if (pid < 0 && errno == ENOSYS)
			SKIP("proc_pidfd", "no clone3");
		CHECK(pid >= 0);
		if (!pid) {
			unsigned r = work(i, 300) & 63;

			syscall(SYS_exit_group, r);
		}
		p.fd = fd;
		CHECK(poll(&p, 1, -1) == 1);
		memset(&si, 0, sizeof(si));
		CHECK(!waitid((idtype_t)P_PIDFD, fd, &si, WEXITED | __WALL) && si.si_pid == pid);
		close(fd);
		s = s * 64 + si.si_status;
	}
	printf("proc_pidfd %x\n", s);
	return 0;
}
