// SPDX-License-Identifier: MIT
// BREAKS: code whose symbol has no type and that has no unwind tables, called through the PLT (ruby's fibers): taken for
// data it runs untraced; and it switches stacks, between callers at the same place.
// BUILD: cc -O2 -Wl,-rpath,$ORIGIN -L$OUT -lnotype
// LIB: libnotype.so notype_lib.S
// UNTRACED: 0
#include <stdio.h>

void co_swap(void **from, void **to);

static void *stack[4096] __attribute__((aligned(16))), *co, *back;
static long sum;

static void body(void)
{
	for (long i = 1;; i++) {
		long local[4] = { i, i * 2, i * 3, i * 4 };

		co_swap(&co, &back);
		for (int k = 0; k < 4; k++)
			sum += *(volatile long *)&local[k];
	}
}

static void step(int n)
{
	long local[2] = { n, sum };

	co_swap(&back, &co);
	sum = sum * 3 + *(volatile long *)&local[n & 1];
}

int main(void)
{
	stack[4000] = (void *)body; /* behind three registers; rsp is 8 beyond a multiple of 16 there, as after a call */
	co = &stack[3997];
	for (int i = 0; i < 8; i++)
		step(i);
	printf("notype %lx\n", sum);
	return 0;
}
