// SPDX-License-Identifier: MIT
// BREAKS: frames of handlers that never return pile up: siglongjmp out of them, also out of the depth of a
// recursion, from an alternate stack, out of a handler within a handler. An argument: how many times.
// BUILD: cc -O2
// VARIANTS: O0
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static sigjmp_buf out;
static volatile long jumps, seen;
static char alt[65536];

static void jump(int sig)
{
	seen += sig == SIGSEGV ? 1 : 3;
	siglongjmp(out, 1);
}

static void again(int sig)
{
	raise(sig == SIGUSR1 ? SIGUSR2 : SIGUSR1);
	abort();
}

__attribute__((noinline)) static long deep(volatile int *null, int n, long x)
{
	if (n)
		return deep(null, n - 1, x + n) + x;
	return *null + x;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 40, keep = 7;
	struct sigaction sa = {.sa_handler = jump};
	stack_t ss = {.ss_sp = alt, .ss_size = sizeof(alt)};

	sigaltstack(&ss, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	sa.sa_handler = again;
	sigaction(SIGUSR1, &sa, NULL);
	for (volatile long i = 0; i < n; i++) {
		sa.sa_handler = jump;
		sa.sa_flags = i & 1 ? SA_ONSTACK : 0;
		if (i < 4)
			sigaction(SIGSEGV, &sa, NULL);
		if (sigsetjmp(out, 1)) {
			jumps++;
			continue;
		}
		if (i % 3)
			keep += deep(NULL, i & 7, i);
		else
			raise(SIGUSR1);
	}
	printf("%ld %ld %ld\n", jumps, seen, keep);
	return 0;
}
