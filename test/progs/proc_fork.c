// SPDX-License-Identifier: MIT
// BREAKS: a forked child goes on in its copy of everything, callers' frames and all; so does its parent; each
// has a trace. Children of children.
// BUILD: cc -O2
// THREADS: 6
// ORACLE: yes
// VARIANTS: O0 clang
#include <sys/wait.h>

#include "check.h"

static unsigned heap_sum(unsigned *h)
{
	unsigned s = 0;

	for (int i = 0; i < 256; i++)
		s = s * 31 + h[h[i] & 255];
	return s;
}

/* The child returns through this frame, too. */
static pid_t __attribute__((noinline)) split(unsigned *h, unsigned x)
{
	unsigned keep[4] = { x, x * 3, x * 5, x * 7 };
	pid_t pid = fork();

	CHECK(pid >= 0);
	for (int i = 0; i < 4; i++)
		h[keep[i] & 255] += pid ? 1 : keep[i];
	return pid;
}

int main(void)
{
	unsigned *h = malloc(256 * sizeof(*h)), s = 0;
	int st;

	for (int i = 0; i < 256; i++)
		h[i] = i * 2654435761u >> 7;
	for (int i = 0; i < 4; i++) {
		pid_t pid = split(h, i * 77 + 5);

		if (!pid) {
			if (i == 3 && !split(h, 9))
				_exit(heap_sum(h) & 63);
			if (i == 3)
				CHECK(wait(&st) > 0 && WIFEXITED(st));
			else
				st = 0;
			_exit((heap_sum(h) + WEXITSTATUS(st)) & 127);
		}
		CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st));
		s = s * 131 + WEXITSTATUS(st);
	}
	printf("proc_fork %x %x\n", s, heap_sum(h));
	return 0;
}
