// SPDX-License-Identifier: MIT
// BREAKS: 32-bit displacements: far offsets both ways, negative, absolute addresses (no-pie), and
// pointers far outside the object they address into.
// BUILD: cc -O2
// VARIANTS: nopie clang
#include <stdio.h>
#include <stdlib.h>

struct big { char pad[0x123456]; int x; char pad2[0x200000]; long y; };
static char bss[1 << 22];

__attribute__((noinline)) static long get(struct big *b, long i)
{
	b->x += i;
	b->y ^= b->x;
	return b->y + ((long *)((char *)b - 0x7ffff8))[(0x7ffff8 >> 3) + i];
}

__attribute__((noinline)) static long low(char *end)
{
	return *(int *)(end - 0x2fff0) + *(int *)(end - 0x80) + *(end - 0x81);
}

int main(void)
{
	struct big *b = malloc(sizeof(*b));
	long s = 0;

	if (!b)
		return 1;
	b->x = b->y = 1;
	for (long i = 0; i < 4; i++)
		((long *)b)[i] = i;
	for (long i = 0; i < 4; i++)
		s += get(b, i);
	bss[sizeof(bss) - 0x2fff0] = 3;
	bss[3000000] = 4;
	s += low(bss + sizeof(bss)) + bss[3000000];
	printf("disp32 %ld\n", s);
	free(b);
	return 0;
}
