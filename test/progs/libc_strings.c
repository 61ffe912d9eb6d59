// SPDX-License-Identifier: MIT
// BREAKS: libc's vector string functions in all their size classes and alignments: jump tables, overlapping
// moves, page-cross checks, vzeroupper, rep movsb.
// BUILD: cc -O1 -fno-builtin
#include <stdio.h>
#include <string.h>

static char a[8192], b[16384];

int main(void)
{
	static const int sizes[] = { 0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129,
				     255, 257, 513, 1025, 2049, 4097 };
	unsigned long s = 0;

	for (int i = 0; i < 8192; i++)
		a[i] = 'a' + i % 23;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		int n = sizes[i];

		memcpy(b + i % 5, a + i % 7, n);
		memmove(b + 9, b + i % 11, n);
		memset(b + n, i, n / 2);
		s = s * 31 + memcmp(a, b, n) % 7;
		b[n + 20] = 0;
		s += strlen(b + i % 3) + (memchr(b, 'q', n) ? 1 : 0) + (strchr(b, 'z') ? 2 : 0);
		s += strnlen(b, n) + strncmp(a, b, n) % 5;
		strcpy(b + 8192, b);
		s += strspn(b + 8192, "abcdefg") + (strstr(b + 8192, "uvw") ? 3 : 0);
	}
	printf("libc_strings %lu\n", s);
	return 0;
}
