// SPDX-License-Identifier: MIT
// BREAKS: system calls that are interrupted by a stop and restarted by the kernel: the instruction runs again,
// or restart_syscall in its place, and the program sees one call. read, nanosleep, poll, futex, waitid.
// BUILD: cc -O2
#define _GNU_SOURCE
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "check.h"

static int word;

/* A child stops us in the call, twice, and lets us go on; then it ends the wait. */
static pid_t disturb(int fd, int end)
{
	pid_t me = getpid(), pid = fork();

	CHECK(pid >= 0);
	if (pid)
		return pid;
	for (int i = 0; i < 2; i++) {
		usleep(3000);
		kill(me, SIGSTOP);
		usleep(2000);
		kill(me, SIGCONT);
	}
	usleep(3000);
	if (fd >= 0)
		CHECK(write(fd, "x", 1) == 1);
	_exit(end);
}

int main(void)
{
	struct timespec t = { 0, 20000000 }, rest = { 0, 0 }, a, b;
	struct pollfd p;
	unsigned s = 0;
	siginfo_t si;
	int fd[2];
	pid_t pid;
	char c = 0;

	CHECK(!pipe(fd));
	pid = disturb(fd[1], 0);
	CHECK(read(fd[0], &c, 1) == 1 && c == 'x');
	CHECK(waitpid(pid, NULL, 0) == pid);
	s += work(c, 100);

	pid = disturb(-1, 0);
	clock_gettime(CLOCK_MONOTONIC, &a);
	CHECK(nanosleep(&t, &rest) == 0);
	clock_gettime(CLOCK_MONOTONIC, &b);
	CHECK((b.tv_sec - a.tv_sec) * 1000000000l + b.tv_nsec - a.tv_nsec >= 20000000);
	CHECK(waitpid(pid, NULL, 0) == pid);
	s += work(s, 100);

	pid = disturb(fd[1], 0);
	p = (struct pollfd){ fd[0], POLLIN, 0 };
	CHECK(poll(&p, 1, 10000) == 1 && p.revents == POLLIN && read(fd[0], &c, 1) == 1);
	CHECK(waitpid(pid, NULL, 0) == pid);
	s += work(s, 100);

	pid = disturb(-1, 0);
	t.tv_nsec = 30000000;
	CHECK(syscall(SYS_futex, &word, FUTEX_WAIT, 0, &t, NULL, 0) == -1 && errno == ETIMEDOUT);
	CHECK(waitpid(pid, NULL, 0) == pid);
	s += work(s, 100);

	pid = disturb(-1, 23);
	memset(&si, 0, sizeof(si));
	CHECK(waitid(P_PID, pid, &si, WEXITED) == 0 && si.si_status == 23);
	printf("sys_restart %x\n", s + work(si.si_status, 100));
	return 0;
}
