// SPDX-License-Identifier: MIT
// The other preloaded library of ldr_preload.c: counts allocations, threads, and says so at the end.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned threads;
static unsigned long mallocs;

void *malloc(size_t n)
{
	static void *(*real)(size_t);

	if (!real)
		real = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
	__atomic_fetch_add(&mallocs, n >= 100 && n < 103, __ATOMIC_RELAXED);
	return real(n);
}

int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (!real)
		real = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(
			RTLD_NEXT, "pthread_create");
	threads++;
	return real(t, a, fn, arg);
}

static void *early(void *arg)
{
	return arg;
}

__attribute__((constructor)) static void begin(void)
{
	pthread_t t;

	if (!pthread_create(&t, NULL, early, NULL))
		pthread_join(t, NULL);
	setenv("LDR_OTHER", "7", 1);
}

__attribute__((destructor)) static void end(void)
{
	printf("ldr_other %u threads %lu mallocs\n", threads, mallocs);
	fflush(stdout);
}
