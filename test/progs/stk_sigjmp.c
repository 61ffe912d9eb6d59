// SPDX-License-Identifier: MIT
// BREAKS: sigsetjmp and siglongjmp across frames, with and without the signal mask, to the same place many
// times, from a loop whose registers the jump restores.
// BUILD: cc -O2
// ORACLE: yes
// VARIANTS: O0 clang
#include <setjmp.h>
#include <signal.h>

#include "check.h"

static sigjmp_buf env[3];

static unsigned __attribute__((noinline)) fall(int depth, int to, unsigned v)
{
	volatile unsigned keep[8];

	keep[depth & 7] = v;
	if (!depth)
		siglongjmp(env[to], (int)(v & 0xff) + 1);
	return fall(depth - 1, to, v * 3 + depth) + keep[depth & 7];
}

static int blocked(int sig)
{
	sigset_t s;

	sigprocmask(SIG_BLOCK, NULL, &s);
	return sigismember(&s, sig);
}

int main(void)
{
	volatile unsigned sum = 0, rounds = 0;
	volatile int in = 0;
	sigset_t usr;
	int r;

	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR1);
	for (volatile int i = 0; i < 20; i++) {
		r = sigsetjmp(env[i % 3], i & 1);
		if (!r) {
			in++;
			sigprocmask(SIG_BLOCK, &usr, NULL);
			fall(i % 7, i % 3, work(i, 10));
		}
		sum = sum * 31 + r;
		rounds += blocked(SIGUSR1) != !(i & 1);
		sigprocmask(SIG_UNBLOCK, &usr, NULL);
	}
	r = sigsetjmp(env[0], 1); /* one place, many returns */
	if (r < 50)
		siglongjmp(env[0], r + 1);
	printf("stk_sigjmp %x %u %d %d\n", sum, rounds, in, r);
	return 0;
}
