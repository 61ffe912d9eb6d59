// SPDX-License-Identifier: MIT
// BREAKS: binary-search switches over sparse values, and several small tables in one function.
// BUILD: cc -O2
// VARIANTS: O0 O3 clang
#include <stdio.h>

__attribute__((noinline)) static int f(int c, int *hist)
{
	switch (c) {
	case -1000000: return hist[0]++;
	case -7: return hist[1]++;
	case 0: return hist[2]++;
	case 1: case 2: case 3: return hist[3] += c;
	case 'a': return hist[4]++;
	case 'b': return hist[5] += 2;
	case 'c': return hist[6] += 3;
	case 'd': return hist[7] += 4;
	case 'e': return hist[0] += 5;
	case 'f': return hist[1] += 6;
	case 1 << 20: return hist[2] += 7;
	case (1 << 20) + 1: return hist[3] += 8;
	case (1 << 20) + 2: return hist[4] += 9;
	case (1 << 20) + 3: return hist[5] += 10;
	case (1 << 20) + 4: return hist[6] += 11;
	case (1 << 20) + 5: return hist[7] += 12;
	case 0x7fffffff: return hist[0]--;
	}
	return -1;
}

int main(void)
{
	static const int in[] = { -1000000, -7, 0, 1, 2, 3, 'a', 'b', 'c', 'd', 'e', 'f', 'g',
				  1 << 20, (1 << 20) + 1, (1 << 20) + 2, (1 << 20) + 3,
				  (1 << 20) + 4, (1 << 20) + 5, (1 << 20) + 6, 0x7fffffff, 99 };
	int hist[8] = { 0 }, sum = 0;

	for (int r = 0; r < 10; r++) {
		for (unsigned i = 0; i < sizeof(in) / sizeof(in[0]); i++)
			sum += f(in[i], hist);
	}
	printf("jt_sparse %d %d %d\n", sum, hist[0], hist[7]);
	return 0;
}
