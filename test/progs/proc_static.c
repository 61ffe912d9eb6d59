// SPDX-License-Identifier: MIT
// The static program of proc_exec_static.c.
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	unsigned s = 0;

	for (int i = 1; i < argc; i++)
		s += strlen(argv[i]);
	printf("proc_static %u %s\n", s, argv[1]);
	return argc == 2 && strcmp(argv[1], "child") ? 12 : 11;
}
