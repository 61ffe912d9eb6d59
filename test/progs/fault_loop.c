// SPDX-License-Identifier: MIT
// BREAKS: a decoder that ends such a trace at the last logged byte: thousands of records are missing.
// BUILD: cc -O2
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static void handler(int sig)
{
	_exit(sig == SIGSEGV ? 0 : 1);
}

/* bounds and index are computed, nothing in the loop is logged; v[i + 1] faults before v[i] is written */
__attribute__((noinline)) static void shift(volatile int *v, long n)
{
	for (long i = 0; i < n; i++)
		v[i] = v[i + 1];
}

int main(void)
{
	int *v = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (v == MAP_FAILED || mprotect((char *)v + 8192, 8192, PROT_NONE))
		return 2;
	signal(SIGSEGV, handler);
	shift(v, 4096);
	return 3;
}
