// SPDX-License-Identifier: MIT
// BREAKS: a program that dies of a signal: the trace must reach up to it; the access that faults is not one.
// BUILD: cc -O2
// STATUS: 139
// STOPS: 1000 the run was killed
#include <stdio.h>

int main(void)
{
	int *volatile p = (int *)16;

	puts("killed");
	fflush(stdout);
	return *p;
}
