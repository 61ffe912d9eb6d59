// SPDX-License-Identifier: MIT
// BREAKS: setjmp/longjmp over many frames, back into live loops, and siglongjmp out of a signal handler:
// returns that no call of the right depth precedes.
// BUILD: cc -O2
// VARIANTS: O0 clang cet
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

static jmp_buf env;
static sigjmp_buf senv;
static volatile int depth;

__attribute__((noinline)) static void dive(int n, int *trail)
{
	trail[n & 7]++;
	depth = n;
	if (!n)
		longjmp(env, 5);
	if (depth == n)
		dive(n - 1, trail);
	trail[0] = -100;
}

static void handler(int sig)
{
	siglongjmp(senv, sig);
}

int main(void)
{
	int trail[8] = { 0 };
	volatile int rounds = 0, sum = 0;

	for (int i = 1; i < 6; i++) {
		int r = setjmp(env);

		if (!r)
			dive(i * 7, trail);
		sum += r + i;
	}
	signal(SIGUSR1, handler);
	while (rounds < 3) {
		int r = sigsetjmp(senv, 1);

		if (!r)
			raise(SIGUSR1);
		sum += r;
		rounds++;
	}
	printf("setjmp %d %d %d\n", sum, trail[0], trail[7]);
	return 0;
}
