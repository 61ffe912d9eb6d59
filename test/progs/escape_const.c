// SPDX-License-Identifier: MIT
// BREAKS: a constant address kept in a local that somebody else overwrites: what is read back is not the constant
// BUILD: cc -O2
// VARIANTS: O0 nopie clang
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
	long n;
	const char *p;
};

static const char fixed[] = "read-only bytes";
static int weight[256];

static __attribute__((noinline)) void replace(struct text *t, const char *by)
{
	t->p = by;
	t->n = (long)strlen(by);
}

static __attribute__((noinline)) long sum(int which, const char *other)
{
	struct text t = {sizeof(fixed) - 1, fixed};
	long s = 0;

	if (which)
		replace(&t, other);
	for (long i = 0; i < t.n; i++)
		s = s * 31 + t.p[i];
	return s + weight[(unsigned char)t.p[0]]; /* what is read there decides on an address */
}

int main(void)
{
	char *heap = strdup("bytes of the heap");

	for (int i = 0; i < 256; i++)
		weight[i] = i * i;

	long a = sum(0, heap), b = sum(1, heap);

	heap[0] = 'x';
	printf("%ld %ld %ld\n", a, b, sum(1, heap));
	free(heap);
	return 0;
}
