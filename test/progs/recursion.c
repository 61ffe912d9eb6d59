// SPDX-License-Identifier: MIT
// BREAKS: recursion that is not tail recursion: register saves per level, mutual cycles in the call graph.
// BUILD: cc -O2
// SIGS: its calls differ further up the stack than a signal tells of
// VARIANTS: O0 O3 Os clang
#include <stdio.h>

static int calls;

__attribute__((noinline)) static int ackermann(int m, int n)
{
	calls++;
	if (!m)
		return n + 1;
	if (!n)
		return ackermann(m - 1, 1);
	return ackermann(m - 1, ackermann(m, n - 1));
}

__attribute__((noinline)) static void hanoi(int n, int *from, int *to, int *via, int *pegs)
{
	if (!n)
		return;
	hanoi(n - 1, from, via, to, pegs);
	--*from;
	++*to;
	pegs[3] += from - to;
	hanoi(n - 1, via, to, from, pegs);
}

int main(void)
{
	int pegs[4] = { 7, 0, 0, 0 };
	int a = ackermann(2, 5);

	hanoi(7, &pegs[0], &pegs[2], &pegs[1], pegs);
	printf("recursion %d %d %d %d\n", a, calls, pegs[2], pegs[3]);
	return 0;
}
