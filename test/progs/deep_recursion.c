// SPDX-License-Identifier: MIT
// BREAKS: a call depth of 10,000: fixed-size call stacks in the decoder or the runtime.
// BUILD: cc -O1
#include <stdio.h>

__attribute__((noinline)) static unsigned down(unsigned n, const unsigned *up)
{
	volatile unsigned here = n + *up;

	return n ? down(n - 1, (const unsigned *)&here) + here : here;
}

int main(void)
{
	unsigned top = 1;

	printf("deep_recursion %u\n", down(10000, &top));
	return 0;
}
