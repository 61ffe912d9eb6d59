// SPDX-License-Identifier: MIT
// BREAKS: pointers made by one thread and followed by another: what a thread loads, another has stored.
// BUILD: cc -O2 -pthread
// PT_LONG: yes
#include <pthread.h>

#include "check.h"

struct node {
	struct node *next, *tree[2];
	unsigned key;
};

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static struct node *queue, *root;
static int open_makers = 2;

static void *maker(void *arg)
{
	unsigned x = (unsigned)(long)arg;

	for (int i = 0; i < 400; i++) {
		struct node *n = calloc(1, sizeof(*n));

		x = x * 1664525u + 1013904223u;
		n->key = x;
		pthread_mutex_lock(&m);
		n->next = queue;
		queue = n;
		pthread_cond_signal(&c);
		pthread_mutex_unlock(&m);
	}
	pthread_mutex_lock(&m);
	open_makers--;
	pthread_cond_broadcast(&c);
	pthread_mutex_unlock(&m);
	return NULL;
}

static void *taker(void *arg)
{
	(void)arg;
	for (;;) {
		struct node *n, **p;

		pthread_mutex_lock(&m);
		while (!queue && open_makers)
			pthread_cond_wait(&c, &m);
		n = queue;
		if (!n) {
			pthread_mutex_unlock(&m);
			return NULL;
		}
		queue = n->next;
		for (p = &root; *p; p = &(*p)->tree[n->key > (*p)->key])
			;
		*p = n;
		pthread_mutex_unlock(&m);
	}
}

static unsigned sum(struct node *n)
{
	return n ? sum(n->tree[0]) + n->key + sum(n->tree[1]) : 0;
}

int main(void)
{
	pthread_t t[4];

	for (long i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, i < 2 ? maker : taker, (void *)(i + 1)));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(t[i], NULL));
	printf("thr_queue %x\n", sum(root));
	return 0;
}
