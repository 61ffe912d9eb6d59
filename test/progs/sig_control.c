// SPDX-License-Identifier: MIT
// BREAKS: SIGFPE, SIGILL, SIGTRAP and SIGBUS as control flow, a program's own int3.
// BUILD: cc -O1
// SIGS: sets the trap flag
// PT_UNTRACED: 30
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>

#define R(name) uc->uc_mcontext.gregs[REG_##name]

static sigjmp_buf out;
static volatile int n[65], code[65], at_insn;
static const unsigned char *trap_at;

static void handler(int sig, siginfo_t *si, void *ctx)
{
	ucontext_t *uc = ctx;

	n[sig]++;
	code[sig] = si->si_code;
	switch (sig) {
	case SIGFPE:
		at_insn += si->si_addr == (void *)R(RIP);
		R(RCX) = 7; /* and once more */
		break;
	case SIGILL:
		at_insn += si->si_addr == (void *)R(RIP);
		R(RIP) += 2;
		R(RAX) += 1000;
		break;
	case SIGTRAP:
		trap_at = (void *)R(RIP);
		break;
	case SIGBUS:
		siglongjmp(out, 3);
	}
}

static long divide(long a, long b)
{
	long q, r;

	__asm__ volatile("cqo\n\tidiv %%rcx" : "=a"(q), "=&d"(r) : "0"(a), "c"(b) : "cc");
	return q * 100 + r;
}

static long illegal(long a)
{
	__asm__ volatile("ud2\n\tadd $1, %%rax" : "+a"(a) : : "cc");
	return a;
}

static long trap(long a)
{
	__asm__ volatile("int3\n\tadd $5, %%rax" : "+a"(a) : : "cc");
	return a;
}

int main(void)
{
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	int fd = memfd_create("empty", 0);
	volatile char *p;

	sigaction(SIGFPE, &sa, NULL);
	sigaction(SIGILL, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	/* The oracle steps by SIGTRAPs. One that meets a blocked SIGTRAP resets its action: no blocking here */
	sa.sa_flags |= SA_NODEFER;
	sigaction(SIGTRAP, &sa, NULL);
	for (int i = 0; i < 5; i++)
		printf("%ld %ld %ld ", divide(100 + i, i % 2), illegal(i), trap(i));
	printf("\ntrap %d\n", trap_at && trap_at[-1] == 0xcc);
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	switch (sigsetjmp(out, 1)) {
	case 0:
		printf("%d\n", p[10]);
		break;
	case 3:
		printf("bus\n");
	}
	printf("fpe %d %d ill %d %d trap %d %d bus %d %d at %d\n", n[SIGFPE], code[SIGFPE], n[SIGILL],
	       code[SIGILL], n[SIGTRAP], code[SIGTRAP], n[SIGBUS], code[SIGBUS], at_insn);
	return 0;
}
