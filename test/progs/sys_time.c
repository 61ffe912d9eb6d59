// SPDX-License-Identifier: MIT
// BREAKS: the vDSO: clocks by its functions and by system calls agree and never go back, in two threads;
// getcpu, time, gettimeofday.
// BUILD: cc -O2 -pthread
// PT_LONG: yes
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/time.h>
#include <time.h>

#include "check.h"

static long ns(const struct timespec *t)
{
	return t->tv_sec * 1000000000l + t->tv_nsec;
}

static void *run(void *arg)
{
	static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME, CLOCK_MONOTONIC_RAW,
					    CLOCK_MONOTONIC_COARSE, CLOCK_THREAD_CPUTIME_ID };
	struct timespec a, b, c;
	struct timeval tv;
	unsigned cpu;

	for (int i = 0; i < 300; i++) {
		clockid_t k = clocks[i % 6];

		CHECK(!clock_gettime(k, &a) && !syscall(SYS_clock_gettime, k, &b) && !clock_gettime(k, &c));
		if (k != CLOCK_REALTIME) /* somebody may set it */
			CHECK(ns(&a) <= ns(&b) && ns(&b) <= ns(&c));
		CHECK(!gettimeofday(&tv, NULL) && time(NULL) >= tv.tv_sec - 1);
		CHECK(!getcpu(&cpu, NULL) && cpu < 65536);
	}
	return arg;
}

int main(void)
{
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, run, NULL));
	run(NULL);
	CHECK(!pthread_join(t, NULL));
	printf("sys_time\n");
	return 0;
}
