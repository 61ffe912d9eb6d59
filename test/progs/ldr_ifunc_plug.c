// SPDX-License-Identifier: MIT
// The library of ldr_ifunc.c. The resolver depends on nothing of the machine, so that every machine gives the
// same result.
static unsigned table[8] = { 1, 1, 2, 3, 5, 8, 13, 21 };

static unsigned one(unsigned v)
{
	return table[v & 7] + v;
}

static unsigned two(unsigned v)
{
	return table[table[v & 7] & 7] * 3 + v;
}

static unsigned (*resolve(void))(unsigned)
{
	return sizeof(long) == 8 ? two : one;
}

unsigned chosen(unsigned v) __attribute__((ifunc("resolve")));

unsigned by_plt(unsigned v)
{
	return chosen(v) + chosen(v + 1);
}
