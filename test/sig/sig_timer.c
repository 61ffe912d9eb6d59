// SPDX-License-Identifier: MIT
// BREAKS: a signal at any instruction: a profiler's timer at 1 kHz while all kinds of code compute; the results are
// those without it, registers and flags and what is below rsp are as they were.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

static volatile long ticks;
static volatile long bad;

static void handler(int sig, siginfo_t *si, void *ctx)
{
	ucontext_t *uc = ctx;
	char junk[256];

	(void)sig;
	(void)si;
	memset(junk, (int)ticks, sizeof(junk));
	bad += !uc->uc_mcontext.gregs[REG_RIP] || junk[255] != (char)ticks;
	ticks++;
}

static int cmp(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static unsigned long sorted(unsigned seed)
{
	static int v[4000];
	unsigned long h = 0;

	for (int i = 0; i < 4000; i++)
		v[i] = (int)((seed = seed * 1103515245 + 12345) >> 8);
	qsort(v, 4000, sizeof(*v), cmp);
	for (int i = 0; i < 4000; i++)
		h = h * 31 + (unsigned)v[i];
	return h;
}

static unsigned long text(unsigned n)
{
	char buf[200];
	unsigned long h = 0;

	for (unsigned i = 0; i < n; i++) {
		int k = snprintf(buf, sizeof(buf), "%u %x %s %.3f", i, i * i, "words", i / 7.0);

		for (int j = 0; j < k; j++)
			h = h * 131 + (unsigned char)buf[j];
		h ^= (unsigned long)strtol(buf, NULL, 10);
	}
	return h;
}

static jmp_buf env;
static long jumps(long n)
{
	volatile long c = 0;

	for (volatile long i = 0; i < n; i++)
		if (!setjmp(env))
			longjmp(env, 1);
		else
			c += i;
	return c;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 20;
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct itimerval it = {{0, 1000}, {0, 1000}};
	unsigned long s = sorted(1), t = text(300);
	long j = jumps(300);

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
	for (int i = 0; i < rounds || ticks < 20; i++) {
		bad += sorted(1) != s;
		bad += text(300) != t;
		bad += jumps(300) != j;
	}
	it = (struct itimerval){0};
	setitimer(ITIMER_REAL, &it, NULL);
	printf("%lx %lx %ld bad %ld\n", s, t, j, bad);
	return bad != 0;
}
