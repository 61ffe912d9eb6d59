// SPDX-License-Identifier: MIT
// BREAKS: setjmp and longjmp in four threads at the same time, each to its own frames, and out of libc's
// callbacks (qsort, bsearch).
// BUILD: cc -O2 -pthread
// PT_LONG: yes
#include <pthread.h>
#include <setjmp.h>

#include "four.h"

static __thread jmp_buf env[4];
static __thread unsigned calls;

static int cmp(const void *a, const void *b)
{
	if (++calls % 37 == 0)
		longjmp(env[calls & 3], (int)calls);
	return memcmp(a, b, sizeof(int));
}

static void *run(void *arg)
{
	volatile unsigned x = (unsigned)(long)arg + 1;
	volatile unsigned s = 0;
	int v[64];
	volatile int turns = simulated() ? 20 : 200;

	for (volatile int i = 0; i < turns; i++) {
		int r;

		for (int k = 0; k < 64; k++)
			v[k] = (int)(x = x * 1664525u + 1013904223u);
		if ((r = setjmp(env[0])) || (r = setjmp(env[1])) || (r = setjmp(env[2])) || (r = setjmp(env[3]))) {
			s = s * 31 + (unsigned)r;
			x += s;
			continue;
		}
		qsort(v, 64, sizeof(v[0]), cmp);
		s += (unsigned)v[3];
	}
	return (void *)(unsigned long)s;
}

int main(void)
{
	printf("stk_jmp_threads %lx\n", four_threads(run));
	return 0;
}
