// SPDX-License-Identifier: MIT
// BREAKS: recursion fifty thousand frames deep on main's stack and on a thread's, unwound by returns and by one
// longjmp.
// BUILD: cc -O2 -pthread
// PT_LONG: yes
#include <pthread.h>
#include <setjmp.h>
#include <sys/resource.h>

#include "check.h"

static __thread jmp_buf env;

static unsigned __attribute__((noinline)) down(int n, unsigned v, int jump)
{
	volatile unsigned keep = v;

	if (!n) {
		if (jump)
			longjmp(env, 1);
		return v;
	}
	v = down(n - 1, v * 5 + n, jump);
	return v ^ keep;
}

static void *run(void *arg)
{
	unsigned s = down(50000, (unsigned)(long)arg, 0);

	if (!setjmp(env))
		down(50000, 1, 1);
	return (void *)(unsigned long)(s + work(s, 10));
}

int main(void)
{
	struct rlimit rl;
	pthread_attr_t a;
	pthread_t t;
	unsigned long s;
	void *r;

	CHECK(!getrlimit(RLIMIT_STACK, &rl));
	if (rl.rlim_cur < 7u << 20)
		SKIP("stk_deep", "a small stack");
	s = (unsigned long)run((void *)1l);
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 8 << 20);
	CHECK(!pthread_create(&t, &a, run, (void *)2l));
	CHECK(!pthread_join(t, &r));
	printf("stk_deep %lx\n", s * 3 + (unsigned long)r);
	return 0;
}
