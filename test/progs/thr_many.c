// SPDX-License-Identifier: MIT
// BREAKS: a thousand threads alive at once: memory of the log must not grow with their number.
// BUILD: cc -O2 -pthread
// PT_LONG: yes
// THREADS: 1001
#include <pthread.h>

#include "check.h"

#define N 1000
#define THREADS (simulated() ? 60 : N)

static pthread_barrier_t all;
static unsigned sum;

static void *run(void *arg)
{
	unsigned s;

	pthread_barrier_wait(&all); /* nobody ends before everybody has begun */
	s = work((long)arg, 20);
	__atomic_fetch_add(&sum, s, __ATOMIC_RELAXED);
	return NULL;
}

int main(void)
{
	static pthread_t t[N];
	pthread_attr_t a;
	unsigned want = 0;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 65536);
	pthread_barrier_init(&all, NULL, (unsigned)THREADS + 1);
	for (long i = 0; i < THREADS; i++) {
		CHECK(!pthread_create(&t[i], &a, run, (void *)i));
		want += work(i, 20);
	}
	pthread_barrier_wait(&all);
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(t[i], NULL));
	CHECK(sum == want);
	printf("thr_many %x\n", sum);
	return 0;
}
