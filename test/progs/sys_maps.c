// SPDX-License-Identifier: MIT
// BREAKS: /proc/self/maps as programs use it: the line of an address has its protection and file, code is
// executable and not writable, the stack and the heap are found, lines are in order.
// BUILD: cc -O2
// PT_LONG: yes
#include <sys/mman.h>

#include "check.h"

struct line {
	unsigned long lo, hi;
	char prot[5], path[256];
};

static int find(const void *p, struct line *l)
{
	unsigned long at = (unsigned long)p, last = 0;
	char text[512];
	FILE *f = fopen("/proc/self/maps", "r");
	int found = 0;

	CHECK(f);
	while (fgets(text, sizeof(text), f)) {
		struct line x = { 0 };

		CHECK(sscanf(text, "%lx-%lx %4s %*s %*s %*s %255s", &x.lo, &x.hi, x.prot, x.path) >= 3);
		CHECK(x.lo >= last && x.lo < x.hi);
		last = x.hi;
		if (at >= x.lo && at < x.hi) {
			*l = x;
			found++;
		}
	}
	fclose(f);
	CHECK(found <= 1);
	return found;
}

int main(void)
{
	static const char constant[] = "constant";
	static int data = 1;
	struct line l;
	char *heap = malloc(100), exe[512];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	void *m;

	CHECK(n > 0);
	exe[n] = 0;
	CHECK(find((void *)main, &l) && !strcmp(l.prot, "r-xp") && !strcmp(l.path, exe));
	CHECK(find(constant, &l) && l.prot[1] == '-' && !strcmp(l.path, exe));
	CHECK(find(&data, &l) && !strcmp(l.prot, "rw-p"));
	CHECK(find((void *)printf, &l) && !strcmp(l.prot, "r-xp") && strstr(l.path, "libc"));
	CHECK(find(&l, &l) && !strcmp(l.prot, "rw-p") && !strcmp(l.path, "[stack]"));
	CHECK(find(heap, &l) && !strcmp(l.path, "[heap]"));
	m = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(m != MAP_FAILED && !mprotect((char *)m + 4096, 4096, PROT_READ));
	CHECK(find((char *)m + 4096, &l) && !strcmp(l.prot, "r--p") && l.hi - l.lo == 4096);
	CHECK(!munmap(m, 3 * 4096) && !find(m, &l));
	free(heap);
	printf("sys_maps\n");
	return 0;
}
