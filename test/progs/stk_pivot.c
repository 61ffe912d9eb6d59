// SPDX-License-Identifier: MIT
// BREAKS: functions called on a stack on the heap by exchanging rsp, nested, with a libc callback and a
// longjmp back to the old stack; a frame that is entered by call and left on another stack.
// BUILD: cc -O2
// VARIANTS: clang
#include <setjmp.h>

#include "check.h"

long on_stack(void *top, long (*fn)(long), long arg);
__asm__(".text\n"
	".globl on_stack\n"
	".type on_stack, @function\n"
	"on_stack: .cfi_startproc\n"
	"push %rbp; mov %rsp, %rbp\n"
	"mov %rdi, %rsp; mov %rdx, %rdi\n"
	"call *%rsi\n"
	"mov %rbp, %rsp; pop %rbp; ret\n"
	".cfi_endproc\n"
	".size on_stack, . - on_stack\n");

static char *stack[3];
static jmp_buf env;

static int cmp(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static long leaf(long x)
{
	int v[40];

	for (int i = 0; i < 40; i++)
		v[i] = (int)(work(x + i, 3) & 0xfff);
	qsort(v, 40, sizeof(v[0]), cmp);
	return v[7] + x;
}

static long nest(long n)
{
	if (n == 2)
		return leaf(n);
	return on_stack(stack[n + 1] + 65536, nest, n + 1) * 3 + n;
}

static long away(long x)
{
	longjmp(env, (int)leaf(x));
}

int main(void)
{
	volatile long s = 0;
	int r;

	for (int i = 0; i < 3; i++)
		CHECK((stack[i] = aligned_alloc(4096, 65536)));
	for (volatile int i = 0; i < 10; i++) {
		s = s * 7 + on_stack(stack[0] + 65536, nest, 0);
		r = setjmp(env);
		if (!r)
			on_stack(stack[1] + 65536, away, i);
		s += r;
	}
	printf("stk_pivot %lx\n", s);
	return 0;
}
