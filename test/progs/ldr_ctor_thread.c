// SPDX-License-Identifier: MIT
// BREAKS: a library whose constructor starts a thread, under the loader's lock, before the program's own main
// and again by dlopen; its destructor waits for the thread.
// BUILD: cc -O2 -pthread -Wl,-rpath,$ORIGIN
// PT_LONG: yes
// LIB: libldr_ctor_a.so ldr_ctor.c -pthread
// LIB: libldr_ctor_b.so ldr_ctor.c -pthread -DLATE
#include <dlfcn.h>

#include "check.h"

int main(void)
{
	unsigned s = 0;

	for (int i = 0; i < 6; i++) {
		void *h = dlopen(i & 1 ? "libldr_ctor_b.so" : "libldr_ctor_a.so", RTLD_NOW);
		unsigned (*f)(void);

		CHECK(h && (f = (unsigned (*)(void))dlsym(h, "ctor_result")));
		s = s * 31 + f();
		CHECK(!dlclose(h));
	}
	CHECK(dlopen("libldr_ctor_b.so", RTLD_NOW)); /* its thread runs when main returns */
	printf("ldr_ctor_thread %x\n", s);
	return 0;
}
