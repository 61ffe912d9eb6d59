// SPDX-License-Identifier: MIT
// BREAKS: a process that ends while threads of it wait for a processor, longer than one waits for threads that do not come: where
// they are is known all the same. Its end takes as long without a tracer, as they have to be killed.
// BUILD: cc -O2 -pthread
// STATUS: 4
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "turns.h"

#define BUSY 3
#define BUSY_MS 1500

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void *idle(void *arg)
{
	struct sched_param p = {0};

	CHECK(!sched_setscheduler(0, SCHED_IDLE, &p)); // runs where nobody else wants to
	return spin(arg);
}

static void busy(volatile unsigned *go)
{
	long t;

	while (!*go)
		usleep(100);
	for (t = now_ms(); now_ms() - t < BUSY_MS;)
		for (unsigned i = 0; i < 100000; i++)
			__asm__ volatile("");
	exit(0);
}

int main(void)
{
	volatile unsigned *go = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cpu_set_t all, one;
	int st, status[BUSY + 1], n = 0;
	pthread_t t;

	CHECK(go != MAP_FAILED);
	CHECK(!sched_getaffinity(0, sizeof(all), &all));
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	CHECK(!sched_setaffinity(0, sizeof(one), &one));
	for (int i = 0; i <= BUSY; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid)
			continue;
		if (i < BUSY)
			busy(go);
		for (long k = 0; k < 2; k++)
			CHECK(!pthread_create(&t, NULL, idle, (void *)k));
		for (int k = 0; k < 2; k++)
			while (turns[k] < 2)
				usleep(100);
		*go = 1;
		usleep(50000);
		exit(3);
	}
	while (wait(&st) > 0) {
		CHECK(WIFEXITED(st));
		status[n++] = WEXITSTATUS(st);
	}
	CHECK(n == BUSY + 1 && status[0] + status[1] + status[2] + status[3] == 3);
	printf("thr_starved\n");
	return 4;
}
