/* SPDX-License-Identifier: MIT
 *
 * unit_head.c - whatever follows the head of an instruction, the memo of heads says what a decoder says
 *
 * Random bytes; of those that are an instruction whose head is kept, what follows the head is drawn anew. The memo has
 * to know them without a decoder, and to say what a decoder without a memo says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "disc_head.h"
#include "random_insn.h"

#define ROUNDS 400000
#define TAILS 4

static bool same(const struct head *x, const struct head *y)
{
	return x->len == y->len && x->kind == y->kind && x->flags == y->flags && x->n == y->n &&
	       (!(x->flags & (H_RIP | H_ABS)) || x->disp == y->disp) &&
	       (!(x->flags & H_IMM32) || x->imm == y->imm);
}

static int differ(const uint8_t b[15], const char *what)
{
	fprintf(stderr, "unit_head: %s:", what);
	for (int i = 0; i < 15; i++)
		fprintf(stderr, " %02x", b[i]);
	fputc('\n', stderr);
	return 1;
}

int main(int argc, char **argv)
{
	static struct head_memo memo;
	unsigned long kept = 0, bad = 0;
	ZydisDecoder z;

	seed = argc > 1 ? strtoull(argv[1], NULL, 0) | 1 : 0x9e3779b97f4a7c15u;
	ZydisDecoderInit(&z, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderEnableMode(&z, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	for (int i = 0; i < ROUNDS; i++) {
		struct head h, x, y;
		uint8_t b[15];

		random_bytes(b);
		if (!disc_head(&memo, &z, b, 15, &h) || !h.n || h.n > HEAD_MAX || h.len == 15)
			continue;
		kept++;
		for (int k = 0; k < TAILS; k++) {
			for (unsigned n = h.n; n < 15; n++)
				b[n] = (uint8_t)draw();
			if (!disc_head(&memo, NULL, b, 15, &x))
				bad += differ(b, "not in the memo");
			else if (!disc_head(&memo, &z, b, 14, &y)) /* fewer than 15: the memo is not asked */
				bad += differ(b, "no instruction");
			else if (!same(&x, &y))
				bad += differ(b, "not what the decoder says");
		}
	}
	printf("unit_head: %lu heads, %lu differ\n", kept, bad);
	return bad || kept < ROUNDS / 4;
}
