// SPDX-License-Identifier: MIT
// BREAKS: SIGKILL of threads that have computed since they began without a system call, or since a signal handler
// returned, and published nothing of it: all of it is there, but for the last bytes of each log.
// BUILD: cc -O2 -pthread
// PT_LONG: yes
// STATUS: 137
// KILLED: yes
// ACCESSES: 795000
// PT_ACCESSES: 39000
#include <pthread.h>
#include <signal.h>

#include "check.h"

#define THREADS 4
#define TURNS (simulated() ? 40u : 800u)

static volatile sig_atomic_t seen;
static volatile unsigned started, done, sum;

static void handler(int sig)
{
	seen += sig != 0;
}

static void *compute(void *arg)
{
	unsigned s = 0;

	if (arg)
		pthread_kill(pthread_self(), SIGUSR1);
	__atomic_add_fetch(&started, 1, __ATOMIC_SEQ_CST);
	for (unsigned n = 0; n < TURNS; n++)
		s += work(n, 50);
	sum = s;
	__atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST);
	for (;;)
		__asm__ volatile("pause"); // logs nothing
	return NULL;
}

int main(void)
{
	struct sigaction a = { .sa_handler = handler };
	pthread_t t;

	CHECK(!sigaction(SIGUSR1, &a, NULL));
	printf("thr_killed_tail\n");
	fflush(stdout);
	for (long i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t, NULL, compute, (void *)(i & 1)));
	while (done < THREADS)
		usleep(1000);
	CHECK(seen == THREADS / 2);
	kill(getpid(), SIGKILL);
	return 1;
}
