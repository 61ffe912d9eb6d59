/* SPDX-License-Identifier: MIT
 *
 * unit_decode.c - a decoding made from an earlier one is, in every byte, what the decoder says
 *
 * Random bytes; of those that are an instruction, all that follows its head is drawn anew, many times.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "decode.h"
#include "disc_head.h"
#include "random_insn.h"

#define ROUNDS 400000
#define TAILS 4

static void draw_bytes(uint8_t b[15])
{
	random_bytes(b);
	if (draw() % 8 == 0) { /* and those of EVEX, which have fixed bits (SDM Vol. 2, 2.7.1) */
		b[0] = 0x62;
		b[1] = (b[1] & 0xf3) | 1;
		b[2] |= 4;
	}
}

struct full {
	ZydisDecodedInstruction in;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

/* 1 if the two differ */
static int differ(const ZydisDecoder *z, const uint8_t b[15], uint32_t n)
{
	struct full x, y;
	bool is = ZYAN_SUCCESS(ZydisDecoderDecodeFull(z, b, n, &x.in, x.op));

	memset(&y, 0xa5, sizeof(y));
	if (is == decode_full(b, n, &y.in, y.op) && (!is || !memcmp(&x, &y, sizeof(x))))
		return 0;
	fprintf(stderr, "unit_decode: %u bytes of", n);
	for (int i = 0; i < 15; i++)
		fprintf(stderr, " %02x", b[i]);
	fputc('\n', stderr);
	return 1;
}

int main(int argc, char **argv)
{
	unsigned long seen = 0, bad = 0;
	struct full x;
	ZydisDecoder z;

	seed = argc > 1 ? strtoull(argv[1], NULL, 0) | 1 : 0x9e3779b97f4a7c15u;
	ZydisDecoderInit(&z, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (int r = 0; r < ROUNDS && bad < 20; r++) {
		uint8_t b[15];

		draw_bytes(b);
		bad += differ(&z, b, 15);
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&z, b, 15, &x.in, x.op)))
			continue;
		seen++;
		for (int t = 0; t < TAILS; t++) {
			for (unsigned i = head_bytes(&x.in); i < 15; i++)
				b[i] = draw() % 4 ? (uint8_t)draw() : draw() % 2 ? 0 : 0xff;
			bad += differ(&z, b, 15);
			bad += differ(&z, b, x.in.length);
			bad += differ(&z, b, (uint32_t)(draw() % 16));
		}
	}
	printf("unit_decode: %lu instructions, %lu differ\n", seen, bad);
	return bad || !seen;
}
