// SPDX-License-Identifier: MIT
// BREAKS: mappings that come, move and change under pointers: brk, mremap, MAP_FIXED over live memory, mprotect
// round trips, madvise that zeroes, hints that are no addresses, shared memory between a parent and a child.
// BUILD: cc -O2
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

#define PROT (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

static unsigned fold(const unsigned *p, int n)
{
	unsigned s = 0, at = 0;

	for (int i = 0; i < n; i++) {
		s = s * 31 + p[at];
		at = p[at] % n;
	}
	return s;
}

static void fill(unsigned *p, int n, unsigned seed)
{
	for (int i = 0; i < n; i++)
		p[i] = work(seed + i, 2);
}

int main(void)
{
	unsigned *a, *b, *sh, s = 0, *brk0 = sbrk(0);
	pid_t pid;

	CHECK(sbrk(65536) == brk0);
	fill(brk0, 64, 1);
	s += fold(brk0, 64);
	CHECK(!brk(brk0));
	a = mmap(NULL, 65536, PROT, ANON, -1, 0);
	CHECK(a != MAP_FAILED);
	fill(a, 256, 2);
	b = mremap(a, 65536, 1 << 20, MREMAP_MAYMOVE);
	CHECK(b != MAP_FAILED);
	s = s * 3 + fold(b, 256);
	CHECK(mmap(b, 4096, PROT, ANON | MAP_FIXED, -1, 0) == b);
	CHECK(b[5] == 0);
	fill(b, 256, 3);
	s = s * 3 + fold(b, 256);
	CHECK(!mprotect(b, 4096, PROT_READ));
	s = s * 3 + fold(b, 200);
	CHECK(!mprotect(b, 4096, PROT) && !madvise(b, 4096, MADV_DONTNEED) && b[7] == 0);
	sh = mmap(NULL, 4096, PROT, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(sh != MAP_FAILED);
	fill(sh, 64, 4);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		fill(sh, 64, 5);
		fill(b, 64, 5);
		_exit(0);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	s = s * 3 + fold(sh, 64) + fold(b, 64); /* the child's, and ours */
	CHECK(!munmap(b, 1 << 20));
	/* no address, so only the flag says where: on every machine below 2^47 */
	a = mmap((void *)-0x4fff0000l, 4096, PROT, ANON | MAP_32BIT, -1, 0);
	CHECK(a != MAP_FAILED);
	fill(a, 64, 6);
	s = s * 3 + fold(a, 64);
	printf("sys_memory %x\n", s);
	return 0;
}
