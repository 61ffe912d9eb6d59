// SPDX-License-Identifier: MIT
// BREAKS: threads that wait by spinning, without a system call: a thread that stops for anything of ours
// (a full log) must not stop those that it waits for.
// BUILD: cc -O2 -pthread
#include <pthread.h>
#include <sched.h>

#include "check.h"

#define T 3
#define ROUNDS 2000

static unsigned turn;
static unsigned long sum, spins;

static void *run(void *arg)
{
	unsigned me = (unsigned)(long)arg;
	unsigned long mine = 0;

	for (unsigned r = 0; r < ROUNDS; r++) {
		unsigned tries = 0;

		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) % T != me) {
			__asm__ volatile("lock orl $0, %0" : "+m"(turn));
			mine++;
			if (++tries > 2000) /* fewer processors than threads */
				sched_yield();
		}
		sum = sum * 3 + me + r;
		__asm__ volatile("lock addl $1, %0" : "+m"(turn) : : "memory");
	}
	__atomic_fetch_add(&spins, mine, __ATOMIC_RELAXED);
	return NULL;
}

int main(void)
{
	pthread_t t[T];

	for (long i = 0; i < T; i++)
		CHECK(!pthread_create(&t[i], NULL, run, (void *)i));
	for (int i = 0; i < T; i++)
		CHECK(!pthread_join(t[i], NULL));
	CHECK(turn == T * ROUNDS);
	printf("thr_spin %lx\n", sum);
	return 0;
}
