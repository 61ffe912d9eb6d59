/* SPDX-License-Identifier: MIT
 *
 * prog.c - makes system calls by hand, for sysout_check: each that does no harm, successful and not
 *
 *     sysout_prog PATTERN
 *
 * Whatever a call may write to is filled with the pattern before; run with two patterns, no byte that is written can
 * be missed because it was the same before. Results do not matter here: what is not there (name spaces, keys,
 * devices, privileges, newer calls) fails, and must write nothing then.
 */
#include "prog.h"

uint8_t out[NOUT][OUT_SIZE];
static int pattern;

long call(long nr, ...)
{
	va_list ap;
	long a[6];

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	return syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

void fill(void)
{
	memset(out, pattern, sizeof(out));
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/sysout.XXXXXX";

	pattern = argc > 1 ? (int)strtoul(argv[1], NULL, 0) : 0x5a;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, SIG_IGN);
	if (!mkdtemp(dir) || chdir(dir)) {
		perror(dir);
		return 2;
	}
	files();
	names();
	polls();
	edges();
	sockets();
	memory();
	process();
	signals();
	clocks();
	ipc();
	ioctls();
	ttys();
	numbers();
	if (chdir("/") || rmdir(dir)) {
		perror(dir);
		return 2;
	}
	return 0;
}
