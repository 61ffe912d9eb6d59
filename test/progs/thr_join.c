// SPDX-License-Identifier: MIT
// BREAKS: a second thread: it has a log, a start state and a stack of its own; eight, one after the
// other.
// BUILD: cc -O2 -pthread
// THREADS: 9
// ORACLE: yes
// VARIANTS: O0 clang
#include <pthread.h>

#include "check.h"

static void *run(void *arg)
{
	settle();
	return (void *)(unsigned long)work((long)arg, 60);
}

int main(void)
{
	pthread_t t;
	unsigned long s = 0;
	void *r;

	for (long i = 0; i < 8; i++) {
		CHECK(!pthread_create(&t, NULL, run, (void *)i));
		CHECK(!pthread_join(t, &r));
		CHECK((unsigned long)r == work(i, 60));
		s = s * 3 + (unsigned long)r;
	}
	printf("thr_join %lx\n", s);
	return 0;
}
