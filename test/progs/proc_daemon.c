// SPDX-License-Identifier: MIT
// BREAKS: daemons: fork twice, setsid, chdir, umask, every descriptor closed, by close_range and by a loop; a
// tracer's descriptors go with them.
// BUILD: cc -O2
// THREADS: 5
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"

struct shared {
	int done;
	unsigned result, closed, fds;
	int session_is_new;
};

static void daemon_body(struct shared *s, int how)
{
	if (how == 0) {
		CHECK(!syscall(SYS_close_range, 0u, ~0u, 0u));
	} else {
		for (int fd = 0; fd < 1024; fd++)
			s->closed += !close(fd);
	}
	CHECK(open("/dev/null", O_RDWR) == 0 && dup(0) == 1 && dup(0) == 2);
	for (int fd = 3; fd < 1024; fd++)
		s->fds += fcntl(fd, F_GETFD) >= 0;
	s->session_is_new = getsid(0) != getpid() && getpgrp() == getsid(0);
	s->result = work(how, 2000);
	__atomic_store_n(&s->done, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &s->done, FUTEX_WAKE, 1, NULL, NULL, 0);
	_exit(0);
}

static void start(struct shared *s, int how)
{
	pid_t pid = fork();
	int st;

	CHECK(pid >= 0);
	if (!pid) {
		CHECK(setsid() == getpid() && !chdir("/"));
		umask(0);
		pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			daemon_body(s, how);
		_exit(0);
	}
	CHECK(waitpid(pid, &st, 0) == pid && st == 0);
	while (!__atomic_load_n(&s->done, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, &s->done, FUTEX_WAIT, 0, NULL, NULL, 0);
}

int main(void)
{
	struct shared *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned a = 0;

	CHECK(s != MAP_FAILED);
	for (int how = 0; how < 2; how++) {
		memset(s, 0, sizeof(*s));
		start(s, how);
		CHECK(s->result == work(how, 2000) && s->session_is_new && s->fds == 0);
		CHECK(how == 0 || s->closed >= 1);
		a = a * 3 + s->result;
	}
	printf("proc_daemon %x\n", a);
	return 0;
}
