/* SPDX-License-Identifier: MIT
 *
 * prefix.h - what stands before an instruction's opcode (SDM Vol. 2, 2.1.1, 2.2.1); for legacy encodings
 */
#ifndef PREFIX_H
#define PREFIX_H

#include <stdbool.h>
#include <stdint.h>

struct prefixes {
	unsigned n; /* bytes of them: where the opcode begins, len at most */
	unsigned rex; /* 0 if there is none */
	bool p66, f3, lock;
};

static inline struct prefixes prefixes(const uint8_t *b, unsigned len)
{
	struct prefixes p = {0};

	for (; p.n < len; p.n++) {
		uint8_t c = b[p.n];

		p.p66 |= c == 0x66;
		p.f3 |= c == 0xf3;
		p.lock |= c == 0xf0;
		if (c != 0x66 && c != 0x67 && c != 0xf0 && c != 0xf2 && c != 0xf3 && c != 0x2e && c != 0x36 &&
		    c != 0x3e && c != 0x26 && c != 0x64 && c != 0x65)
			break;
	}
	if (p.n < len && (b[p.n] & 0xf0) == 0x40)
		p.rex = b[p.n++];
	return p;
}

#endif
