// SPDX-License-Identifier: MIT
// BREAKS: dlopen, dlclose and reopen: code that comes, goes, and comes back at another address, and other
// code at the address of what was closed.
// BUILD: cc -O2 -Wl,-rpath,$ORIGIN
// LIB: libplug_a.so plug_a.c
// LIB: libplug_b.so plug_b.c
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>

static int use(const char *lib, void **keep)
{
	void *h = dlopen(lib, RTLD_NOW);
	int (*f)(int), s;

	if (!h) {
		puts(dlerror());
		return -1;
	}
	f = (int (*)(int))dlsym(h, "plug");
	s = f(10) + f(3);
	if (keep)
		*keep = (void *)f;
	dlclose(h);
	return s;
}

int main(void)
{
	void *f1, *f2, *f3, *wall;
	int a = use("libplug_a.so", &f1);
	int b = use("libplug_b.so", &f2);	/* most likely where a was */
	int c;

	/* In the way of the next one. */
	wall = mmap((void *)((unsigned long)f1 & ~4095ul), 4096, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	c = use("libplug_a.so", &f3);
	printf("dlopen %d %d %d %d %d\n", a, b, c, wall != MAP_FAILED, f1 != f3);
	return 0;
}
