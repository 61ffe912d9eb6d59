// SPDX-License-Identifier: MIT
// BREAKS: another preloaded library, before ours and after it, which takes over functions of libc and has a
// constructor that makes a thread.
// BUILD: cc -O2 -pthread
// LIB: libldr_other.so ldr_other.c -pthread
// PRELOAD: $OUT/libldr_other.so
#include <pthread.h>

#include "check.h"

static void *run(void *arg)
{
	char *volatile p = malloc((size_t)(long)arg + 100);

	memset(p, 1, (size_t)(long)arg + 100);
	free(p);
	return (void *)(unsigned long)work((long)arg, 100);
}

int main(void)
{
	unsigned long s = 0;
	pthread_t t;
	void *r;

	for (long i = 0; i < 3; i++) {
		CHECK(!pthread_create(&t, NULL, run, (void *)i));
		CHECK(!pthread_join(t, &r));
		s = s * 3 + (unsigned long)r;
	}
	printf("ldr_preload %lx %d\n", s, atoi(getenv("LDR_OTHER") ? getenv("LDR_OTHER") : "-1"));
	return 0;
}
