// SPDX-License-Identifier: MIT
// BREAKS: frames that the kernel did not make where they are: a handler's context, copied away, is returned to by
// rt_sigreturn by hand, several times over.
// BUILD: cc -O1
// SIGS: goes back to frames as they were, signals or not
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

static struct {
	char uc[304];
	char fp[16384] __attribute__((aligned(64)));
} kept __attribute__((aligned(64)));
static volatile int taken, returned;

static void handler(int sig, siginfo_t *si, void *ctx)
{
	ucontext_t *uc = ctx;

	(void)sig;
	(void)si;
	taken++;
	uc->uc_mcontext.gregs[REG_RIP] += 3;
	memcpy(kept.uc, uc, sizeof(kept.uc));
	memcpy(kept.fp, uc->uc_mcontext.fpregs, 512);
	/* the legacy area alone: no extended state follows */
	memset(kept.fp + 464, 0, 48);
	((ucontext_t *)kept.uc)->uc_flags &= ~1ul;
	((ucontext_t *)kept.uc)->uc_mcontext.fpregs = (void *)kept.fp;
}

static void back(void)
{
	__asm__ volatile("mov %0, %%rsp\n\tmov $15, %%eax\n\tsyscall" : : "r"(kept.uc) : "memory");
	__builtin_unreachable();
}

__attribute__((noinline)) static int point(void)
{
	__asm__ volatile("mov (%%rcx), %%rax"
			 :
			 : "c"(8l)
			 : "rax", "memory"); /* comes back once by itself, then by back() */
	if (++returned < 5)
		back();
	return returned;
}

int main(void)
{
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	int n;

	sigaction(SIGSEGV, &sa, NULL);
	n = point();
	printf("returned %d taken %d\n", n, taken);
	return 0;
}
