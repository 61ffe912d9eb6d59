// SPDX-License-Identifier: MIT
// The library of thr_tls_dl.c: 100, and each thread's sum of what it was called with.
static __thread unsigned sum = 100, pad[1000];

unsigned tls_plug(unsigned v)
{
	pad[v * 37 % 1000] += v;
	sum += pad[v * 37 % 1000];
	return sum;
}
