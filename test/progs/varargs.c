// SPDX-License-Identifier: MIT
// BREAKS: the variadic prologue: al decides by a branch whether xmm0-7 are stored; register save area,
// overflow area, va_copy.
// BUILD: cc -O2
// VARIANTS: O0 clang
#include <stdarg.h>
#include <stdio.h>

__attribute__((noinline)) static double sum(const char *kinds, ...)
{
	va_list ap, again;
	double s = 0;

	va_start(ap, kinds);
	va_copy(again, ap);
	for (const char *k = kinds; *k; k++)
		s += *k == 'd' ? va_arg(ap, double) : *k == 'l' ? va_arg(ap, long) : va_arg(ap, int);
	s += *kinds == 'd' ? va_arg(again, double) : va_arg(again, int);
	va_end(again);
	va_end(ap);
	return s;
}

int main(void)
{
	char buf[128];
	double s = sum("iiii", 1, 2, 3, 4) + sum("dddddddddd", 1., 2., 3., 4., 5., 6., 7., 8., 9., 10.) +
		   sum("idlidlidlidl", 1, 2., 3l, 4, 5., 6l, 7, 8., 9l, 10, 11., 12l);

	snprintf(buf, sizeof(buf), "%d %s %.3f %ld %c %x", 1, "two", 3.0, 4l, '5', 6);
	printf("varargs %.1f %s\n", s, buf);
	return 0;
}
