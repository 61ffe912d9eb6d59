// SPDX-License-Identifier: MIT
// BREAKS: direct and indirect tail calls: a jump that leaves the function, and a `ret` that returns
// from another function than was called.
// BUILD: cc -O2
// VARIANTS: clang cet Os
#include <stdio.h>

typedef long fn(long n, long acc, long *mem);
static fn even, odd;
static fn *volatile table[2] = { even, odd };

__attribute__((noinline)) static long even(long n, long acc, long *mem)
{
	mem[n & 3] += acc;
	if (!n)
		return acc;
	return odd(n - 1, acc + mem[1], mem);
}

__attribute__((noinline)) static long odd(long n, long acc, long *mem)
{
	mem[n & 3] ^= n;
	if (n <= 0)
		return -acc;
	return table[n % 3 == 0](n - 1, acc * 3, mem);
}

int main(void)
{
	long mem[4] = { 1, 2, 3, 4 };
	long r = even(300, 7, mem);

	printf("tailcall %ld %ld\n", r, mem[2]);
	return 0;
}
