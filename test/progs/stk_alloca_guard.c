// SPDX-License-Identifier: MIT
// BREAKS: the stack pointer moved far in one step: alloca and arrays over many pages, touched from below, from
// above, or not at all; up to the guard page of a thread; the kernel grows main's stack.
// BUILD: cc -O2 -pthread
// VARIANTS: O0
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <sys/resource.h>

#include "check.h"

static unsigned __attribute__((noinline)) big(size_t n, int up)
{
	volatile unsigned char *p = alloca(n);
	unsigned s = 0;

	for (size_t i = 0; i < n; i += 1024)
		p[up ? i : n - 1 - i] = i >> 10;
	for (size_t i = 0; i < n; i += 1024)
		s = s * 31 + p[up ? i : n - 1 - i];
	return s;
}

static unsigned __attribute__((noinline)) untouched(size_t n, unsigned v)
{
	volatile char *p = alloca(n);

	__asm__ volatile("" ::"r"(p));
	return work(v, 5);
}

static void *run(void *arg)
{
	pthread_attr_t a;
	size_t size, guard, left;
	void *base;
	unsigned s;

	(void)arg;
	CHECK(!pthread_getattr_np(pthread_self(), &a));
	CHECK(!pthread_attr_getstack(&a, &base, &size) && !pthread_attr_getguardsize(&a, &guard));
	left = (char *)__builtin_frame_address(0) - (char *)base - guard;
	s = big(left - 2048, 1) + big(left - 2048, 0);
	return (void *)(unsigned long)(s + untouched(left - 2048, 9));
}

int main(void)
{
	pthread_attr_t a;
	struct rlimit rl;
	pthread_t t;
	unsigned s;
	void *r;

	CHECK(!getrlimit(RLIMIT_STACK, &rl));
	if (rl.rlim_cur < 4u << 20)
		SKIP("stk_alloca_guard", "a small stack");
	s = big(2 << 20, 1) * 3 + big(3 << 20, 0) + untouched(1 << 20, 7);
	pthread_attr_init(&a);
	CHECK(!pthread_attr_setstacksize(&a, 256 << 10));
	CHECK(!pthread_create(&t, &a, run, NULL));
	CHECK(!pthread_join(t, &r));
	printf("stk_alloca_guard %x %d\n", s, r != NULL);
	return 0;
}
