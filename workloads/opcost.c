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
 *	chase	 COUNT thousand steps of a pointer chase in one thread (per step of a thousand): all of it is logged
 *	chase2	 the same in each of two threads
 *	grid	 COUNT thousand points of a five-point smoothing in one thread: nothing is logged
 *	grid2	 the same in each of two threads
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
#define SIDE 64

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

static void *grid(void *arg)
{
	double a[SIDE][SIDE] = {{1}}, b[SIDE][SIDE] = {{0}};

	for (long n = (long)(intptr_t)arg * 1000; n > 0; n -= (SIDE - 2) * (SIDE - 2)) {
		for (int i = 1; i < SIDE - 1; i++)
			for (int j = 1; j < SIDE - 1; j++)
				b[i][j] = 0.2 *
					  (a[i][j] + a[i][j - 1] + a[i][j + 1] + a[i - 1][j] + a[i + 1][j]);
		memcpy(a, b, sizeof(a));
	}
	sink = (uint32_t)a[SIDE / 2][SIDE / 2];
	return arg;
}

static void twice(void *(*fn)(void *), long n)
{
	pthread_t t;

	if (pthread_create(&t, NULL, fn, (void *)n) || fn((void *)n) == (void *)-1 || pthread_join(t, NULL))
		exit(1);
}

static void do_chase(long n)
{
	chase((void *)n);
}

static void do_chase2(long n)
{
	twice(chase, n);
}

static void do_grid(long n)
{
	grid((void *)n);
}

static void do_grid2(long n)
{
	twice(grid, n);
}

static const struct {
	const char *name;
	void (*fn)(long n);
} ops[] = {{"syscall", do_syscall}, {"thread", do_thread}, {"fork", do_fork},
	   {"spawn", do_spawn},	    {"signal", do_signal}, {"chase", do_chase},
	   {"chase2", do_chase2},   {"grid", do_grid},	   {"grid2", do_grid2}};

int main(int argc, char **argv)
{
	long n = argc == 3 ? atol(argv[2]) : 0;
	double best = 1e300;
	size_t k = 0;

	while (argc == 3 && k < sizeof(ops) / sizeof(ops[0]) && strcmp(ops[k].name, argv[1]))
		k++;
	if (n < 1 || k == sizeof(ops) / sizeof(ops[0])) {
		fprintf(stderr,
			"usage: opcost syscall|thread|fork|spawn|signal|chase|chase2|grid|grid2 COUNT\n");
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
