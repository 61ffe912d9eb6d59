// SPDX-License-Identifier: MIT
// BREAKS: restartable sequences: libc's registration is the program's, in every thread; a critical section by
// hand commits where nobody is preempted within it, and its abort handler is reached where it is.
// BUILD: cc -O2 -pthread
// PT_LONG: yes
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/rseq.h>

#include "check.h"

static unsigned long aborts;

static struct rseq *area(void)
{
	return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

/* *p += v in a critical section; false: it was aborted */
static int __attribute__((noinline)) add_rseq(unsigned long *p, unsigned long v)
{
	__asm__ goto("lea 9f(%%rip), %%rax\n"
		     "mov %%rax, %0\n"
		     "1: mov %1, %%rax\n"
		     "add %2, %%rax\n"
		     "mov %%rax, %1\n" /* the commit */
		     "2: jmp 5f\n"
		     ".long 0x53053053\n" /* RSEQ_SIG: before the abort handler */
		     "4: jmp %l[aborted]\n"
		     ".pushsection __rseq_cs, \"aw\"\n"
		     ".balign 32\n"
		     "9: .long 0, 0; .quad 1b, 2b - 1b, 4b\n"
		     ".popsection\n"
		     "5:\n"
		     :
		     : "m"(area()->rseq_cs), "m"(*p), "r"(v)
		     : "rax", "memory", "cc"
		     : aborted);
	return 1;
aborted:
	return 0;
}

static void *run(void *arg)
{
	unsigned long sum = 0, n = simulated() ? 2000 : 20000;

	CHECK(area()->cpu_id < 65536 && area()->cpu_id_start < 65536);
	/* another registration is refused: there is one */
	CHECK(syscall(SYS_rseq, area(), 32, 0, RSEQ_SIG) == -1 && errno == EBUSY);
	for (unsigned long i = 0; i < n; i++) {
		while (!add_rseq(&sum, i))
			__atomic_fetch_add(&aborts, 1, __ATOMIC_RELAXED);
		if (i % 5000 == 0)
			sched_yield();
	}
	CHECK(sum == (n - 1) * n / 2);
	return arg;
}

int main(void)
{
	pthread_t t[3];

	if (!__rseq_size)
		SKIP("sys_rseq", "libc registered none");
	run(NULL);
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_create(&t[i], NULL, run, NULL));
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_join(t[i], NULL));
	printf("sys_rseq %d\n", aborts < 10000);
	return 0;
}
