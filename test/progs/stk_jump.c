// SPDX-License-Identifier: MIT
// BREAKS: a stack switch that leaves by pop and an indirect jump instead of ret, control words and all; fibers
// that switch to each other deep in recursion, not by way of main.
// BUILD: cc -O2 -DFIBER_JUMP
// ORACLE: yes
// VARIANTS: clang
#include "check.h"
#include "fiber.h"

#define N 4

static _Alignas(16) char stacks[N][16384];
static void *sp[N + 1]; /* the last one is main's */
static int now = N;
static unsigned sum, budget = 200;

static void go(int to)
{
	int from = now;

	now = to;
	fiber_switch(&sp[from], sp[to]);
}

static unsigned climb(int depth, unsigned v)
{
	if (budget-- == 0)
		go(N);
	if (!depth) {
		go((now + 1 + v % (N - 1)) % N);
		return v;
	}
	v = climb(depth - 1, v * 5 + depth) ^ v;
	sum += v;
	return v;
}

static void body(void)
{
	for (unsigned i = now;; i++)
		sum = sum * 3 + climb(i % 5, i);
}

int main(void)
{
	for (int i = 0; i < N; i++)
		sp[i] = fiber_new(stacks[i], sizeof(stacks[i]), body);
	go(0);
	printf("stk_jump %x %d\n", sum, now);
	return 0;
}
