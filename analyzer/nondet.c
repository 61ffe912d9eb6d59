/* SPDX-License-Identifier: MIT
 *
 * nondet.c - instructions whose result is not the program's: for a replay, which must be told of it (MAP_F_NONDET)
 *
 * All of them write registers and flags only (SDM Vol. 2): the copy has the runtime execute them (tcb.nondet). But for xbegin:
 * whether a transaction commits is known when it has. There the recording goes on in full.
 */
#include "nondet.h"
#include "prefix.h"

/* tcb.what for this instruction, 0 if it is none of them */
uint32_t nondet_what(const uint8_t *b, unsigned len)
{
	unsigned n, what = 0, reg = 0, size = 4;
	struct prefixes p;

	if (!b || len < 2)
		return 0;
	p = prefixes(b, len);
	n = p.n;
	if (n + 2 < len && b[n] == 0xc7 && b[n + 1] == 0xf8)
		return NONDET_XBEGIN | (uint32_t)len << 24;
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
		what = b[n + 2] < 0xf8 ? NONDET_RDRAND : p.f3 ? NONDET_RDPID : NONDET_RDSEED;
		reg = (b[n + 2] & 7) | (p.rex & 1) << 3;
		size = what == NONDET_RDPID || (p.rex & 8) ? 8 : p.p66 ? 2 : 4;
	}
	return what ? what | reg << 8 | size << 16 | (uint32_t)len << 24 : 0;
}

bool nondet_syscall(const uint8_t *b, unsigned len)
{
	return b && len >= 2 && b[len - 2] == 0x0f && b[len - 1] == 0x05;
}

/* RDGSBASE, WRFSBASE, WRGSBASE; MOV to a segment register, POP, LFS, LGS: SDM Vol. 2 */
bool nondet_base(const uint8_t *b, unsigned len)
{
	struct prefixes p;
	unsigned reg;

	if (!b || len < 2)
		return false;
	p = prefixes(b, len);
	if (p.n + 2 > len)
		return false;
	b += p.n;
	reg = b[1] >> 3 & 7;
	if (b[0] == 0x8e)
		return reg == 4 || reg == 5;
	if (b[0] != 0x0f)
		return false;
	if (b[1] == 0xa1 || b[1] == 0xa9 || b[1] == 0xb4 || b[1] == 0xb5)
		return true;
	return p.n + 3 <= len && p.f3 && b[1] == 0xae && b[2] >= 0xc8 && b[2] <= 0xdf;
}

/* int $0x80, sysenter */
bool nondet_other(const uint8_t *b, unsigned len)
{
	return b && len >= 2 &&
	       ((b[len - 2] == 0xcd && b[len - 1] == 0x80) || (b[len - 2] == 0x0f && b[len - 1] == 0x34));
}
