// SPDX-License-Identifier: MIT
// BREAKS: the bound of an index of one byte, to which something is added: it goes round.
// BUILD: cc -O2
// VARIANTS: clang Os
/* All 256 values of the index are in the table, and no
 * comparison bounds it. */
#include <stdio.h>

static volatile unsigned int sink;

#define CASE(n)                                                                                              \
	case n:                                                                                              \
		sink = sink * 5 + (n) * (n) + 7;                                                             \
		break;
#define CASES4(n) CASE(n) CASE((n) + 1) CASE((n) + 2) CASE((n) + 3)
#define CASES16(n) CASES4(n) CASES4((n) + 4) CASES4((n) + 8) CASES4((n) + 12)
#define CASES64(n) CASES16(n) CASES16((n) + 16) CASES16((n) + 32) CASES16((n) + 48)

extern void less(const unsigned char *), more(const unsigned char *);

void less(const unsigned char *k)
{
	switch ((unsigned char)(*k - 128)) { /* clang-format off */
	CASES64(0) CASES64(64) CASES64(128) CASES64(192)
	} /* clang-format on */
}

void more(const unsigned char *k)
{
	switch ((unsigned char)(*k + 200)) { /* clang-format off */
	CASES64(0) CASES64(64) CASES64(128) CASES64(192)
	} /* clang-format on */
}

int main(void)
{
	for (unsigned int k = 0; k < 256; k++) {
		const unsigned char c = (unsigned char)k;

		less(&c);
		more(&c);
	}
	printf("%u\n", sink);
	return 0;
}
