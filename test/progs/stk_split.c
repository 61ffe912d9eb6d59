// SPDX-License-Identifier: MIT
// BREAKS: split stacks: a function whose prologue finds too little stack calls __morestack, which makes a new
// one, calls the function's body there, and returns for it; in threads, too.
// BUILD: gcc -O2 -pthread -fsplit-stack
// PT_LONG: yes
#include <pthread.h>

#include "check.h"

static unsigned __attribute__((noinline)) deep(int n, unsigned v)
{
	volatile unsigned pad[200];

	for (int i = 0; i < 200; i += 20)
		pad[i] = v + i;
	if (!n)
		return v;
	v = deep(n - 1, v * 3 + pad[n % 10 * 20]);
	return v ^ pad[n * 7 % 10 * 20];
}

static void *run(void *arg)
{
	return (void *)(unsigned long)deep(600, (unsigned)(long)arg);
}

int main(void)
{
	unsigned long s = deep(300, 1);
	pthread_attr_t a;
	pthread_t t;
	void *r;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 65536);
	for (long i = 0; i < 2; i++) {
		CHECK(!pthread_create(&t, &a, run, (void *)i));
		CHECK(!pthread_join(t, &r));
		s = s * 3 + (unsigned long)r;
	}
	printf("stk_split %lx\n", s);
	return 0;
}
