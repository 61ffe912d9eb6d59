// SPDX-License-Identifier: MIT
// BREAKS: IFUNCs in a library that is opened: the resolver runs while the loader relocates it, lazily or at
// once; called from outside and from within.
// BUILD: cc -O2 -Wl,-rpath,$ORIGIN
// LIB: libldr_ifunc.so ldr_ifunc_plug.c
// ENV: LD_BIND_NOW=1
#include <dlfcn.h>

#include "check.h"

int main(void)
{
	unsigned s = 0;

	for (int i = 0; i < 4; i++) {
		void *h = dlopen("libldr_ifunc.so", i & 1 ? RTLD_NOW : RTLD_LAZY);
		unsigned (*f)(unsigned), (*g)(unsigned);

		CHECK(h && (f = (unsigned (*)(unsigned))dlsym(h, "chosen")));
		CHECK((g = (unsigned (*)(unsigned))dlsym(h, "by_plt")));
		for (int k = 0; k < 10; k++)
			s = s * 31 + f(k) + g(k + i);
		CHECK(!dlclose(h));
	}
	printf("ldr_ifunc %x\n", s);
	return 0;
}
