// SPDX-License-Identifier: MIT
// BREAKS: a handler for SIGTRAP that is to be reset when it is entered (LLVM's tools have one): the tracer's own SIGTRAP, to
// threads that compute when the process exits, must not leave the next thread without one.
// BUILD: cc -O2 -pthread
// THREADS: 5
// ACCESSES: 100000
// STATUS: 7
#include <pthread.h>
#include <signal.h>

#include "turns.h"

static volatile int traps;

static void on_trap(int sig)
{
	(void)sig;
	traps++;
}

static void install(struct sigaction *now)
{
	struct sigaction sa = {.sa_handler = on_trap, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};

	CHECK(!sigaction(SIGTRAP, &sa, NULL));
	CHECK(!sigaction(SIGTRAP, NULL, now));
}

static void *leave(void *arg)
{
	(void)arg;
	for (int i = 0; i < 4; i++)
		while (turns[i] < 100)
			usleep(100);
	printf("thr_trap_once %d\n", traps);
	exit(7);
}

int main(void)
{
	struct sigaction now;
	pthread_t t;

	install(&now);
	printf("installed %d once %d\n", now.sa_handler == on_trap, (now.sa_flags & (int)SA_RESETHAND) != 0);
	raise(SIGTRAP);
	CHECK(!sigaction(SIGTRAP, NULL, &now));
	printf("reset %d\n", now.sa_handler == SIG_DFL);
	install(&now);
	for (long i = 0; i < 3; i++)
		CHECK(!pthread_create(&t, NULL, spin, (void *)i));
	CHECK(!pthread_create(&t, NULL, leave, NULL));
	spin((void *)3l);
	return 1;
}
