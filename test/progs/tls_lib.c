// SPDX-License-Identifier: MIT
// Loaded by tls.c: general and local dynamic TLS in a shared object.
__thread long tls_visible = 5;
static __thread int counter[8];
static __thread long total;

long tls_work(long i)
{
	counter[i & 7] += i;
	total += counter[i & 7] + tls_visible++;
	return total;
}
