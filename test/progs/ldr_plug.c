// SPDX-License-Identifier: MIT
// The libraries of the ldr_ programs: the same layout, other results for each N.
static unsigned table[16];

unsigned plug(unsigned v)
{
	unsigned t[16] = { 0 };

	for (unsigned i = 0; i < 30; i++) {
		v = v * 1664525u + 1013904223u + N;
		t[v >> 28] += v ^ t[v >> 24 & 15];
	}
	__atomic_fetch_add(&table[v & 15], 1, __ATOMIC_RELAXED);
	return t[3] * 31 + t[N] + N;
}

unsigned times(void)
{
	unsigned s = 0;

	for (int i = 0; i < 16; i++)
		s += table[i];
	return s;
}
