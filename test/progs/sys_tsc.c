// SPDX-License-Identifier: MIT
// BREAKS: a program that has the time stamp counter taken away (PR_SET_TSC), and catches the SIGSEGV that rdtsc is then. Threads
// and children inherit it. The tracer's own time stamps must not be such a SIGSEGV.
// BUILD: cc -O2 -pthread
// STATUS: 6
// THREADS: 3
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "check.h"

static sigjmp_buf back;
static int table[64];

static void on_segv(int sig)
{
	siglongjmp(back, sig);
}

/* is rdtsc a fault? */
static int faults(void)
{
	unsigned lo, hi;
	int sig = sigsetjmp(back, 1);

	if (sig)
		return sig == SIGSEGV;
	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	table[lo & 63] = (int)hi;
	return 0;
}

static int taken(void)
{
	int how = 0;

	CHECK(!prctl(PR_GET_TSC, &how));
	return how == PR_TSC_SIGSEGV;
}

static void *thread(void *arg)
{
	CHECK(taken());
	for (int i = 0; i < 100; i++)
		CHECK(getppid() > 0 && work((unsigned)i, 10));
	return arg;
}

static int join(pid_t pid)
{
	int st;

	CHECK(pid > 0 && waitpid(pid, &st, 0) == pid && WIFEXITED(st));
	return WEXITSTATUS(st);
}

int main(void)
{
	pthread_t t;
	pid_t pid;

	CHECK(signal(SIGSEGV, on_segv) != SIG_ERR);
	CHECK(!taken() && !faults());
	CHECK(!prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
	CHECK(taken() && faults() && faults());
	for (int i = 0; i < 100; i++)
		CHECK(getppid() > 0);
	CHECK(!pthread_create(&t, NULL, thread, NULL) && !pthread_join(t, NULL));
	pid = fork();
	if (!pid)
		_exit(taken() && faults() ? 3 : 1);
	CHECK(join(pid) == 3);
	CHECK(!prctl(PR_SET_TSC, PR_TSC_ENABLE));
	CHECK(!taken() && !faults());
	CHECK(faults() == 0 && work(7, 100));
	printf("sys_tsc\n");
	return 6;
}
