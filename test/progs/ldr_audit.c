// SPDX-License-Identifier: MIT
// BREAKS: an auditing library in its own namespace: the loader tells it of every object and every binding, and
// each call through a PLT enters and leaves by it.
// BUILD: cc -O2 -Wl,-rpath,$ORIGIN -Wl,-z,lazy -L$OUT -lldr_lazy
// PT_LONG: yes
// LIB: libldr_lazy.so ldr_lazy_plug.c -Wl,-z,lazy
// LIB: libldr_audit.so ldr_audit_plug.c
// ENV: LD_AUDIT=$OUT/libldr_audit.so
#include "check.h"

unsigned l0(unsigned), l1(unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned);
double l2(double, double, double, double, double, double, double, double);

int main(void)
{
	unsigned s = 0;

	for (int i = 0; i < 5; i++)
		s = s * 31 + l0(i) + l1(i, 2, 3, 4, 5, 6, 7, 8) + (unsigned)l2(i, 1, 2, 3, 4, 5, 6, 7);
	printf("ldr_audit %x\n", s);
	return 0;
}
