// SPDX-License-Identifier: MIT
// BREAKS: threads with the smallest stack there is, all of it used up to some hundred bytes: nothing of ours
// may live on it.
// BUILD: cc -O2 -pthread -Wl,-z,now
#define _GNU_SOURCE
#include <alloca.h>
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>

#include "check.h"

static void *run(void *arg)
{
	pthread_attr_t a;
	char *here, *low;
	void *base;
	size_t size, guard;
	unsigned s = 0;

	CHECK(!pthread_getattr_np(pthread_self(), &a));
	CHECK(!pthread_attr_getstack(&a, &base, &size));
	CHECK(!pthread_attr_getguardsize(&a, &guard)); /* it is part of what is called the stack */
	pthread_attr_destroy(&a);
	here = (char *)__builtin_frame_address(0);
	low = (char *)base + guard + 1024; /* for the calls below */
	low = alloca((size_t)(here - low) - 512);
	memset(low, (int)(long)arg, 1024);
	for (int i = 0; i < 1024; i++)
		s += (unsigned)low[i] * i;
	CHECK(syscall(SYS_gettid) != syscall(SYS_getpid));
	return (void *)(unsigned long)(s + work((long)arg, 100));
}

int main(void)
{
	unsigned long s = 0;
	pthread_attr_t a;
	pthread_t t;
	void *r;

	pthread_attr_init(&a);
	CHECK(!pthread_attr_setstacksize(&a, PTHREAD_STACK_MIN));
	for (long i = 1; i < 5; i++) {
		CHECK(!pthread_create(&t, &a, run, (void *)i));
		CHECK(!pthread_join(t, &r));
		s = s * 3 + (unsigned long)r;
	}
	printf("thr_minstack %lx\n", s);
	return 0;
}
