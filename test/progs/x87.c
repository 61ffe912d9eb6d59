// SPDX-License-Identifier: MIT
// BREAKS: x87 loads and stores of 2 to 10 bytes, environment and state images, BCD, FPU to integer
// conversions that feed addresses.
// BUILD: cc -O2
// VARIANTS: O0 clang
#include <stdio.h>
#include <stdlib.h>

static long double tab[16];

__attribute__((noinline)) static long double poly(long double x)
{
	long double s = 0;

	for (int i = 0; i < 16; i++)
		s = s * x + tab[i];
	return s;
}

int main(void)
{
	unsigned char env[28], state[108], bcd[10], hist[16] = { 0 };
	unsigned short cw, sw;
	long double v;

	for (int i = 0; i < 16; i++)
		tab[i] = 1.0L / (i + 1);
	v = poly(0.5L) + strtold("0.125", NULL);
	for (int i = 0; i < 16; i++)
		hist[(int)(tab[i] * 15)]++;
	__asm__ volatile("fldl2e; fbstp %0" : "=m"(bcd));
	__asm__ volatile("fnstenv %0; fldenv %0" : "+m"(env));
	__asm__ volatile("fnsave %0; frstor %0" : "+m"(state));
	__asm__ volatile("fnstcw %0; fldcw %0; fnstsw %1" : "=m"(cw), "=m"(sw));
	printf("x87 %.10Lf %d %d %x\n", v, hist[0], bcd[0], cw);
	return 0;
}
