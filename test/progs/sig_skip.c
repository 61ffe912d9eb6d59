// SPDX-License-Identifier: MIT
// BREAKS: handlers that repair what faulted: skip the instruction, do its work in the context, give its base
// register another value, make its page accessible, go on in another function. With r15 as base and as result,
// in a loop that keeps r15 in another register, with flags live across the fault.
// BUILD: cc -O2
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>

#define R(name) uc->uc_mcontext.gregs[REG_##name]

static enum { SKIP, EMULATE, BASE, BASE15, PAGE, ELSEWHERE } how;
static volatile int faults;
static char *page;
static long good[4] = {11, 22, 33, 44};

static long elsewhere(long a)
{
	return a * 3;
}

static void handler(int sig, siginfo_t *si, void *ctx)
{
	ucontext_t *uc = ctx;

	(void)sig;
	faults++;
	switch (how) {
	case SKIP:
		R(RIP) += 3;
		break;
	case EMULATE:
		R(RIP) += 3;
		R(RAX) = (long)si->si_addr;
		break;
	case BASE:
		R(RCX) = (long)good;
		break;
	case BASE15:
		R(R15) = (long)good;
		break;
	case PAGE:
		mprotect(page, 4096, PROT_READ | PROT_WRITE);
		break;
	case ELSEWHERE:
		R(RIP) = (long)elsewhere;
		R(RDI) = 14;
		break;
	}
}

static long load(long at, long old)
{
	__asm__ volatile("mov (%%rcx), %%rax" : "+a"(old), "+c"(at));
	return old;
}

static long load15(long at, long *flags)
{
	register long r15 __asm__("r15") = at;
	long got = 1, f;

	__asm__ volatile("cmp $2, %%rdx\n\tmov 8(%%r15), %%rax\n\tpushf\n\tpop %1\n\tmov %%rax, %%r15"
			 : "+a"(got), "=&r"(f), "+r"(r15)
			 : "d"(1l)
			 : "cc");
	*flags = f & 0x8d5;
	return r15 + got;
}

static long loop15(long at, long n)
{
	register long r15 __asm__("r15") = at;
	long sum = 0;

	__asm__ volatile("1:\tadd (%%r15), %0\n\tadd $8, %%r15\n\tdec %1\n\tjnz 1b"
			 : "+r"(sum), "+r"(n), "+r"(r15)
			 :
			 : "cc", "memory");
	return sum + r15;
}

__attribute__((noinline)) static long calls(long (*f)(long), long a)
{
	return f(a) + 1;
}

int main(void)
{
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	long flags, r;

	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaction(SIGSEGV, &sa, NULL);
	how = SKIP;
	for (int i = 0; i < 20; i++)
		printf("%ld ", load(i * 8, i));
	how = EMULATE;
	printf("\nemulated %ld\n", load(4088, 5));
	how = BASE;
	printf("base %ld\n", load(16, 5));
	how = BASE15;
	r = load15(24, &flags);
	printf("r15 %ld flags %lx\n", r, flags);
	r = loop15(32, 4);
	printf("loop %ld\n", r - (long)good);
	how = PAGE;
	page[5] = 1;
	page[6]++;
	printf("page %d %d\n", page[5], page[6]);
	how = ELSEWHERE;
	printf("elsewhere %ld\n", calls((long (*)(long))8, 2));
	printf("%d faults\n", faults);
	return 0;
}
