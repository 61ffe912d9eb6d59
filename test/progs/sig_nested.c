// SPDX-License-Identifier: MIT
// BREAKS: handlers within handlers, deeper than the runtime keeps what they interrupted, that return to loops
// which have stored logs but not committed them.
// BUILD: cc -O2
// VARIANTS: O0 clang
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>

static volatile int depth;
static volatile long sum;
static int table[64];

__attribute__((noinline)) static long work(const int *t, long n)
{
	long s = 0;

	for (long i = 0; i < n; i++)
		s += t[t[i] & 63] * (i + 1);
	return s;
}

static void handler(int sig)
{
	int d = ++depth;
	long before = work(table, 8 + d % 5);

	if (d < 100)
		raise(d % 3 ? sig : SIGUSR1 + SIGUSR2 - sig);
	sum += before - work(table, 8 + d % 5) + d;
}

int main(void)
{
	struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_NODEFER};

	for (int i = 0; i < 64; i++)
		table[i] = i * 7 + 3;
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	raise(SIGUSR1);
	printf("%d %ld %ld\n", depth, sum, work(table, 64));
	return 0;
}
