// SPDX-License-Identifier: MIT
// BREAKS: rsp moved by a run-time amount: rbp frames, alignment with `and $-32,%rsp`, stack probes.
// BUILD: cc -O2
// VARIANTS: O0 clang
#include <alloca.h>
#include <stdio.h>
#include <string.h>

__attribute__((noinline)) static int fill(int n, int m)
{
	int vla[n][m], s = 0;
	char *a = alloca(n * m + 3);
	_Alignas(64) int aligned[16];

	memset(a, n, n * m);
	for (int i = 0; i < n; i++) {
		for (int j = 0; j < m; j++)
			vla[i][j] = a[i * m + j] * j;
	}
	for (int i = 0; i < 16; i++)
		aligned[i] = vla[i % n][i % m];
	for (int i = 0; i < n; i++) {
		char *again = alloca(16);

		again[i & 15] = i;
		s += vla[i][m - 1] + again[i & 15] + aligned[i & 15];
	}
	return s + ((unsigned long)aligned & 63);
}

__attribute__((noinline)) static int big(int n)
{
	volatile char page[9000];

	page[n] = 1;
	return n ? big(n - 3000) + page[n] : page[0];
}

int main(void)
{
	int s = 0;

	for (int i = 1; i < 8; i++)
		s += fill(i, 9 - i);
	printf("alloca_vla %d %d\n", s, big(6000));
	return 0;
}
