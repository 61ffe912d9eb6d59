// SPDX-License-Identifier: MIT
// BREAKS: text relocations: the loader makes a library's code writable, changes it, and makes it executable
// again; the file's bytes are not what runs.
// BUILD: cc -O2 -Wl,-rpath,$ORIGIN
// LIB: libldr_textrel.so ldr_textrel_plug.S -Wl,-z,notext -nostdlib
#include <dlfcn.h>

#include "check.h"

static unsigned from_program[4] = { 1, 10, 100, 1000 };

int main(void)
{
	unsigned (*f)(unsigned, unsigned *), s = 0;
	void *h;

	for (int k = 0; k < 2; k++) {
		CHECK((h = dlopen("libldr_textrel.so", RTLD_NOW)));
		CHECK((f = (unsigned (*)(unsigned, unsigned *))dlsym(h, "textrel")));
		for (unsigned i = 0; i < 12; i++)
			s = s * 31 + f(i, from_program);
		CHECK(!dlclose(h));
	}
	printf("ldr_textrel %x\n", s);
	return 0;
}
