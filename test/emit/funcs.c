/* SPDX-License-Identifier: MIT
 *
 * funcs.c - functions of the kinds compilers make, for unit_emit.c: each f_* takes two numbers
 * and returns one, whatever runs it
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t u64;
u64 tab[64];

u64 f_loop(u64 a, u64 b)
{
	u64 s = b;

	for (u64 i = 0; i < (a & 1023); i++)
		s = s * 31 + tab[(s ^ i) & 63]++;
	return s;
}

u64 f_fib(u64 a, u64 b)
{
	a &= 15;
	return a < 2 ? a + (b & 1) : f_fib(a - 1, b) + f_fib(a - 2, b);
}

static __attribute__((noinline)) u64 step(u64 op, u64 x)
{
	switch (op) {
	case 0:
		return x + 1;
	case 1:
		return x * 3;
	case 2:
		return x ^ 0x5555;
	case 3:
		return x >> 1;
	case 4:
		return f_fib(x & 7, x);
	case 5:
		return x - 9;
	case 6:
		return ~x;
	case 7:
		return x << 3;
	case 8:
		return x / 7;
	default:
		return x;
	}
}

u64 f_switch(u64 a, u64 b)
{
	for (int i = 0; i < 40; i++)
		b = step((a >> i) & 15, b);
	return b;
}

static int cmp(const void *x, const void *y)
{
	u64 a = *(const u64 *)x, b = *(const u64 *)y;

	return a < b ? -1 : a > b;
}

u64 f_qsort(u64 a, u64 b)
{
	u64 v[50], s = 0;

	for (int i = 0; i < 50; i++)
		v[i] = (a += b * 2862933555777941757ull + 3037000493ull) >> 20;
	qsort(v, 50, sizeof(*v), cmp);
	for (int i = 0; i < 50; i++)
		s = s * 17 + v[i];
	return s;
}

static jmp_buf env;
static __attribute__((noinline)) void jump(int n)
{
	if (n)
		longjmp(env, n);
}

u64 f_setjmp(u64 a, u64 b)
{
	volatile u64 c = 0;
	int r = setjmp(env);

	c += r + b;
	if (r < 5)
		jump(r + 1 + (a & 1));
	return c;
}

static __attribute__((noinline)) u64 va(int n, ...)
{
	va_list l;
	u64 s = 0;

	va_start(l, n);
	while (n--)
		s = s * 3 + va_arg(l, u64);
	va_end(l);
	return s;
}

u64 f_varargs(u64 a, u64 b)
{
	return va(9, a, b, a ^ b, a + b, a - b, a * b, a | b, a & b, a << 1);
}

u64 f_string(u64 a, u64 b)
{
	char x[64], y[64];

	snprintf(x, sizeof(x), "%llx-%llu", (unsigned long long)a, (unsigned long long)b);
	memset(y, 'z', sizeof(y));
	memcpy(y + 3, x, strlen(x) + 1);
	return strtoull(y + 3, NULL, 16) + strlen(y) + (u64)strcmp(x, y + 3);
}

static u64 add(u64 x)
{
	return x + 5;
}
static u64 mul(u64 x)
{
	return x * 5;
}
static u64 (*const ops[])(u64) = {add, mul};

u64 f_pointer(u64 a, u64 b)
{
	for (int i = 0; i < 30; i++)
		b = ops[(a >> i) & 1](b);
	return b;
}

u64 f_double(u64 a, u64 b)
{
	double x = (double)(int)a, s = 0;

	for (u64 i = 1; i < (b & 255) + 2; i++)
		s += x / i;
	return (u64)(int64_t)(s / 1e4);
}

u64 f_goto(u64 a, u64 b)
{
	static const void *const l[] = {&&l0, &&l1, &&l2, &&l3};
	int n = 0;

next:
	if (n++ > 30)
		return b;
	goto *l[(a >> n) & 3];
l0:
	b += 3;
	goto next;
l1:
	b = f_loop(b & 7, b);
	goto next;
l2:
	b ^= b >> 3;
l3:
	b *= 7;
	goto next;
}
