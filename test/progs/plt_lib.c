// SPDX-License-Identifier: MIT
// Used by plt_self.c: calls its own exported functions through its PLT.
#include "plt_lib.h"

static int table[16] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3 };

int lib_leaf(const int *p, int i)
{
	return p[i & 15];
}

int lib_hook(const int *p, int i)
{
	return p[i & 7] + 1;
}

int lib_other(const int *p, int i)
{
	return p[i * 3 & 15] - 1;
}

int lib_deep(const int *p, int n)
{
	return n ? lib_deep(p + (n & 1), n - 1) + lib_leaf(p, n) : *p;
}

/* a tail call through the PLT */
int lib_tail(int *p, int i)
{
	p[i & 3] += i;
	return lib_leaf(p, i);
}

static int fast(const int *p, int i)
{
	return p[i & 15] * 2;
}

static int (*pick(void))(const int *, int)
{
	return fast;
}

int lib_ifunc(const int *, int) __attribute__((ifunc("pick")));

/* returns what it is called back with: the PLT of the caller may not be what it was */
int lib_work(int n)
{
	int s = 0;

	for (int i = 0; i < n; i++) {
		table[i & 15] ^= i;
		s += lib_leaf(table, i) + lib_hook(table, i) + lib_deep(table, i & 3) + lib_tail(table, i) +
		     lib_ifunc(table, i);
	}
	return s;
}
