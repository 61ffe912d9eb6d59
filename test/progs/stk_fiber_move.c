// SPDX-License-Identifier: MIT
// BREAKS: fibers moved between threads: one begins on a thread, goes on on another, which never made the calls
// it returns through; thread-local variables are those of the thread it is on.
// BUILD: cc -O2 -pthread
// VARIANTS: clang
#include <pthread.h>

#include "check.h"
#include "fiber.h"

#define FIBERS 3
#define THREADS 3
#define ROUNDS 60

static _Alignas(16) char stacks[FIBERS][16384];
static void *sp[FIBERS];
static __thread void *home;
static __thread int me;
static int current; /* set before a switch, read at once after it */
static unsigned sum, by_thread[THREADS];
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int turn;

/* Not inlined: the address of a thread-local variable must not be kept over a switch. */
static void **__attribute__((noinline)) where_home(void)
{
	__asm__ volatile("" ::: "memory");
	return &home;
}
static int __attribute__((noinline)) who(void)
{
	__asm__ volatile("" ::: "memory");
	return me;
}

static unsigned recurse(int depth, unsigned v, int id)
{
	if (!depth) {
		by_thread[who()] += v & 7;
		fiber_switch(&sp[id], *where_home());
		return v + 1;
	}
	v = recurse(depth - 1, v * 7 + id, id);
	by_thread[who()]++;
	return v * 3;
}

static void body(void)
{
	int id = current;

	for (unsigned i = 0;; i++)
		sum = sum * 31 + recurse(i % 6, i, id);
}

static void *run(void *arg)
{
	me = (int)(long)arg;
	for (int r = 0; r < ROUNDS; r++) {
		pthread_mutex_lock(&m);
		while (turn % THREADS != me)
			pthread_cond_wait(&c, &m);
		current = turn % (FIBERS + 1) % FIBERS; /* never in step with the threads */
		fiber_switch(where_home(), sp[current]);
		turn++;
		pthread_cond_broadcast(&c);
		pthread_mutex_unlock(&m);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];

	for (int i = 0; i < FIBERS; i++)
		sp[i] = fiber_new(stacks[i], sizeof(stacks[i]), body);
	for (long i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, run, (void *)i));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(t[i], NULL));
	printf("stk_fiber_move %x %u %u %u\n", sum, by_thread[0], by_thread[1], by_thread[2]);
	return 0;
}
