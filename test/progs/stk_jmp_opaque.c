// SPDX-License-Identifier: MIT
// BREAKS: handlers that are left by siglongjmp for a function that cannot be moved, more often than any nesting goes:
// no traced code says that they are gone. Then ones within each other, which must not be taken for such.
// BUILD: cc -O2
// PT_LONG: yes
// VARIANTS: O0
#include <setjmp.h>
#include <signal.h>

#include "check.h"

static sigjmp_buf env;
static volatile int seen, never;

static void leave(int sig)
{
	seen += sig == SIGSEGV;
	siglongjmp(env, 1);
}

static void nest(int sig)
{
	unsigned before = work(seen, 3);

	if (++seen % 40)
		raise(sig);
	CHECK(before != 1);
}

// int n is not copied: what it does only the kernel knows
static int __attribute__((noinline)) faults(volatile int *null, volatile int n)
{
	volatile int i = 0;

	if (never)
		__asm__ volatile("int $0x81");
	for (; i < n; i++)
		if (!sigsetjmp(env, 1))
			work((unsigned)*null, 2);
	return i;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = leave };
	int n;

	CHECK(!sigaction(SIGSEGV, &sa, NULL));
	n = faults(NULL, 5000);
	sa.sa_handler = nest;
	sa.sa_flags = SA_NODEFER;
	CHECK(!sigaction(SIGUSR1, &sa, NULL));
	raise(SIGUSR1);
	n += faults(NULL, 100);
	printf("stk_jmp_opaque %d %d\n", n, seen);
	return 0;
}
