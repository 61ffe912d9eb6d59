// SPDX-License-Identifier: MIT
// The libraries of ldr_ctor_thread.c.
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

static pthread_t thread;
static sem_t go, there;
static unsigned result;

static void *run(void *arg)
{
	unsigned x = 3, t[16] = { 0 };

#ifdef LATE
	while (sem_wait(&go)) /* not before somebody asks */
		;
#endif
	for (int i = 0; i < 200; i++) {
		x = x * 1664525u + 1013904223u;
		t[x >> 28] += x;
	}
	result = t[5];
	sem_post(&there);
	return arg;
}

__attribute__((constructor)) static void begin(void)
{
	sem_init(&go, 0, 0);
	sem_init(&there, 0, 0);
	if (pthread_create(&thread, NULL, run, NULL))
		abort();
}

unsigned ctor_result(void)
{
	sem_post(&go);
	while (sem_wait(&there))
		;
	return result;
}

__attribute__((destructor)) static void end(void)
{
	sem_post(&go);
	pthread_join(thread, NULL);
}
