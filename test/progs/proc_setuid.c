// SPDX-License-Identifier: MIT
// BREAKS: a program that gives its rights up, with threads (libc sends each a signal for that), and works on,
// forks, makes threads: it may not write where the run is.
// BUILD: cc -O2 -pthread
#define _GNU_SOURCE
#include <grp.h>
#include <pthread.h>
#include <sys/wait.h>

#include "check.h"

static int stop;

static void *user(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		usleep(100);
	CHECK(getuid() == 65534 && geteuid() == 65534);
	return (void *)(unsigned long)work((long)arg, 200);
}

int main(void)
{
	pthread_t t[2];
	void *r[2];
	int st;
	pid_t pid;

	if (geteuid())
		SKIP("proc_setuid", "needs root");
	CHECK(!pthread_create(&t[0], NULL, user, (void *)0l));
	CHECK(!setgroups(0, NULL) && !setgid(65534) && !setuid(65534));
	CHECK(setuid(0) == -1);
	CHECK(!pthread_create(&t[1], NULL, user, (void *)1l));
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_join(t[i], &r[i]));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(work(3, 200) & 63);
	CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st));
	printf("proc_setuid %lx %lx %d\n", (unsigned long)r[0], (unsigned long)r[1], WEXITSTATUS(st));
	return 0;
}
