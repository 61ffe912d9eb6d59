// SPDX-License-Identifier: MIT
// BREAKS: detached threads free their own stack while they end, whoever runs on it; half of them detach
// themselves.
// BUILD: cc -O2 -pthread
// PT_LONG: yes
// THREADS: 65
#include <pthread.h>
#include <semaphore.h>

#include "check.h"

static sem_t done;
static unsigned sum;

static void *run(void *arg)
{
	long n = (long)arg;

	if (n & 1)
		CHECK(!pthread_detach(pthread_self()));
	__atomic_fetch_add(&sum, work(n, 200), __ATOMIC_RELAXED);
	sem_post(&done);
	return NULL;
}

int main(void)
{
	unsigned want = 0;
	pthread_attr_t a;
	pthread_t t;

	sem_init(&done, 0, 0);
	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	for (long i = 0; i < 64; i++) {
		CHECK(!pthread_create(&t, i & 1 ? NULL : &a, run, (void *)i));
		want += work(i, 200);
	}
	for (int i = 0; i < 64; i++)
		while (sem_wait(&done))
			;
	CHECK(sum == want);
	printf("thr_detached %x\n", sum);
	return 0;
}
