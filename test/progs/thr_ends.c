// SPDX-License-Identifier: MIT
// BREAKS: the ways a thread ends: return, pthread_exit deep in calls, and the exit system call, which the
// library knows nothing of.
// BUILD: cc -O2 -pthread
// PT_LONG: yes
#include <linux/futex.h>
#include <pthread.h>

#include "check.h"

static int raw_done;

static void leave(int depth, unsigned v);
static void (*volatile deeper)(int depth, unsigned v) = leave;

static void leave(int depth, unsigned v)
{
	volatile char pad[64];

	pad[depth] = 1;
	if (!depth)
		pthread_exit((void *)(unsigned long)v);
	deeper(depth - 1, v + pad[depth]);
}

static void *run(void *arg)
{
	long n = (long)arg;
	unsigned v = work(n, 100);

	if (n % 3 == 0)
		return (void *)(unsigned long)v;
	if (n % 3 == 1)
		leave(9, v);
	__atomic_store_n(&raw_done, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &raw_done, FUTEX_WAKE, 1, NULL, NULL, 0);
	syscall(SYS_exit, 0);
	return NULL;
}

int main(void)
{
	unsigned long s = 0;
	pthread_t t;
	void *r;

	for (long i = 0; i < 9; i++) {
		raw_done = 0;
		CHECK(!pthread_create(&t, NULL, run, (void *)i));
		if (i % 3 == 2) {
			while (!__atomic_load_n(&raw_done, __ATOMIC_ACQUIRE))
				syscall(SYS_futex, &raw_done, FUTEX_WAIT, 0, NULL, NULL, 0);
			r = NULL; /* the kernel wakes the joiner, result or not */
			CHECK(!pthread_join(t, NULL));
		} else {
			CHECK(!pthread_join(t, &r));
		}
		s = s * 5 + (unsigned long)r;
	}
	printf("thr_ends %lx\n", s);
	return 0;
}
