// SPDX-License-Identifier: MIT
// The library of ldr_dlmopen.c: counts its calls, and uses its own libc.
#include <stdlib.h>
#include <string.h>

static unsigned calls;

unsigned ns(unsigned v)
{
	char *p = malloc(100 + v), *q;
	unsigned s;

	memset(p, v + ++calls, 100 + v);
	q = realloc(p, 5000);
	s = (unsigned char)q[50] * 31 + calls;
	free(q);
	return s;
}
