// SPDX-License-Identifier: MIT
// BREAKS: threads created and joined in turn, many thousand times: what a thread takes must be given back,
// thread ids come again. The number is the argument.
// BUILD: cc -O2 -pthread
// PT_LONG: yes
// THREADS: 20001
#include <pthread.h>

#include "check.h"

static void *run(void *arg)
{
	return (void *)(unsigned long)work((long)arg, 5);
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : simulated() ? 200 : 20000;
	unsigned long s = 0;
	pthread_t t;
	void *r;

	for (long i = 0; i < n; i++) {
		CHECK(!pthread_create(&t, NULL, run, (void *)i));
		CHECK(!pthread_join(t, &r));
		s = s * 3 + (unsigned long)r;
	}
	printf("thr_churn %lx\n", s);
	return 0;
}
