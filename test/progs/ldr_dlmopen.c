// SPDX-License-Identifier: MIT
// BREAKS: dlmopen: a second libc and a second copy of a library in a namespace of their own; preloaded
// libraries are not in it.
// BUILD: cc -O2 -Wl,-rpath,$ORIGIN
// PT_LONG: yes
// LIB: libldr_ns.so ldr_ns.c
#define _GNU_SOURCE
#include <dlfcn.h>

#include "check.h"

int main(void)
{
	unsigned s = 0, (*f[2])(unsigned);
	void *h[2];

	CHECK((h[0] = dlopen("libldr_ns.so", RTLD_NOW)));
	CHECK((h[1] = dlmopen(LM_ID_NEWLM, "libldr_ns.so", RTLD_NOW)));
	for (int i = 0; i < 2; i++)
		CHECK((f[i] = (unsigned (*)(unsigned))dlsym(h[i], "ns")));
	CHECK(f[0] != f[1]);
	for (int i = 0; i < 20; i++)
		s = s * 31 + f[i & 1](i) + f[0](i);
	CHECK(!dlclose(h[1]));
	s += f[0](1);
	CHECK(!dlclose(h[0]));
	printf("ldr_dlmopen %x\n", s);
	return 0;
}
