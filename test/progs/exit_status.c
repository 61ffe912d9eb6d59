// SPDX-License-Identifier: MIT
// BREAKS: programs that do not end with success: the status must pass through, the tail of the trace must be
// there (_exit runs no destructors).
// BUILD: cc -O2
// STATUS: 42
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	puts("exit_status");
	fflush(stdout);
	_exit(42);
}
