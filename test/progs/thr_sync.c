// SPDX-License-Identifier: MIT
// BREAKS: mutexes, condition variables, barriers, reader-writer and spin locks, semaphores and once: their
// slow paths wait in the kernel, in libc's code.
// BUILD: cc -O2 -pthread
// PT_LONG: yes
#include <pthread.h>
#include <semaphore.h>

#include "check.h"

#define T 4
#define ROUNDS 300

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t bar;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t sem;
static int turn, onces;
static unsigned by_turn, table[64], spun, in_sem, last_in_barrier;

static void first(void)
{
	onces++;
}

static void *run(void *arg)
{
	int me = (int)(long)arg;
	unsigned a, b;

	pthread_once(&once, first);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&m);
		while (turn != me)
			pthread_cond_wait(&c, &m);
		by_turn = by_turn * 31 + me;
		turn = (turn + 1) % T;
		pthread_cond_broadcast(&c);
		pthread_mutex_unlock(&m);
		if (i % 8 == me) {
			pthread_rwlock_wrlock(&rw);
			for (int k = 0; k < 64; k++)
				table[k]++;
			pthread_rwlock_unlock(&rw);
		}
		pthread_rwlock_rdlock(&rw);
		a = table[i & 63];
		b = table[(i + 17) & 63];
		pthread_rwlock_unlock(&rw);
		CHECK(a == b);
		pthread_spin_lock(&spin);
		spun++;
		pthread_spin_unlock(&spin);
		while (sem_wait(&sem))
			;
		__atomic_fetch_add(&in_sem, 1, __ATOMIC_RELAXED);
		sem_post(&sem);
		if (i % 50 == 0 && pthread_barrier_wait(&bar) == PTHREAD_BARRIER_SERIAL_THREAD)
			last_in_barrier++;
	}
	return NULL;
}

int main(void)
{
	pthread_t t[T];

	pthread_spin_init(&spin, 0);
	pthread_barrier_init(&bar, NULL, T);
	sem_init(&sem, 0, 2);
	for (long i = 0; i < T; i++)
		CHECK(!pthread_create(&t[i], NULL, run, (void *)i));
	for (int i = 0; i < T; i++)
		CHECK(!pthread_join(t[i], NULL));
	printf("thr_sync %x %u %u %u %u %d\n", by_turn, table[5], spun, in_sem, last_in_barrier, onces);
	return 0;
}
