// SPDX-License-Identifier: MIT
// BREAKS: cancellation: at a cancellation point (sem_wait, read), asynchronously in the middle of a loop, and
// with it disabled; the handlers run in reverse order. libc does it by a signal whose handler unwinds.
// BUILD: cc -O2 -pthread
// PT_LONG: yes
#include <pthread.h>
#include <semaphore.h>

#include "check.h"

static sem_t ready, never;
static int pipe_fd[2];
static volatile unsigned long spins;
static int order[8], norder;

static void note(void *arg)
{
	order[norder++] = (int)(long)arg;
}

static void *deferred(void *arg)
{
	pthread_cleanup_push(note, (void *)1l);
	pthread_cleanup_push(note, (void *)2l);
	sem_post(&ready);
	if (arg) {
		char c;

		(void)!read(pipe_fd[0], &c, 1);
	} else {
		sem_wait(&never);
	}
	CHECK(!"reached");
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *async(void *arg)
{
	(void)arg;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	pthread_cleanup_push(note, (void *)3l);
	sem_post(&ready);
	for (;;)
		spins++;
	pthread_cleanup_pop(0);
	return NULL;
}

static void *disabled(void *arg)
{
	(void)arg;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	sem_post(&ready);
	sem_wait(&never);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	pthread_cleanup_push(note, (void *)4l);
	pthread_testcancel();
	CHECK(!"reached");
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancel(void *(*fn)(void *), void *arg)
{
	pthread_t t;
	void *r;

	CHECK(!pthread_create(&t, NULL, fn, arg));
	sem_wait(&ready);
	if (fn == async)
		while (!spins)
			;
	CHECK(!pthread_cancel(t));
	if (fn == disabled)
		sem_post(&never);
	CHECK(!pthread_join(t, &r));
	CHECK(r == PTHREAD_CANCELED);
}

int main(void)
{
	sem_init(&ready, 0, 0);
	sem_init(&never, 0, 0);
	CHECK(!pipe(pipe_fd));
	cancel(deferred, NULL);
	cancel(deferred, (void *)1l);
	cancel(async, NULL);
	cancel(disabled, NULL);
	printf("thr_cancel");
	for (int i = 0; i < norder; i++)
		printf(" %d", order[i]);
	printf("\n");
	return norder != 6;
}
