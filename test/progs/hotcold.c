// SPDX-License-Identifier: MIT
// BREAKS: functions split into hot and cold parts in different sections: jumps between distant ranges of one
// group, a cold part entered from several places.
// BUILD: cc -O2 -freorder-blocks-and-partition
#include <stdio.h>
#include <string.h>

static int errors[4];

__attribute__((noinline, cold)) static void complain(int *where, int v)
{
	*where += v;
}

__attribute__((noinline)) static int parse(const char *s, int *out)
{
	int v = 0, digits = 0;

	for (; *s; s++) {
		if (__builtin_expect(*s < '0', 0)) {
			complain(&errors[0], *s);
			out[0] = -1;
			if (*s == '-')
				goto fail;
			continue;
		}
		if (__builtin_expect(*s > '9', 0)) {
			complain(&errors[1], digits);
			out[1] += v;
			goto fail;
		}
		v = v * 10 + *s - '0';
		digits++;
	}
	out[2] += v;
	return v;
fail:
	complain(&errors[2], v);
	out[3]++;
	return -v;
}

int main(void)
{
	static const char *const in[] = { "123", "45 67", "8-9", "12a4", "", "999999", " z", "7" };
	int out[4] = { 0 }, s = 0;

	for (int r = 0; r < 3; r++) {
		for (int i = 0; i < 8; i++)
			s = s * 31 + parse(in[i], out);
	}
	printf("hotcold %d %d %d %d\n", s, out[1], out[3], errors[2]);
	return 0;
}
