// SPDX-License-Identifier: MIT
// BREAKS: system and popen in both directions; a shell that forks a pipeline.
// BUILD: cc -O2
// PT_LONG: yes
#include <sys/wait.h>

#include "check.h"

int main(void)
{
	char line[64];
	unsigned s = 0;
	int st;
	FILE *p;

	st = system("exit 4");
	CHECK(WIFEXITED(st) && WEXITSTATUS(st) == 4);
	p = popen("printf '%s\\n' b a c | sort | tr a-c x-z", "r");
	CHECK(p);
	while (fgets(line, sizeof(line), p))
		s = s * 31 + (unsigned char)line[0];
	CHECK(pclose(p) == 0);
	fflush(stdout);
	p = popen("cat; exit 3", "w");
	CHECK(p);
	fprintf(p, "to the child %u\n", s);
	st = pclose(p);
	printf("proc_system %u %d\n", s, WEXITSTATUS(st));
	return 0;
}
