// SPDX-License-Identifier: MIT
// BREAKS: a program that gives itself another fs base for a while, as those do that switch between thread-local storages of
// their own: what is relative to fs is somewhere else then
// BUILD: cc -O2 -fno-stack-protector
#include <asm/prctl.h>
#include <stdio.h>
#include <sys/syscall.h>

static long other[2][64];
static long sum;

static long base(long how, void *p)
{
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(SYS_arch_prctl), "D"(how), "S"(p) : "rcx", "r11", "memory");
	return r;
}

static __attribute__((noinline)) void count(long n)
{
	__asm__ volatile("add %0, %%fs:64" : : "r"(n) : "memory");
	__asm__ volatile("mov %%fs:64, %0" : "=r"(n));
	sum += n;
}

/* by way of fs:0, as code that needs the address of something thread-local */
static __attribute__((noinline)) void count_at(long n)
{
	long *self;

	__asm__ volatile("mov %%fs:0, %0" : "=r"(self));
	self[9] += n;
	sum += self[9];
}

int main(void)
{
	void *old;

	if (base(ARCH_GET_FS, &old))
		return 1;
	for (int i = 0; i < 6; i++) {
		long *now = other[i & 1];

		now[0] = (long)now;
		if (base(ARCH_SET_FS, now))
			return 1;
		for (int n = 0; n < 5; n++) {
			count(n);
			count_at(n);
		}
		if (base(ARCH_SET_FS, old))
			return 1;
	}
	printf("%ld %ld %ld\n", sum, other[0][8], other[1][9]);
	return 0;
}
