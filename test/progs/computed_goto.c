// SPDX-License-Identifier: MIT
// BREAKS: labels whose addresses are taken (threaded interpreters): every one is a leader, and the
// dispatch jumps share one table of code addresses.
// BUILD: cc -O2
// VARIANTS: O0 O3 clang nopie
#include <stdio.h>

static int run(const unsigned char *pc, long *stack)
{
	static const void *const labels[] = { &&push, &&add, &&mul, &&dup, &&jnz, &&dec, &&swap, &&halt };
	long *sp = stack;
	int steps = 0;
#define NEXT do { steps++; goto *labels[*pc++]; } while (0)
	NEXT;
push:	*sp++ = *pc++; NEXT;
add:	sp--; sp[-1] += sp[0]; NEXT;
mul:	sp--; sp[-1] *= sp[0]; NEXT;
dup:	sp[0] = sp[-1]; sp++; NEXT;
jnz:	if (sp[-1]) pc += (signed char)*pc; else pc++; NEXT;
dec:	sp[-1]--; NEXT;
swap:	{ long t = sp[-1]; sp[-1] = sp[-2]; sp[-2] = t; } NEXT;
halt:	return steps;
}

int main(void)
{
	static const unsigned char code[] = { 0, 1, 0, 40, /* loop: */ 6, 0, 3, 1, 6, 5, 4, (unsigned char)-7, 7 };
	long stack[16] = { 0 };
	int n = run(code, stack);

	printf("computed_goto %d %ld %ld\n", n, stack[0], stack[1]);
	return 0;
}
