// SPDX-License-Identifier: MIT
// BREAKS: libraries opened and closed by four threads at once while others run code of theirs: modules come
// and go, at each other's addresses, and who is in one must not be disturbed.
// BUILD: cc -O2 -pthread -Wl,-rpath,$ORIGIN
// PT_LONG: yes
// THREADS: 5
// LIB: libldr_p0.so ldr_plug.c -DN=0
// LIB: libldr_p1.so ldr_plug.c -DN=1
// LIB: libldr_p2.so ldr_plug.c -DN=2
#include <dlfcn.h>
#include <pthread.h>

#include "four.h"

static void *run(void *arg)
{
	long me = (long)arg;
	unsigned s = 0;
	int turns = simulated() ? 2 : 40;

	for (int i = 0; i < turns; i++) {
		char name[32];
		unsigned (*f)(unsigned);
		void *h;

		snprintf(name, sizeof(name), "libldr_p%ld.so", (me + i) % 3);
		h = dlopen(name, i & 1 ? RTLD_NOW : RTLD_LAZY);
		CHECK(h && (f = (unsigned (*)(unsigned))dlsym(h, "plug")));
		for (int k = 0; k < 5; k++)
			s = s * 31 + f(me * 100 + i + k);
		CHECK(!dlclose(h));
	}
	return (void *)(unsigned long)s;
}

int main(void)
{
	printf("ldr_dl_threads %lx\n", four_threads(run));
	return 0;
}
