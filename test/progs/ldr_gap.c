// SPDX-License-Identifier: MIT
// BREAKS: a library whose segments are 2 MiB apart, as old linkers made them: what lies between is mapped from beyond the file's
// end, without any access.
// BUILD: cc -O1 -Wl,-rpath,$ORIGIN -L$OUT -lldr_gap
// LIB: libldr_gap.so ldr_gap_plug.c -Wl,-z,max-page-size=0x200000 -Wl,-z,noseparate-code
#include <stdio.h>

extern int gap[16];
int gap_sum(int n);

int main(void)
{
	for (int i = 0; i < 16; i++)
		gap[i] += i * 3;
	printf("ldr_gap %d\n", gap_sum(16));
	return 0;
}
