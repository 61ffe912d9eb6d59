// SPDX-License-Identifier: MIT
// BREAKS: fork while other threads run: the child has the forking thread alone, and nothing of ours may be
// held by those that are gone. By main and by a thread, whose child returns from the thread.
// BUILD: cc -O2 -pthread
// PT_LONG: yes
#include <pthread.h>
#include <sys/wait.h>

#include "check.h"

static volatile int stop;
static volatile unsigned turns[2];

static void *spin(void *arg)
{
	for (unsigned n = 0; !stop; n++) {
		free(malloc(work(n, 20) % 1000 + 1));
		turns[(long)arg]++;
	}
	return NULL;
}

static unsigned children(void)
{
	unsigned s = 0;
	int st;

	for (int i = 0; i < 5; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid) {
			char *p = malloc(1000); /* libc's own locks were taken care of */

			memset(p, i, 1000);
			_exit((work(p[77], 100) & 63) + 1);
		}
		CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st));
		s = s * 67 + WEXITSTATUS(st);
	}
	return s;
}

static void *forker(void *arg)
{
	int st;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		return arg; /* the last thread there: the child ends with status 0 */
	CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st) && !WEXITSTATUS(st));
	return (void *)(unsigned long)children();
}

int main(void)
{
	pthread_t t[2], f;
	unsigned s;
	void *r;

	for (long i = 0; i < 2; i++)
		CHECK(!pthread_create(&t[i], NULL, spin, (void *)i));
	for (int i = 0; i < 2; i++)
		while (!turns[i])
			usleep(100);
	s = children();
	CHECK(!pthread_create(&f, NULL, forker, NULL));
	CHECK(!pthread_join(f, &r));
	stop = 1;
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_join(t[i], NULL));
	CHECK(s == (unsigned)(unsigned long)r);
	printf("proc_fork_threads %x\n", s);
	return 0;
}
