// SPDX-License-Identifier: MIT
// check.h - what the thr_, proc_, stk_, ldr_ and sys_ programs share
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// A program that finds itself wrong says where and ends at once, also from a thread or a child.
#define CHECK(x)                                                                                             \
	do {                                                                                                 \
		if (!(x)) {                                                                                  \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #x, errno);            \
			fflush(stderr);                                                                      \
			_exit(99);                                                                           \
		}                                                                                            \
	} while (0)

// The line for what this machine does not allow; the drivers count it.
#define SKIP(name, why)                                                                                      \
	do {                                                                                                 \
		printf("%s SKIPPED: %s\n", name, why);                                                       \
		return 0;                                                                                    \
	} while (0)

// Work whose addresses depend on its data: one seed, one result, and what is between differs for each.
static unsigned __attribute__((noinline, unused)) work(unsigned x, int n)
{
	unsigned t[64] = { 0 }, s = 0;

	for (int i = 0; i < n; i++) {
		x = x * 1664525u + 1013904223u;
		t[x >> 26] += x ^ t[x >> 20 & 63];
	}
	for (int i = 0; i < 64; i++)
		s = s * 31 + t[i];
	return s;
}

// Under the simulator of Intel PT (pt.sh), which is slow, and which /proc tells of.
static int __attribute__((unused)) simulated(void)
{
	return getenv("PTSIM") != NULL;
}

// In threads of programs that the oracle follows (ORACLE: yes): gives whoever made this thread the time to wait
// for it. What a thread does must not depend on who is faster.
static void __attribute__((unused)) settle(void)
{
	struct timespec t = { 0, 30000000 };

	nanosleep(&t, NULL);
}

#endif
