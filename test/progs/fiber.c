// SPDX-License-Identifier: MIT
// BREAKS: a hand-written fiber switch: push the callee-saved registers, swap rsp, pop, ret. The ret returns
// into another stack's caller; r15 travels in the frame.
// BUILD: cc -O2
// VARIANTS: O0 clang
#include <stdio.h>

void fiber_switch(void **save, void *to);
__asm__(".text\n"
	".type fiber_switch, @function\n"
	"fiber_switch: .cfi_startproc\n"
	"push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"mov %rsp, (%rdi); mov %rsi, %rsp\n"
	"pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"ret\n"
	".cfi_endproc\n"
	".size fiber_switch, . - fiber_switch\n");

static void *main_sp, *fib_sp[3];
static _Alignas(16) char stacks[3][8192];
static int turn;
static long acc;

static void body(void)
{
	int me = turn;

	for (int i = 1;; i++) {
		acc = acc * 7 + me * i;
		fiber_switch(&fib_sp[me], main_sp);
	}
}

int main(void)
{
	for (int i = 0; i < 3; i++) {
		void **sp = (void **)(stacks[i] + sizeof(stacks[i]));

		*--sp = 0;
		*--sp = (void *)body;
		for (int r = 0; r < 6; r++)
			*--sp = (void *)(long)r;
		fib_sp[i] = sp;
	}
	for (int i = 0; i < 30; i++) {
		turn = i % 3;
		fiber_switch(&main_sp, fib_sp[turn]);
	}
	printf("fiber %ld\n", acc);
	return 0;
}
