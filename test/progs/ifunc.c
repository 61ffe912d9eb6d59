// SPDX-License-Identifier: MIT
// BREAKS: IFUNC: resolvers run during relocation, targets have no direct caller, calls go through the PLT.
// BUILD: cc -O2
// VARIANTS: nopie clang
#include <stdio.h>

static int table[16];

static int sum_a(int n)
{
	int s = 0;

	for (int i = 0; i < n; i++)
		s += table[i & 15];
	return s;
}

static int sum_b(int n)
{
	return n ? table[n & 15] + sum_b(n - 1) : 0;
}

__attribute__((used)) static int (*resolve(void))(int)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("sse2") ? sum_a : sum_b;
}

int sum(int n) __attribute__((ifunc("resolve")));

int main(void)
{
	int (*volatile p)(int) = sum;

	for (int i = 0; i < 16; i++)
		table[i] = i * i;
	printf("ifunc %d %d %d\n", sum(20), p(7), sum_b(5));
	return 0;
}
