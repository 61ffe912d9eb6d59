/* SPDX-License-Identifier: MIT
 *
 * rough_prog - threads and processes that log a lot, for surroundings in which their log cannot be kept
 *
 *	rough_prog KILOTURNS [idle COUNT | gs COUNT]
 *
 * Three threads and main compute at the same time; a child in the middle of it does so with one thread more. What is
 * printed depends on all of it, and on nothing else. Exit status 42. First of all COUNT children are made: idle, all of which
 * are there at the same time; or, one after the other, such as use the gs base, which ends their traces.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 3
#define NODES 4096

static uint32_t next[NODES];
static long turns;

/* a chase through a table: each step is logged */
static void *chase(void *arg)
{
	uint32_t at = (uint32_t)(uintptr_t)arg, s = 0;

	for (long n = 0; n < turns; n++) {
		at = next[at];
		s = s * 31 + at;
	}
	return (void *)(uintptr_t)s;
}

static uint32_t all(uint32_t from, int threads)
{
	pthread_t t[THREADS];
	uint32_t s = 0;
	void *r;

	for (int i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, chase, (void *)(uintptr_t)(from + (uint32_t)i)))
			exit(1);
	s = (uint32_t)(uintptr_t)chase((void *)(uintptr_t)from);
	for (int i = 0; i < threads; i++) {
		if (pthread_join(t[i], &r))
			exit(1);
		s = s * 31 + (uint32_t)(uintptr_t)r;
	}
	return s;
}

static bool children(bool idle, int count)
{
	int made = 0, ok = 0, st, hold[2];
	char c;

	if (pipe(hold))
		return false;
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (!pid) {
			close(hold[1]);
			if (idle)
				_exit(read(hold[0], &c, 1) != 0);
			_exit(syscall(SYS_arch_prctl, 0x1001 /* ARCH_SET_GS */, &c) != 0);
		}
		made += pid > 0;
		if (!idle)
			ok += waitpid(pid, &st, 0) == pid && !st;
	}
	close(hold[1]);
	while (idle && wait(&st) > 0)
		ok += !st;
	close(hold[0]);
	return made == count && ok == count;
}

int main(int argc, char **argv)
{
	int status, fd[2];
	uint32_t s, t;
	pid_t pid;

	turns = argc > 1 ? atol(argv[1]) * 1000 : 0;
	if (argc == 4 && !children(!strcmp(argv[2], "idle"), atoi(argv[3])))
		return 4;
	if (turns < 1 || pipe(fd))
		return 2;
	for (uint32_t i = 0; i < NODES; i++)
		next[i] = (i * 1021 + 7) % NODES;
	s = all(1, THREADS);
	pid = fork();
	if (!pid) {
		t = all(9, 1);
		_exit(write(fd[1], &t, sizeof(t)) != sizeof(t));
	}
	s = s * 31 + all(17, THREADS);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status || read(fd[0], &t, sizeof(t)) != sizeof(t))
		return 3;
	printf("%08x\n", s * 31 + t);
	return 42;
}
