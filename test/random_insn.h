/* SPDX-License-Identifier: MIT
 *
 * random_insn.h - bytes that are instructions more often than by chance
 */
#ifndef TEST_RANDOM_INSN_H
#define TEST_RANDOM_INSN_H

#include <stdint.h>

static uint64_t seed;

static uint64_t draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* prefixes, escapes and vector prefixes come more often than by chance */
static void random_bytes(uint8_t b[15])
{
	static const uint8_t often[] = {0x66, 0xf2, 0xf3, 0x2e, 0x64, 0x67, 0x0f, 0x0f, 0xc4, 0xc5,
					0x62, 0x8f, 0x40, 0x48, 0x48, 0x49, 0x4c, 0xff, 0xc7, 0x8d};

	for (int i = 0; i < 15; i++)
		b[i] = (uint8_t)draw();
	for (int i = 0; i < 3 && draw() % 2; i++)
		b[i] = often[draw() % sizeof(often)];
}

#endif
