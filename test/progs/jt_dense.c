// SPDX-License-Identifier: MIT
// BREAKS: a dense jump table that is cloned too short, or whose cases are not leaders.
// BUILD: cc -O2
// VARIANTS: O0 O3 Os clang cet nopie stripped
#include <stdio.h>

static volatile unsigned seed = 12345;

__attribute__((noinline)) static unsigned op(unsigned kind, unsigned v, unsigned *mem)
{
	switch (kind) {
	case 0: return v + 1;
	case 1: mem[1] += v; return v;
	case 2: return v ^ mem[2];
	case 3: mem[3]--; return v * 3;
	case 4: return v >> 3;
	case 5: mem[v & 7] = v; return mem[5];
	case 6: return ~v;
	case 7: return v - mem[7];
	case 8: mem[0] ^= mem[1]; return mem[0];
	case 9: return v * v;
	case 10: return mem[v & 7];
	case 11: return v << 1 | v >> 31;
	default: return 0xdead;
	}
}

int main(void)
{
	unsigned mem[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, v = seed;

	for (int i = 0; i < 200; i++) {
		seed = seed * 1103515245 + 12345;
		v = op(seed >> 16 & 15, v, mem);
	}
	printf("jt_dense %u %u %u\n", v, mem[0], mem[5]);
	return 0;
}
