/* SPDX-License-Identifier: MIT
 *
 * step_prog.c - what step_sig interrupts: between two SIGURGs, calls through PLTs
 *
 * The handler finds registers that only this function uses and a position in a file; the function
 * finds them as it left them. Exit status 0 if all is well.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>
#include "progs/plt_lib.h"

#define MAGIC 0x1234567890abcdefl
static volatile int signals, bad;
static long pid;

static void handler(int sig, siginfo_t *si, void *ctx)
{
	const greg_t *r = ((ucontext_t *)ctx)->uc_mcontext.gregs;
	Dl_info i;

	(void)sig;
	(void)si;
	signals++;
	bad |= !dladdr((void *)r[REG_RIP], &i) || r[REG_R15] != MAGIC || r[REG_R12] != ~MAGIC;
}

static int calls(int *table)
{
	register long r12 __asm__("r12") = ~MAGIC, r15 __asm__("r15") = MAGIC;
	long r; /* kill(2) */
	int s;

	__asm__ volatile("syscall"
			 : "=a"(r), "+r"(r12), "+r"(r15)
			 : "0"(62l), "D"(pid), "S"((long)SIGURG)
			 : "rcx", "r11", "memory");
	s = lib_tail(table, 5);
	__asm__ volatile("" : "+r"(r12), "+r"(r15));
	s += lib_hook(table, 2);
	__asm__ volatile("syscall"
			 : "=a"(r), "+r"(r12), "+r"(r15)
			 : "0"(62l), "D"(pid), "S"((long)SIGURG)
			 : "rcx", "r11", "memory");
	bad |= r12 != ~MAGIC || r15 != MAGIC;
	return s;
}

int main(void)
{
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	static int table[16];

	pid = getpid();
	sigaction(SIGUSR1, &sa, NULL);
	if (lib_tail(table, 1) + lib_hook(table, 1) != 3) /* slots are bound */
		return 2;
	if (calls(table) != 1) {
		printf("wrong result\n");
		return 3;
	}
	if (bad)
		printf("wrong state in the handler, or after it\n");
	return bad ? 4 : signals;
}
