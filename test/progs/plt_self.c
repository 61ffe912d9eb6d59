// SPDX-License-Identifier: MIT
// BREAKS: calls of a library's own functions through its PLT: bound lazily and at once, to the library's
// own definition, to the program's (lib_hook), to an IFUNC's choice, and through a slot that the program
// itself changes and changes back.
// BUILD: cc -O2 -rdynamic -Wl,-rpath,$ORIGIN
// LIB: libplt_lazy.so plt_lib.c -Wl,-z,lazy
// LIB: libplt_now.so plt_lib.c -Wl,-z,now -fcf-protection=full
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include "plt_lib.h"

int lib_hook(const int *p, int i)
{
	return p[i & 1] + 100;
}

/* the slot of the PLT stub for a function */
static void **slot_of(void *lib, const char *name)
{
	struct link_map *l = lib;
	const ElfW(Sym) *sym = NULL;
	const char *str = NULL;
	const ElfW(Rela) *r = NULL;
	size_t n = 0;

	for (ElfW(Dyn) *d = l->l_ld; d->d_tag; d++) {
		if (d->d_tag == DT_SYMTAB)
			sym = (void *)d->d_un.d_ptr;
		else if (d->d_tag == DT_STRTAB)
			str = (void *)d->d_un.d_ptr;
		else if (d->d_tag == DT_JMPREL)
			r = (void *)d->d_un.d_ptr;
		else if (d->d_tag == DT_PLTRELSZ)
			n = d->d_un.d_val / sizeof(*r);
	}
	for (size_t i = 0; i < n; i++)
		if (!strcmp(str + sym[ELF64_R_SYM(r[i].r_info)].st_name, name))
			return (void **)(l->l_addr + r[i].r_offset);
	return NULL;
}

static int work(const char *name)
{
	void *h = dlopen(name, RTLD_LAZY), **slot, *was;
	int (*f)(int), s;

	if (!h) {
		puts(dlerror());
		return -1;
	}
	f = (int (*)(int))dlsym(h, "lib_work");
	slot = slot_of(h, "lib_leaf");
	s = f(20);
	was = *slot;
	mprotect((void *)((unsigned long)slot & -4096ul), 4096, PROT_READ | PROT_WRITE);
	*slot = dlsym(h, "lib_other");
	s = s * 31 + f(20);
	*slot = was;
	s = s * 31 + f(20);
	dlclose(h);
	return s;
}

int main(void)
{
	int a = work("libplt_lazy.so"), b = work("libplt_now.so"), c = work("libplt_lazy.so");

	printf("plt_self %d %d %d\n", a, b, c);
	return 0;
}
