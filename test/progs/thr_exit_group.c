// SPDX-License-Identifier: MIT
// BREAKS: exit() by a thread while three others and main compute, each a hundred turns of 250 accesses at
// least: what they had logged is kept.
// BUILD: cc -O2 -pthread
// THREADS: 5
// ACCESSES: 100000
// STATUS: 7
#include <pthread.h>

#include "turns.h"

static void *leave(void *arg)
{
	(void)arg;
	for (int i = 0; i < 4; i++)
		while (turns[i] < 100)
			usleep(100);
	printf("thr_exit_group\n");
	exit(7);
}

int main(void)
{
	pthread_t t;

	for (long i = 0; i < 3; i++)
		CHECK(!pthread_create(&t, NULL, spin, (void *)i));
	CHECK(!pthread_create(&t, NULL, leave, NULL));
	spin((void *)3l);
	return 1;
}
