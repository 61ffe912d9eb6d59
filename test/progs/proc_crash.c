// SPDX-License-Identifier: MIT
// BREAKS: a crash: the kernel ends the process for a fault that it does not handle, while what it has logged since the
// last system call is published nowhere. It is there, but for the last bytes.
// BUILD: cc -O2
// STATUS: 139
// KILLED: yes
// ACCESSES: 199000
#include <sys/resource.h>

#include "check.h"

static int *volatile nowhere;
static volatile unsigned seed = 1;

int main(void)
{
	struct rlimit none = { 0, 0 };
	unsigned s = 0;

	CHECK(!setrlimit(RLIMIT_CORE, &none));
	printf("proc_crash\n");
	fflush(stdout);
	for (unsigned n = 0; n < 800; n++)
		s += work(seed + n, 50);
	*nowhere = (int)s;
	return 1;
}
