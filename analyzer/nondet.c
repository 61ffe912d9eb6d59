/* SPDX-License-Identifier: MIT
 *
 * nondet.c - instructions whose result is not the program's: for a replay, which must be told of it (MAP_F_NONDET)
 *
 * All of them write registers and flags only (SDM Vol. 2): the copy has the runtime execute them (tcb.nondet).
 */
#include "nondet.h"

/* bytes of prefixes before the opcode; *rex and *p66, *f3 say which */
static unsigned prefixes(const uint8_t *b, unsigned len, unsigned *rex, bool *p66, bool *f3)
{
	unsigned n = 0;

	*rex = 0;
	*p66 = *f3 = false;
	for (; n < len; n++) {
		if (b[n] == 0x66)
			*p66 = true;
		else if (b[n] == 0xf3)
			*f3 = true;
		else if (b[n] != 0xf2 && b[n] != 0x67 && b[n] != 0x2e && b[n] != 0x36 && b[n] != 0x3e &&
			 b[n] != 0x26 && b[n] != 0x64 && b[n] != 0x65)
			break;
	}
	if (n < len && (b[n] & 0xf0) == 0x40)
		*rex = b[n++];
	return n;
}

/* tcb.what for this instruction, 0 if it is none of them */
uint32_t nondet_what(const uint8_t *b, unsigned len)
{
	unsigned rex, n, what = 0, reg = 0, size = 4;
	bool p66, f3;

	if (!b || len < 2)
		return 0;
	n = prefixes(b, len, &rex, &p66, &f3);
	if (n + 2 > len || b[n] != 0x0f)
		return 0;
	if (b[n + 1] == 0x31)
		what = NONDET_RDTSC;
	else if (b[n + 1] == 0xa2)
		what = NONDET_CPUID;
	else if (n + 3 > len)
		return 0;
	else if (b[n + 1] == 0x01)
		what = b[n + 2] == 0xf9 ? NONDET_RDTSCP : b[n + 2] == 0xd0 ? NONDET_XGETBV : 0;
	else if (b[n + 1] == 0xc7 && b[n + 2] >= 0xf0) {
		what = b[n + 2] < 0xf8 ? NONDET_RDRAND : f3 ? NONDET_RDPID : NONDET_RDSEED;
		reg = (b[n + 2] & 7) | (rex & 1) << 3;
		size = what == NONDET_RDPID || (rex & 8) ? 8 : p66 ? 2 : 4;
	}
	return what ? what | reg << 8 | size << 16 | (uint32_t)len << 24 : 0;
}

bool nondet_syscall(const uint8_t *b, unsigned len)
{
	return b && len >= 2 && b[len - 2] == 0x0f && b[len - 1] == 0x05;
}
