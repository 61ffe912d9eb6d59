// SPDX-License-Identifier: MIT
// BREAKS: thread-local storage of a library that was opened after the threads began: it is allocated at first
// use in each thread, by __tls_get_addr.
// BUILD: cc -O2 -pthread -Wl,-rpath,$ORIGIN
// LIB: libthr_tls_plug.so thr_tls_plug.c
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

#include "check.h"

static sem_t begun, open_now, done;
static unsigned (*plug)(unsigned);
static unsigned out[4];

static void *run(void *arg)
{
	long n = (long)arg;

	sem_post(&begun);
	while (sem_wait(&open_now))
		;
	for (int i = 0; i < 5; i++)
		out[n] = plug(n + i);
	sem_post(&done);
	return NULL;
}

int main(void)
{
	pthread_t t[4];
	unsigned s = 0;
	void *h;

	sem_init(&begun, 0, 0);
	sem_init(&open_now, 0, 0);
	sem_init(&done, 0, 0);
	for (long i = 0; i < 4; i++) {
		CHECK(!pthread_create(&t[i], NULL, run, (void *)i));
		while (sem_wait(&begun))
			;
	}
	h = dlopen("libthr_tls_plug.so", RTLD_NOW);
	CHECK(h);
	plug = (unsigned (*)(unsigned))dlsym(h, "tls_plug");
	CHECK(plug);
	for (int i = 0; i < 4; i++) {
		sem_post(&open_now);
		while (sem_wait(&done))
			;
	}
	for (int i = 0; i < 4; i++) {
		CHECK(!pthread_join(t[i], NULL));
		s += out[i]; /* in whatever order the threads were woken */
	}
	CHECK(plug(1) == 1 + 100);
	CHECK(!dlclose(h));
	printf("thr_tls_dl %u\n", s);
	return 0;
}
