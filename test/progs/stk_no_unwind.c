// SPDX-License-Identifier: MIT
// BREAKS: code without unwind tables: nothing says where functions begin but symbols and calls; with threads,
// callbacks from libc and longjmp out of them.
// BUILD: cc -O2 -pthread -fno-asynchronous-unwind-tables -fno-unwind-tables -fomit-frame-pointer
// VARIANTS: O0 stripped clang
#include <pthread.h>
#include <setjmp.h>

#include "check.h"

static __thread jmp_buf out;
static __thread unsigned calls;

static int cmp(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	if (++calls == 400)
		longjmp(out, 1);
	return x < y ? -1 : x > y;
}

static void *run(void *arg)
{
	unsigned v[100], x = (unsigned)(long)arg, s = 0;
	volatile int rounds = 0;

	if (!setjmp(out)) {
		for (;;) {
			for (int i = 0; i < 100; i++)
				v[i] = x = x * 1664525u + 1013904223u;
			rounds++;
			qsort(v, rounds < 2 ? 50 : 100, sizeof(v[0]), cmp);
		}
	}
	for (int i = 0; i < 50; i++)
		s = s * 31 + work(i + rounds, 3);
	return (void *)(unsigned long)s;
}

int main(void)
{
	unsigned long s = (unsigned long)run((void *)1l);
	pthread_t t;
	void *r;

	for (long i = 0; i < 2; i++) {
		calls = 0;
		CHECK(!pthread_create(&t, NULL, run, (void *)(i + 2)));
		CHECK(!pthread_join(t, &r));
		s = s * 3 + (unsigned long)r;
	}
	printf("stk_no_unwind %lx\n", s);
	return 0;
}
