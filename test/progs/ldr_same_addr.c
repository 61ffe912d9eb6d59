// SPDX-License-Identifier: MIT
// BREAKS: a library goes and another comes to its very address, with other code behind the same pointers:
// patches, copies and what the decoder knows must be of the one that is there now.
// BUILD: cc -O2 -Wl,-rpath,$ORIGIN
// PT_LONG: yes
// LIB: libldr_p0.so ldr_plug.c -DN=0
// LIB: libldr_p1.so ldr_plug.c -DN=1
// LIB: libldr_p2.so ldr_plug.c -DN=2
#include <dlfcn.h>

#include "check.h"

int main(void)
{
	unsigned s = 0, same = 0, counted = 0;
	unsigned (*before)(unsigned) = NULL;

	for (int i = 0; i < 12; i++) {
		unsigned (*f)(unsigned), (*times)(void);
		char name[32];
		void *h;

		snprintf(name, sizeof(name), "libldr_p%d.so", i * 2 % 3);
		CHECK((h = dlopen(name, RTLD_NOW)));
		CHECK((f = (unsigned (*)(unsigned))dlsym(h, "plug")));
		CHECK((times = (unsigned (*)(void))dlsym(h, "times")));
		same += f == before;
		before = f;
		for (int k = 0; k < 10; k++)
			s = s * 31 + f(k);
		counted += times(); /* its data is new each time */
		CHECK(!dlclose(h));
	}
	CHECK(same > 0);
	printf("ldr_same_addr %x %u\n", s, counted);
	return 0;
}
