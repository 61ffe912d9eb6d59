// SPDX-License-Identifier: MIT
// BREAKS: a fork while several stacks are in use: the callers on those that wait are to be known when they go on, too.
// The first of it where a recording for a replay ends, two stacks away from main's.
// BUILD: cc -O2
// THREADS: 4
// ORACLE: yes
// VARIANTS: clang
#include <sys/wait.h>
#include <ucontext.h>

#include "check.h"

#define STACK 65536
#define N 3

static ucontext_t main_uc, uc[N];
static _Alignas(16) char stacks[N][STACK];
static unsigned sum = 1;

static void split(void)
{
	int st;
	pid_t pid = fork();

	if (!pid)
		_exit(7);
	CHECK(pid > 0 && waitpid(pid, &st, 0) == pid && WEXITSTATUS(st) == 7);
}

/* each goes on in the next one's stack from its own depth, and comes back to what its registers held */
static unsigned __attribute__((noinline)) down(int id, int depth, unsigned *at)
{
	unsigned keep = *at;

	if (depth)
		keep += down(id, depth - 1, at + depth);
	else if (id + 1 < N)
		CHECK(!swapcontext(&uc[id], &uc[id + 1]));
	else
		split();
	return keep * 31 + *at + work(keep + depth, 4);
}

static void body(int id)
{
	static unsigned v[N][32];

	for (int i = 0; i < 32; i++)
		v[id][i] = work(id + i, 8);
	for (;;) {
		sum = sum * 7 + down(id, 4 + id, v[id]);
		CHECK(!swapcontext(&uc[id], id ? &uc[id - 1] : &main_uc));
	}
}

int main(void)
{
	for (int i = 0; i < N; i++) {
		CHECK(!getcontext(&uc[i]));
		uc[i].uc_stack.ss_sp = stacks[i];
		uc[i].uc_stack.ss_size = STACK;
		makecontext(&uc[i], (void (*)(void))body, 1, i);
	}
	for (int i = 0; i < 2; i++)
		CHECK(!swapcontext(&main_uc, &uc[0]));
	split();
	printf("stk_fork_context %u\n", sum);
	return 0;
}
