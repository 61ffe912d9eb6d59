// SPDX-License-Identifier: MIT
// made.h - code that exists only at run time, as a JIT compiler's does: no analysis has seen it, it runs untraced
//
// MADE(name, type, "instructions") defines name, a pointer of that type; made(&name, …) copies the instructions to where they
// can run. They may not refer to anything by its distance.
#ifndef MADE_H
#define MADE_H

#include <string.h>
#include <sys/mman.h>

#define MADE(name, type, text)                                                                               \
	extern const char name##_code[], name##_code_end[];                                                  \
	__asm__(".data\n" #name "_code:\n" text "\n" #name "_code_end:\n.text\n");                           \
	static __typeof__(type) name

// Not declared as a copy to executable memory: the compiler must not know what is called.
static void *made_copy(const char *from, const char *end)
{
	static char *at, *limit;
	char *p;

	if (!at) {
		at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at == MAP_FAILED)
			return NULL;
		limit = at + 4096;
	}
	p = at;
	if (end - from > limit - at)
		return NULL;
	memcpy(p, from, (size_t)(end - from));
	at += (end - from + 15) & -16;
	return p;
}

#define MAKE(name) (*(void **)&(name) = made_copy(name##_code, name##_code_end))

#endif
