// SPDX-License-Identifier: MIT
// BREAKS: threads that begin, run and end with every signal blocked; a pending signal stays pending.
// BUILD: cc -O2 -pthread
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>

#include "check.h"

static void *run(void *arg)
{
	sigset_t now, pend;
	unsigned r;

	settle();
	CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &now));
	CHECK(sigismember(&now, SIGSEGV) && sigismember(&now, SIGTRAP) && sigismember(&now, SIGTERM));
	CHECK(!pthread_kill(pthread_self(), SIGTERM));
	r = work((long)arg, 60);
	CHECK(!sigpending(&pend) && sigismember(&pend, SIGTERM));
	return (void *)(unsigned long)r;
}

int main(void)
{
	unsigned long s = 0;
	sigset_t all, old;
	pthread_t t;
	void *r;

	sigfillset(&all);
	CHECK(!pthread_sigmask(SIG_SETMASK, &all, &old));
	for (long i = 0; i < 4; i++) {
		CHECK(!pthread_create(&t, NULL, run, (void *)i));
		CHECK(!pthread_join(t, &r));
		s = s * 3 + (unsigned long)r;
	}
	CHECK(!pthread_sigmask(SIG_SETMASK, &old, &all));
	CHECK(sigismember(&all, SIGTRAP) && sigismember(&all, SIGUSR1));
	printf("thr_sigblock %lx\n", s);
	return 0;
}
