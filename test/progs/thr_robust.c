// SPDX-License-Identifier: MIT
// BREAKS: a thread ends holding robust mutexes: the kernel walks its list and hands them on; the list's head
// must be the one the library registered.
// BUILD: cc -O2 -pthread
#define _GNU_SOURCE
#include <pthread.h>

#include "check.h"

static pthread_mutex_t m[3];

static void *dies(void *arg)
{
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_mutex_lock(&m[i]));
	return arg;
}

int main(void)
{
	pthread_mutexattr_t a;
	pthread_t t;
	int dead = 0;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	for (int i = 0; i < 3; i++)
		pthread_mutex_init(&m[i], &a);
	CHECK(!pthread_create(&t, NULL, dies, NULL));
	CHECK(!pthread_join(t, NULL));
	for (int i = 0; i < 3; i++) {
		dead += pthread_mutex_lock(&m[i]) == EOWNERDEAD;
		CHECK(!pthread_mutex_consistent(&m[i]) && !pthread_mutex_unlock(&m[i]));
		CHECK(!pthread_mutex_lock(&m[i]));
	}
	printf("thr_robust %d\n", dead);
	return 0;
}
