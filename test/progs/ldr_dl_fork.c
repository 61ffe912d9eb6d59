// SPDX-License-Identifier: MIT
// BREAKS: a library opened in a forked child alone: its modules are no longer its parent's; another one comes
// to the same address in the parent at the same time.
// BUILD: cc -O2 -Wl,-rpath,$ORIGIN
// ORACLE: yes
// LIB: libldr_p0.so ldr_plug.c -DN=0
// LIB: libldr_p1.so ldr_plug.c -DN=1
// LIB: libldr_p2.so ldr_plug.c -DN=2
#include <dlfcn.h>
#include <sys/wait.h>

#include "check.h"

static unsigned use(int n)
{
	unsigned (*f)(unsigned), s = 0;
	char name[32];
	void *h;

	snprintf(name, sizeof(name), "libldr_p%d.so", n);
	CHECK((h = dlopen(name, RTLD_NOW)) && (f = (unsigned (*)(unsigned))dlsym(h, "plug")));
	for (int k = 0; k < 20; k++)
		s = s * 31 + f(k);
	return s;
}

int main(void)
{
	int st, ready[2];
	unsigned s;
	pid_t pid;
	char c;

	CHECK(!pipe(ready));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		s = use(1);
		CHECK(write(ready[1], "x", 1) == 1);
		_exit((s + use(2)) & 127);
	}
	CHECK(read(ready[0], &c, 1) == 1);
	s = use(0);
	CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st));
	CHECK(WEXITSTATUS(st) == (int)((use(1) + use(2)) & 127));
	printf("ldr_dl_fork %x %d\n", s, WEXITSTATUS(st));
	return 0;
}
