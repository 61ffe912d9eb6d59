// SPDX-License-Identifier: MIT
// BREAKS: threads the program never made: libc's helper for SIGEV_THREAD timers makes one for each expiry,
// from a thread with signals blocked.
// BUILD: cc -O2 -pthread
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>

#include "check.h"

static sem_t fired;
static unsigned result;

static void expired(union sigval v)
{
	result = work((unsigned)v.sival_int, 100);
	sem_post(&fired);
}

int main(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_THREAD, .sigev_notify_function = expired };
	struct itimerspec once = { .it_value.tv_nsec = 1000000 };
	unsigned long s = 0;
	timer_t t;

	sem_init(&fired, 0, 0);
	for (int i = 0; i < 3; i++) {
		ev.sigev_value.sival_int = i;
		CHECK(!timer_create(CLOCK_MONOTONIC, &ev, &t));
		CHECK(!timer_settime(t, 0, &once, NULL));
		while (sem_wait(&fired))
			;
		CHECK(result == work(i, 100));
		CHECK(!timer_delete(t));
		s = s * 3 + result;
	}
	printf("thr_timer %lx\n", s);
	return 0;
}
