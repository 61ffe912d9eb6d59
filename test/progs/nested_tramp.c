// SPDX-License-Identifier: MIT
// BREAKS: code on the stack: gcc's trampolines for nested functions (executable stack, mov/mov/jmp *r11), with
// the static chain in r10 across the entry.
// PT_ENV: PTRACE_PT_RETC=0
// BUILD: gcc -O1 -Wno-trampolines
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static int apply(int (*f)(int), int n)
{
	int s = 0;

	while (n--)
		s += f(n);
	return s;
}

int main(void)
{
	int calls = 0, weights[4] = { 1, 10, 100, 1000 };
	int f(int x) { calls++; return weights[x & 3]; }

	printf("nested_tramp %d", apply(f, 10));
	printf(" %d\n", calls);
	return 0;
}
