// SPDX-License-Identifier: MIT
// BREAKS: lazy binding: the first call of each function goes through the resolver, which jumps to what it has
// found with every register as it was; several threads make the first call at once.
// BUILD: cc -O2 -pthread -Wl,-rpath,$ORIGIN -Wl,-z,lazy -L$OUT -lldr_lazy
// LIB: libldr_lazy.so ldr_lazy_plug.c -Wl,-z,lazy
// ENV: LD_BIND_NOW=1
#include <pthread.h>

#include "check.h"

unsigned l0(unsigned), l1(unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned);
double l2(double, double, double, double, double, double, double, double);
unsigned l3(int, ...);
__float128 l4(__float128);

static pthread_barrier_t all;

static void *run(void *arg)
{
	unsigned n = (unsigned)(long)arg, s = 0;

	pthread_barrier_wait(&all);
	for (int i = 0; i < 3; i++) {
		s = s * 31 + l0(n) + l1(n, 2, 3, 4, 5, 6, 7, 8);
		s += (unsigned)l2(n, 1, 2, 3, 4, 5, 6, 7) + l3(3, n, 5u, 6u) + (unsigned)l4(n);
	}
	return (void *)(unsigned long)s;
}

int main(void)
{
	unsigned long s = 0;
	pthread_t t[4];
	void *r;

	pthread_barrier_init(&all, NULL, 4);
	for (long i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, run, (void *)i));
	for (int i = 0; i < 4; i++) {
		CHECK(!pthread_join(t[i], &r));
		s = s * 3 + (unsigned long)r;
	}
	printf("ldr_lazy %lx\n", s);
	return 0;
}
