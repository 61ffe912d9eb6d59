// SPDX-License-Identifier: MIT
// BREAKS: a child in user, pid and mount namespaces of its own: it is process 1 to itself, threads' numbers
// are small, and its numbers clash with those of the run's other processes.
// BUILD: cc -O2 -pthread
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

#include "check.h"

static void *run(void *arg)
{
	CHECK(syscall(SYS_gettid) == 2);
	return (void *)(unsigned long)work((long)arg, 200);
}

static int inside(void)
{
	pthread_t t;
	void *r;
	int st;
	pid_t pid;

	CHECK(getpid() == 1 && getppid() == 0);
	CHECK(!pthread_create(&t, NULL, run, (void *)4l));
	CHECK(!pthread_join(t, &r));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(getpid() == 3 ? work(5, 200) & 31 : 97);
	CHECK(wait(&st) == 3 && WIFEXITED(st));
	return (((unsigned)(unsigned long)r & 31) ^ WEXITSTATUS(st)) + 1;
}

int main(void)
{
	int st, r[2];
	pid_t pid;

	for (int i = 0; i < 2; i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			if (unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS))
				_exit(96);
			pid = fork();
			CHECK(pid >= 0);
			if (!pid)
				_exit(inside());
			CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st));
			_exit(WEXITSTATUS(st));
		}
		CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st));
		r[i] = WEXITSTATUS(st);
	}
	if (r[0] == 96)
		SKIP("proc_ns", "no namespaces for users");
	CHECK(r[0] == r[1] && r[0] < 60);
	printf("proc_ns %d\n", r[0]);
	return 0;
}
