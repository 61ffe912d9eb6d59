// SPDX-License-Identifier: MIT
// BREAKS: accesses that cross a page or a cache line; the second page is the last mapped one.
// BUILD: cc -O2 -mavx2
#include <immintrin.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

int main(void)
{
	char *p = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned long s = 0;

	if (p == MAP_FAILED || mprotect(p + 8192, 4096, PROT_NONE))
		return 1;
	for (int i = 1; i < 8; i++) {
		*(volatile unsigned long *)(p + 4096 - i) = 0x0102030405060708 * i;
		s += *(volatile unsigned *)(p + 4096 - i / 2);
		s += *(volatile unsigned short *)(p + 4095);
	}
	for (int i = 1; i < 32; i += 6)
		_mm256_storeu_si256((__m256i *)(p + 4096 - i), _mm256_loadu_si256((__m256i *)(p + 4064 - i)));
	memmove(p + 4096 + 3, p + 4096 - 777, 4093);
	memset(p + 8192 - 100, 7, 100);
	s += strlen(strcpy(p + 4090, "crosses the page")) + p[8191];
	__asm__ volatile("lock incq %0" : "+m"(*(long *)(p + 4096 - 64 + 60)));
	printf("pagecross %lx\n", s);
	return 0;
}
