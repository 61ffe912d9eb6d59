// SPDX-License-Identifier: MIT
// BREAKS: code generated at run time: in writable and executable memory, rewritten in place at the same
// address, and in memory made executable by mprotect.
// PT_ENV: PTRACE_PT_RETC=0
// BUILD: cc -O2
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

int main(void)
{
	static const unsigned char load[] = { 0x8b, 0x07, 0x83, 0xc0, 0x01, 0xc3 }; /* mov (%rdi),%eax; add $1; ret */
	static const unsigned char store[] = { 0x89, 0x37, 0x8d, 0x46, 0x05, 0xc3 }; /* mov %esi,(%rdi); lea 5(%rsi) */
	unsigned char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int (*f)(int *, int) = (int (*)(int *, int))p, cell[2] = { 10, 20 }, s = 0;

	if (p == MAP_FAILED)
		return 1;
	for (int i = 0; i < 6; i++) {
		memcpy(p, i & 1 ? store : load, 6);
		s = s * 3 + f(&cell[i / 2 & 1], i);
	}
	mprotect(p, 4096, PROT_READ | PROT_WRITE);
	memcpy(p, load, 6);
	p[4] = 9;
	mprotect(p, 4096, PROT_READ | PROT_EXEC);
	s += f(cell, 0);
	printf("jit %d %d\n", s, cell[1]);
	return 0;
}
