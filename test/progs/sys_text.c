// SPDX-License-Identifier: MIT
// BREAKS: a program that has pages of its text read from the file again (MADV_DONTNEED), which is no change to it, and then seals them
// (mseal(2)). What the tracer wrote there must not be lost, nor be in the way when the trace ends later.
// BUILD: cc -O2 -pthread
// STATUS: 5
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "check.h"

#define NR_MSEAL 462

extern const char __ehdr_start[], __etext[];

static int cmp(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static unsigned sorted(void)
{
	int v[64];

	for (int i = 0; i < 64; i++)
		v[i] = (i * 37 + 11) & 63;
	qsort(v, 64, sizeof(int), cmp);
	return (unsigned)v[5] + work(3, 50);
}

static void *thread(void *arg)
{
	for (int i = 0; i < 20; i++)
		CHECK(sorted() == sorted());
	return arg;
}

int main(void)
{
	unsigned long from = (unsigned long)main & -4096ul;
	unsigned long size = (((unsigned long)__etext + 4095) & -4096ul) - from;
	unsigned want = sorted();
	pthread_t t;

	CHECK((unsigned long)__ehdr_start < from);
	for (int i = 0; i < 3; i++) {
		CHECK(!madvise((void *)from, size, MADV_DONTNEED));
		CHECK(sorted() == want);
	}
	/* and what is beside it: to the end of the image's read-only data */
	CHECK(!madvise((void *)from, size + 4096, MADV_DONTNEED) && sorted() == want);
	CHECK(madvise((void *)(from + 1), size, MADV_DONTNEED) == -1 && errno == EINVAL);
	if (syscall(NR_MSEAL, from, size, 0) == 0)
		CHECK(munmap((void *)from, size) == -1 && errno == EPERM);
	CHECK(sorted() == want);
	CHECK(!pthread_create(&t, NULL, thread, NULL) && !pthread_join(t, NULL));
	printf("sys_text %u\n", want);
	return 5;
}
