// SPDX-License-Identifier: MIT
// BREAKS: anything of ours on an alternate stack of the least size, and what the kernel says of it meanwhile.
// BUILD: cc -O2 -Wl,-z,now
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/mman.h>

static char *page;
static size_t size;
static volatile int on, off, seen_flags, round;
static sigjmp_buf out;

static void handler(int sig)
{
	char here;
	stack_t s;

	*(&here > page && &here < page + size ? &on : &off) += 1;
	sigaltstack(NULL, &s);
	seen_flags |= s.ss_flags;
	if (sig == SIGUSR2)
		siglongjmp(out, 1);
}

__attribute__((noinline)) static int down(int n)
{
	volatile char room[512];

	room[0] = n;
	return n > 40000 ? n : down(n + 1) + room[0];
}

static void segv(int sig)
{
	handler(sig);
	siglongjmp(out, 2);
}

int main(void)
{
	struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	stack_t ss;

	/* the kernel's least, and what the handlers' own frames take; unmapped pages around it */
	size = getauxval(AT_MINSIGSTKSZ) + 1024;
	page = mmap(NULL, 8 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	page += 4096;
	mprotect(page, (size + 4095) & ~4095ul, PROT_READ | PROT_WRITE);
	ss = (stack_t){.ss_sp = page, .ss_size = size};
	if (sigaltstack(&ss, NULL))
		return 1;
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	sa.sa_handler = segv;
	sigaction(SIGSEGV, &sa, NULL);
	raise(SIGUSR1);
	printf("on %d off %d flags %d\n", on, off, seen_flags);
	for (round = 0; round < 20; round++)
		if (!sigsetjmp(out, 1))
			raise(SIGUSR2);
	printf("on %d off %d flags %d\n", on, off, seen_flags);
	if (!sigsetjmp(out, 1))
		on += down(0); /* the stack overflows */
	sigaltstack(NULL, &ss);
	printf("on %d off %d flags %d, now %d\n", on, off, seen_flags, ss.ss_flags);
	return 0;
}
