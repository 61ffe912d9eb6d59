// SPDX-License-Identifier: MIT
// BREAKS: threads made by threads, six deep; the maker waits in one tree and has ended in the other.
// BUILD: cc -O2 -pthread
// PT_LONG: yes
// THREADS: 15
// ORACLE: yes
#include <pthread.h>

#include "check.h"

static pthread_t last[7];
static unsigned sum[7];

static void *deep(void *arg)
{
	long n = (long)arg;
	unsigned s;
	pthread_t t;
	void *r;

	settle();
	s = work(n, 60);
	if (n < 6) {
		CHECK(!pthread_create(&t, NULL, deep, (void *)(n + 1)));
		CHECK(!pthread_join(t, &r));
		s += (unsigned)(unsigned long)r;
	}
	return (void *)(unsigned long)s;
}

static void *relay(void *arg)
{
	long n = (long)arg;

	settle();
	sum[n] = work(n, 60);
	if (n < 6)
		CHECK(!pthread_create(&last[n + 1], NULL, relay, (void *)(n + 1)));
	return NULL;
}

int main(void)
{
	unsigned s = 0, want = 0;
	pthread_t t;
	void *r;

	CHECK(!pthread_create(&t, NULL, deep, (void *)0));
	CHECK(!pthread_join(t, &r));
	CHECK(!pthread_create(&last[0], NULL, relay, (void *)0));
	for (int i = 0; i < 7; i++) {
		CHECK(!pthread_join(last[i], NULL)); /* its end: last[i + 1] is there */
		s += sum[i];
		want += work(i, 60);
	}
	CHECK(s == want && s == (unsigned)(unsigned long)r);
	printf("thr_nested %x\n", s);
	return 0;
}
