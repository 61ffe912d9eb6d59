// SPDX-License-Identifier: MIT
// BREAKS: terabytes of memory that is reserved, readable and writable, with a page here and there that holds something, as
// sanitizers and collectors of garbage have them, when the start state of an image is taken: at the first thread, and where a
// signal ends it. Pointers are followed through those pages, what was never touched is zero.
// BUILD: cc -O2 -pthread
// THREADS: 3
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>

#include "check.h"

#define SIZE (16ul << 40)
#define STEP (SIZE / 3001) /* no multiple of a page: not each on a page's first bytes */

static char *all;

static unsigned long **slot(unsigned long i)
{
	return (unsigned long **)(all + i * STEP / 8 * 8);
}

/* each slot has the address of the next one; what is between them is zero */
static void *run(void *arg)
{
	unsigned long **p = slot(0), n = 0;

	for (; *p; p = (unsigned long **)*p, n++)
		n += *(unsigned long *)((char *)p + STEP / 16 * 8) != 0;
	*(unsigned long *)(all + SIZE - 8 - (unsigned long)arg * 8) = n;
	return (void *)n;
}

int main(void)
{
	pthread_t t;
	void *n;

	all = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (all == MAP_FAILED)
		SKIP("sys_sparse", "no address space");
	for (unsigned long i = 0; i < 3000; i++)
		*slot(i) = (unsigned long *)slot(i + 1);
	for (long i = 0; i < 2; i++) {
		CHECK(!pthread_create(&t, NULL, run, (void *)i));
		CHECK(!pthread_join(t, &n));
		CHECK((unsigned long)n == 3000);
	}
	CHECK(!munmap(all, SIZE));
	printf("sys_sparse %lu\n", (unsigned long)n);
	return 0;
}
