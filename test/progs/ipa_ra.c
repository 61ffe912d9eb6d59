// SPDX-License-Identifier: MIT
// BREAKS: -fipa-ra: the caller keeps values in caller-saved registers that the static callee happens not to
// touch; scratch registers chosen by the ABI alone are then live.
// BUILD: cc -O2 -fipa-ra -fno-inline
// VARIANTS: O3
#include <stdio.h>

static int hits[8];

__attribute__((noinline, noclone)) static int small(int x)
{
	return hits[x & 7] + x;
}

__attribute__((noinline, noclone)) static long caller(const int *p, const long *q, int n)
{
	long a = 1, b = 2, c = 3, d = 4;

	for (int i = 0; i < n; i++) {
		int t = small(p[i]);

		a += q[i] + t;
		b ^= q[n - i] * t;
		c += p[t & 7];
		d -= a & b;
		hits[i & 7] = c;
	}
	return a + b + c + d;
}

int main(void)
{
	int p[32];
	long q[33];

	for (int i = 0; i < 33; i++) {
		p[i & 31] = i * 3;
		q[i] = i - 16;
	}
	printf("ipa_ra %ld\n", caller(p, q, 32));
	return 0;
}
