// SPDX-License-Identifier: MIT
// BREAKS: indirect calls through tables, structures and arguments; several targets at one site.
// BUILD: cc -O2
// VARIANTS: O0 clang cet nopie stripped
#include <stdio.h>

typedef int op(int a, int *m);
struct ops { const char *name; op *run; };

static int a_add(int a, int *m) { return m[0] += a; }
static int a_sub(int a, int *m) { return m[1] -= a; }
static int a_xor(int a, int *m) { return m[2] ^= a; }
static int a_idx(int a, int *m) { return m[a & 3]++; }
static op *volatile const table[] = { a_add, a_sub, a_xor, a_idx };
static const struct ops list[] = { { "add", a_add }, { "idx", a_idx }, { "xor", a_xor } };

__attribute__((noinline)) static int apply(op *f, int n, int *m)
{
	int s = 0;

	for (int i = 0; i < n; i++)
		s += f(i, m);
	return s;
}

int main(void)
{
	int m[4] = { 1, 2, 3, 4 }, s = 0;

	for (int i = 0; i < 40; i++)
		s += table[i * 7 & 3](i, m);
	for (int i = 0; i < 3; i++)
		s += apply(list[i].run, 5, m) + list[i].name[0];
	printf("calls_indirect %d %d\n", s, m[3]);
	return 0;
}
