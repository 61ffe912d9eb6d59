// SPDX-License-Identifier: MIT
// four.h - four threads that run the same function with their number; what they return makes one result
#ifndef FOUR_H
#define FOUR_H

#include <pthread.h>

#include "check.h"

static unsigned long four_threads(void *(*run)(void *))
{
	unsigned long s = 0;
	pthread_t t[4];
	void *r;

	for (long i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, run, (void *)i));
	for (int i = 0; i < 4; i++) {
		CHECK(!pthread_join(t[i], &r));
		s = s * 3 + (unsigned long)r;
	}
	return s;
}

#endif
