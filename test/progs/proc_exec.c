// SPDX-License-Identifier: MIT
// BREAKS: exec of itself, five times in one process: a new image each, with the arguments and the environment
// it was given, traced as the first was; a script with an interpreter line last.
// BUILD: cc -O2
// PT_LONG: yes
// STATUS: 9
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "check.h"

static void script(const char *sum)
{
	static const char text[] = "#!/bin/sh\necho \"proc_exec $1 $TOKEN\"\nrm -f \"$0\"\nexit 9\n";
	char path[] = "/tmp/proc_exec.XXXXXX";
	int fd = mkstemp(path);

	CHECK(fd >= 0 && write(fd, text, sizeof(text) - 1) == sizeof(text) - 1);
	CHECK(!fchmod(fd, 0700) && !close(fd));
	execl(path, path, sum, (char *)NULL);
	CHECK(!"exec of a script");
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	unsigned s = argc > 2 ? strtoul(argv[2], NULL, 16) : 1;
	char num[16], sum[16];

	s = s * 31 + work(n, 200);
	snprintf(num, sizeof(num), "%d", n + 1);
	snprintf(sum, sizeof(sum), "%x", s);
	if (n == 0)
		setenv("TOKEN", "kept", 1);
	CHECK(getenv("TOKEN") && !strcmp(getenv("TOKEN"), "kept"));
	if (n < 4)
		execl("/proc/self/exe", "other name", num, sum, (char *)NULL);
	else
		script(sum);
	return 1;
}
