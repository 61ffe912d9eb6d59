// SPDX-License-Identifier: MIT
// BREAKS: makecontext and swapcontext: generators with arguments, uc_link at the end, contexts that make
// contexts, setcontext back to a getcontext that was long ago.
// BUILD: cc -O2
// ORACLE: yes
// VARIANTS: clang
#include <ucontext.h>

#include "check.h"

#define STACK 32768

static ucontext_t main_uc, gen[3], inner;
static _Alignas(16) char stacks[4][STACK];
static unsigned sum;
static int ended;

static void innermost(int n)
{
	sum = sum * 3 + work(n, 20);
}

static void generator(int id, int from, int to)
{
	for (int i = from; i < to; i++) {
		sum = sum * 7 + id * 100 + i;
		if (i == from + 1) {
			CHECK(!getcontext(&inner));
			inner.uc_stack.ss_sp = stacks[3];
			inner.uc_stack.ss_size = STACK;
			inner.uc_link = &gen[id];
			makecontext(&inner, (void (*)(void))innermost, 1, i);
			CHECK(!swapcontext(&gen[id], &inner));
		}
		CHECK(!swapcontext(&gen[id], &main_uc));
	}
	ended++; /* uc_link: back to main */
}

int main(void)
{
	volatile int rounds = 0;
	ucontext_t again;

	for (int i = 0; i < 3; i++) {
		CHECK(!getcontext(&gen[i]));
		gen[i].uc_stack.ss_sp = stacks[i];
		gen[i].uc_stack.ss_size = STACK;
		gen[i].uc_link = &main_uc;
		makecontext(&gen[i], (void (*)(void))generator, 3, i, i * 10, i * 10 + 4);
	}
	for (int i = 0; i < 15; i++)
		CHECK(!swapcontext(&main_uc, &gen[i % 3]));
	CHECK(ended == 3);
	CHECK(!getcontext(&again));
	if (++rounds < 5)
		setcontext(&again);
	printf("stk_context %x %d\n", sum, rounds);
	return 0;
}
