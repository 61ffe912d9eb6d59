// SPDX-License-Identifier: MIT
// BREAKS: prefetches of null, unmapped and non-canonical addresses are legal and are kind P, not loads; a
// tracer that touches the address crashes.
// BUILD: cc -O2
#include <stdio.h>

static const unsigned long wild[] = { 0, 1, 0xfff, 0x7fffffffffff, 0x800000000000, 0x8000000000000000, ~0ul };

int main(void)
{
	int n = 0;

	for (unsigned i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
		__asm__ volatile("prefetcht0 (%0); prefetcht1 64(%0); prefetcht2 -64(%0); prefetchnta (%0,%0)"
				 :: "r"(wild[i]));
		__builtin_prefetch((const void *)wild[i], 1);
		n++;
	}
	__asm__ volatile("clflush %0" :: "m"(wild[3]));
	printf("prefetch_wild %d\n", n);
	return 0;
}
