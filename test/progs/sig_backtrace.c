// SPDX-License-Identifier: MIT
// BREAKS: a backtrace in a handler: through its frame, the signal's, and what was interrupted; unwinders know
// none but original addresses.
// BUILD: cc -O1 -fno-omit-frame-pointer -rdynamic
// VARIANTS: O2
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

static int total;

static void handler(int sig, siginfo_t *si, void *ctx)
{
	ucontext_t *uc = ctx;
	void *pc[32];
	int n = backtrace(pc, 32);
	Dl_info i;

	(void)si;
	printf("signal %d, %d frames\n", sig, n);
	for (int k = 0; k < n; k++) {
		memset(&i, 0, sizeof(i));
		dladdr(pc[k], &i);
		printf("  %s+%lx\n", i.dli_sname ? i.dli_sname : "-",
		       (unsigned long)((char *)pc[k] - (char *)i.dli_fbase));
	}
	total += n;
	if (sig == SIGSEGV)
		uc->uc_mcontext.gregs[REG_RIP] += 3;
}

__attribute__((noinline)) long leaf(long *p)
{
	long v = 3;

	__asm__ volatile("mov (%%rcx), %%rax" : "+a"(v) : "c"(p));
	return v;
}

__attribute__((noinline)) long middle(long *p)
{
	return leaf(p) + 1;
}

__attribute__((noinline)) long raises(int sig)
{
	return raise(sig) + 1;
}

int main(void)
{
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	void *warm[2];

	backtrace(warm, 2); /* loads the unwinder */
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	total += middle((long *)8);
	total += raises(SIGUSR1);
	printf("%d\n", total);
	return 0;
}
