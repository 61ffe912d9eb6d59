// SPDX-License-Identifier: MIT
// The library of ldr_lazy.c.
#include <stdarg.h>
#include <stdlib.h>

unsigned l0(unsigned v)
{
	return (unsigned)abs((int)v - 7); /* itself through a PLT, perhaps */
}

unsigned l1(unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f, unsigned g, unsigned h)
{
	return l0(a) + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8;
}

double l2(double a, double b, double c, double d, double e, double f, double g, double h)
{
	return a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8;
}

unsigned l3(int n, ...)
{
	unsigned s = 0;
	va_list ap;

	va_start(ap, n);
	while (n--)
		s = s * 10 + va_arg(ap, unsigned);
	va_end(ap);
	return s;
}

__float128 l4(__float128 v)
{
	return v * 3;
}
