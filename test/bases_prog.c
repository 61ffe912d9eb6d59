/* SPDX-License-Identifier: MIT
 *
 * bases_prog - loads a module that sets the gs base, which is the tracer's, and calls it. With -DPLUG: that module
 *
 *	bases_prog PLUG
 *
 * Exit status 7.
 */
#ifdef PLUG
int set_bases(void);
int set_bases(void)
{
	unsigned short gs;

	__asm__ volatile("mov %%gs, %0" : "=r"(gs));
	__asm__ volatile("mov %0, %%gs" : : "r"(gs)); /* the base is 0 behind it (SDM Vol. 3, 3.4.4.1) */
	return gs == 0;
}
#else
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *h = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int (*fn)(void) = h ? (int (*)(void))dlsym(h, "set_bases") : NULL;

	if (!fn || !fn())
		return 1;
	puts("set");
	return fflush(stdout) ? 1 : 7;
}
#endif
