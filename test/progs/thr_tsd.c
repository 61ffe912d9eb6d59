// SPDX-License-Identifier: MIT
// BREAKS: destructors of thread-specific data run while the thread ends, some set the value again; __thread
// variables differ per thread.
// BUILD: cc -O2 -pthread
// ORACLE: yes
#include <pthread.h>

#include "check.h"

static pthread_key_t key[4];
static __thread unsigned mine[16];
static unsigned total;
static int again;

static void gone(void *p)
{
	unsigned *v = p;

	total = total * 7 + *v + mine[*v & 15];
	free(v);
}

static void gone_again(void *p)
{
	total += 1000;
	if (again++ % 3 != 2)
		CHECK(!pthread_setspecific(key[3], p));
}

static void *run(void *arg)
{
	long n = (long)arg;

	settle();
	for (int i = 0; i < 16; i++)
		mine[i] = work(n * 16 + i, 10);
	for (int i = 0; i < 3; i++) {
		unsigned *v = malloc(sizeof(*v));

		*v = mine[i];
		pthread_setspecific(key[i], v);
	}
	pthread_setspecific(key[3], &again);
	return NULL;
}

int main(void)
{
	pthread_t t;

	for (int i = 0; i < 3; i++)
		CHECK(!pthread_key_create(&key[i], gone));
	CHECK(!pthread_key_create(&key[3], gone_again));
	for (long i = 0; i < 4; i++) {
		CHECK(!pthread_create(&t, NULL, run, (void *)i));
		CHECK(!pthread_join(t, NULL));
	}
	CHECK(again == 12 && mine[3] == 0);
	printf("thr_tsd %x\n", total);
	return 0;
}
