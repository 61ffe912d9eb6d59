// SPDX-License-Identifier: MIT
// BREAKS: makecontext and swapcontext: stacks that change without a call or return; coroutines that end
// through uc_link.
// BUILD: cc -O2
// VARIANTS: O0 clang
#include <stdio.h>
#include <ucontext.h>

static ucontext_t main_ctx, gen[2];
static char stacks[2][16384];
static int value[2], done[2];

static void producer(int id, int limit)
{
	for (int i = 0; i < limit; i++) {
		value[id] = value[id] * 3 + i;
		swapcontext(&gen[id], &main_ctx);
	}
	done[id] = 1;
}

int main(void)
{
	long s = 0;

	for (int i = 0; i < 2; i++) {
		getcontext(&gen[i]);
		gen[i].uc_stack.ss_sp = stacks[i];
		gen[i].uc_stack.ss_size = sizeof(stacks[i]);
		gen[i].uc_link = &main_ctx;
		makecontext(&gen[i], (void (*)(void))producer, 2, i, 5 + i);
	}
	for (int i = 0; i < 14 && !(done[0] && done[1]); i++) {
		int which = done[0] || (i & 1 && !done[1]);

		if (done[which])
			continue;
		swapcontext(&main_ctx, &gen[which]);
		s = s * 5 + value[0] + value[1];
	}
	printf("ucontext %ld %d %d\n", s, done[0], done[1]);
	return 0;
}
