// SPDX-License-Identifier: MIT
// BREAKS: synchronous signals: a fault repaired by the handler, a fault skipped by changing rip in the
// context, registers changed in it, an alternate stack, nesting.
// BUILD: cc -O1
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

static char *page;
static volatile int faults, nested;

static void on_segv(int sig, siginfo_t *si, void *ctx)
{
	ucontext_t *uc = ctx;

	(void)sig;
	faults++;
	if (si->si_addr >= (void *)page && (char *)si->si_addr < page + 4096) {
		mprotect(page, 4096, PROT_READ | PROT_WRITE);
		return;
	}
	uc->uc_mcontext.gregs[REG_RIP] += 3; /* mov (%rcx), %rax */
	uc->uc_mcontext.gregs[REG_RAX] = 77;
}

static void on_usr(int sig)
{
	nested += sig == SIGUSR1 ? 1 : 100;
	if (sig == SIGUSR1)
		raise(SIGUSR2);
}

int main(void)
{
	static char alt[32768];
	stack_t ss = { .ss_sp = alt, .ss_size = sizeof(alt) };
	struct sigaction sa = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	long got = 0;

	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaltstack(&ss, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	sa = (struct sigaction){ .sa_handler = on_usr };
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	page[100] = 5;
	page[101]++;
	__asm__ volatile("mov (%%rcx), %%rax" : "=a"(got) : "c"(8l));
	raise(SIGUSR1);
	printf("signals %d %d %ld %d\n", faults, nested, got, page[101]);
	return 0;
}
