/* SPDX-License-Identifier: MIT
 *
 * par.c - a loop over groups on several threads; each takes the next index
 */
#include <pthread.h>
#include "emit.h"
#include "scratch.h"

struct par {
	uint32_t next, n;
	void (*fn)(void *, uint32_t);
	void *arg;
};

static void *work(void *v)
{
	struct par *p = v;
	uint32_t i;

	while ((i = __atomic_fetch_add(&p->next, 1, __ATOMIC_RELAXED)) < p->n)
		p->fn(p->arg, i);
	scratch_end();
	return NULL;
}

void par_for(uint32_t n, int jobs, void (*fn)(void *arg, uint32_t i), void *arg)
{
	struct par p = {0, n, fn, arg};
	pthread_t t[64];
	int k = 0;

	while (k < jobs - 1 && k < 64 && !pthread_create(&t[k], NULL, work, &p))
		k++;
	work(&p);
	while (k)
		pthread_join(t[--k], NULL);
}
