// SPDX-License-Identifier: MIT
// BREAKS: thread-local storage in all models: local exec and initial exec (fs-relative operands), local
// and general dynamic (data16 call __tls_get_addr), and TLS of a library loaded late.
// BUILD: cc -O2 -Wl,-rpath,$ORIGIN
// LIB: libtlslib.so tls_lib.c
#include <dlfcn.h>
#include <stdio.h>

static __thread int le[4] = { 1, 2, 3, 4 };
__thread long ie __attribute__((tls_model("initial-exec"))) = 7;
__thread long gd __attribute__((tls_model("global-dynamic"))) = 9;
static __thread char ld1 __attribute__((tls_model("local-dynamic"))), ld2 __attribute__((tls_model("local-dynamic")));

__attribute__((noinline)) static long mix(long i)
{
	le[i & 3] += i;
	ie ^= le[i & 3];
	gd += ie;
	ld1++;
	ld2 += ld1;
	return gd + ld2;
}

int main(void)
{
	void *h = dlopen("libtlslib.so", RTLD_NOW);
	long (*f)(long), s = 0;

	if (!h) {
		puts(dlerror());
		return 1;
	}
	f = (long (*)(long))dlsym(h, "tls_work");
	for (long i = 0; i < 20; i++)
		s += mix(i) + f(i);
	printf("tls %ld %d\n", s, le[1]);
	return 0;
}
