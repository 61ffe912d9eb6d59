// SPDX-License-Identifier: MIT
/*
 * order_prog.c - threads that take turns at one array, under a lock: whatever the speed of each, slot n + 1 is
 * written after slot n. test/order.sh looks for that in the merged trace.
 *
 * With an argument it prints where the array is.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>

#define THREADS 4
#define SLOTS 4000

static uint64_t slot[SLOTS];
static int used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t pace;

static void *writer(void *arg)
{
	for (;;) {
		pthread_mutex_lock(&lock);
		if (used == SLOTS) {
			pthread_mutex_unlock(&lock);
			return arg;
		}
		slot[used] = (uint64_t)(uintptr_t)arg;
		used++;
		pthread_mutex_unlock(&lock);
		for (unsigned i = 0; i < 20 + 10 * (unsigned)(uintptr_t)arg; i++)
			pace = i;
		if (used % 5 == (int)(uintptr_t)arg)
			sched_yield(); /* often, and with one processor, too */
	}
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];
	int by[THREADS] = {0}, sum = 0;

	(void)argv;
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, writer, (void *)i))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < SLOTS; i++)
		by[slot[i]]++;
	for (int i = 0; i < THREADS; i++)
		sum += by[i];
	if (argc > 1)
		printf("%lx\n", (unsigned long)(uintptr_t)slot);
	else
		printf("%d slots\n", sum);
	return sum != SLOTS;
}
