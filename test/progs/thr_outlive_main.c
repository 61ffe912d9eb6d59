// SPDX-License-Identifier: MIT
// BREAKS: main ends by pthread_exit, two threads go on; the last one to end ends the process.
// BUILD: cc -O2 -pthread
// PT_LONG: yes
#include <pthread.h>

#include "check.h"

static pthread_t first, second;

static void *two(void *arg)
{
	unsigned long s = (unsigned long)arg;
	void *r;

	CHECK(!pthread_join(first, &r));
	s += (unsigned long)r;
	printf("thr_outlive_main %lx\n", s + work(2, 300));
	return NULL; /* the last one: exit(0) */
}

static void *one(void *arg)
{
	void *r;

	CHECK(!pthread_join((pthread_t)arg, &r)); /* main */
	CHECK(!pthread_create(&second, NULL, two, r));
	return (void *)(unsigned long)work(1, 300);
}

int main(void)
{
	CHECK(!pthread_create(&first, NULL, one, (void *)pthread_self()));
	pthread_exit((void *)(unsigned long)work(0, 300));
}
