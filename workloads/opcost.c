// SPDX-License-Identifier: MIT
/*
 * opcost - what single operations of the system cost, to be run natively and traced
 *
 *	opcost OPERATION COUNT
 *
 * Prints microseconds of wall time per operation, the least of five rounds of COUNT:
 *	syscall	 getppid(), by hand: libc keeps nothing of it
 *	thread	 pthread_create() of a function that returns, and join
 *	fork	 fork() of a child that ends at once, and wait
 *	spawn	 vfork() of a child that ends at once, and wait
 *	signal	 raise() with a handler that returns
 *	work	 COUNT thousand steps of a pointer chase in one thread  (per step of a thousand)
 *	work2	 the same in each of two threads
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 5
#define NODES 4096

static uint32_t next[NODES];
static volatile sig_atomic_t seen;
static volatile uint32_t sink; /* what nobody reads would not be computed */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void *nothing(void *arg)
{
	return arg;
}

static void handler(int sig)
{
	seen += sig != 0;
}

static void do_syscall(long n)
{
	while (n--)
		syscall(SYS_getppid);
}

static void do_thread(long n)
{
	pthread_t t;

	while (n--)
		if (pthread_create(&t, NULL, nothing, NULL) || pthread_join(t, NULL))
			exit(1);
}

static void do_fork(long n)
{
	int status;

	while (n--) {
		pid_t p = fork();

		if (p == 0)
			_exit(0);
		if (p < 0 || waitpid(p, &status, 0) != p || status)
			exit(1);
	}
}

static void do_spawn(long n)
{
	int status;

	while (n--) {
		pid_t p = vfork();

		if (p == 0)
			_exit(0);
		if (p < 0 || waitpid(p, &status, 0) != p || status)
			exit(1);
	}
}

static void do_signal(long n)
{
	struct sigaction a = {.sa_handler = handler};
	sig_atomic_t before = seen;

	sigaction(SIGUSR1, &a, NULL);
	for (long i = 0; i < n; i++)
		raise(SIGUSR1);
	if (seen - before != n)
		exit(1);
}

static void *chase(void *arg)
{
	uint32_t at = 0;

	for (long n = (long)(intptr_t)arg * 1000; n; n--)
		at = next[at];
	sink = at;
	return arg;
}

static void do_work(long n)
{
	chase((void *)n);
}

static void do_work2(long n)
{
	pthread_t t;

	if (pthread_create(&t, NULL, chase, (void *)n) || chase((void *)n) == (void *)-1 ||
	    pthread_join(t, NULL))
		exit(1);
}

static const struct {
	const char *name;
	void (*fn)(long n);
} ops[] = {{"syscall", do_syscall}, {"thread", do_thread}, {"fork", do_fork},  {"spawn", do_spawn},
	   {"signal", do_signal},   {"work", do_work},	   {"work2", do_work2}};

int main(int argc, char **argv)
{
	long n = argc == 3 ? atol(argv[2]) : 0;
	double best = 1e300;
	size_t k = 0;

	while (argc == 3 && k < sizeof(ops) / sizeof(ops[0]) && strcmp(ops[k].name, argv[1]))
		k++;
	if (n < 1 || k == sizeof(ops) / sizeof(ops[0])) {
		fprintf(stderr, "usage: opcost syscall|thread|fork|spawn|signal|work|work2 COUNT\n");
		return 2;
	}
	for (uint32_t i = 0; i < NODES; i++)
		next[i] = (i * 1021 + 7) % NODES;
	for (int r = 0; r < ROUNDS; r++) {
		double t = now();

		ops[k].fn(n);
		t = (now() - t) / (double)n;
		best = t < best ? t : best;
	}
	printf("%.3f\n", best);
	return 0;
}
