// SPDX-License-Identifier: MIT
// BREAKS: TLS descriptors: a call that keeps every register but rax, into code of the loader that is chosen
// when the library is opened (static, dynamic, undefined weak).
// BUILD: cc -O2 -pthread -Wl,-rpath,$ORIGIN
// LIB: libldr_tlsdesc.so ldr_tlsdesc_plug.c -mtls-dialect=gnu2
#include <dlfcn.h>
#include <pthread.h>

#include "check.h"

static unsigned (*f)(unsigned);

static void *run(void *arg)
{
	unsigned s = 0;

	for (int i = 0; i < 20; i++)
		s = s * 31 + f((unsigned)(long)arg + i);
	return (void *)(unsigned long)s;
}

int main(void)
{
	void *h = dlopen("libldr_tlsdesc.so", RTLD_NOW), *r;
	unsigned long s = 0;
	pthread_t t;

	CHECK(h && (f = (unsigned (*)(unsigned))dlsym(h, "tlsdesc")));
	s = (unsigned long)run(NULL);
	for (long i = 0; i < 3; i++) {
		CHECK(!pthread_create(&t, NULL, run, (void *)i));
		CHECK(!pthread_join(t, &r));
		s = s * 3 + (unsigned long)r;
	}
	CHECK(!dlclose(h));
	printf("ldr_tlsdesc %lx\n", s);
	return 0;
}
