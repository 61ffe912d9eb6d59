/* SPDX-License-Identifier: MIT
 *
 * disc_head.h - what the walk asks of an instruction, mostly without decoding it
 *
 * Length and kind of an instruction are decided before its displacement and its immediate: by prefixes, opcode,
 * ModRM and SIB (SDM Vol. 2, 2.1). Those are its head. Heads repeat themselves far more than instructions do, and none
 * is the beginning of another one, so what was found for a head holds for whatever begins with it.
 */
#ifndef DISC_HEAD_H
#define DISC_HEAD_H

#include <stdbool.h>
#include <stdint.h>
#include <Zydis/Zydis.h>

struct head {
	uint64_t bytes; /* of the head, the first lowest; */
	uint8_t n; /* so many: 1 to HEAD_MAX; 0: an empty place of the memo, or a head that is not kept */
	uint8_t len; /* of the instruction */
	int8_t kind; /* K_*, -1 where relocation is not supported */
	uint16_t flags; /* H_* */
	uint8_t disp, imm; /* where they begin, for the flags that name them */
};
enum {
	H_RIP = 1, /* reads or writes memory, or names it, relative to the next instruction by a displacement of 32 bits */
	H_ABS = 2, /* by one of 32 bits and perhaps registers */
	H_LEA = 4,
	H_HINT = 8, /* nops and prefetches: what they name is nobody's data */
	H_IMM32 = 16, /* has an immediate of 32 bits, no branch's distance; */
	H_SIGNED = 32, /* which is extended with its sign */
	H_INT3 = 64,
	H_GOES_ON = 128, /* not supported, but comes back */
	H_BASE = 256, /* nondet_base */
};

/* bytes before displacement and immediate; 0 where an immediate is part of the opcode (3DNow!) */
static inline unsigned head_bytes(const ZydisDecodedInstruction *in)
{
	unsigned n = in->length;

	if (in->encoding == ZYDIS_INSTRUCTION_ENCODING_3DNOW)
		return 0;
	if (in->raw.disp.size && in->raw.disp.offset < n)
		n = in->raw.disp.offset;
	for (int i = 0; i < 2; i++)
		if (in->raw.imm[i].size && in->raw.imm[i].offset < n)
			n = in->raw.imm[i].offset;
	return n;
}

#define HEAD_MAX 6
#define HEAD_SLOTS (1u << 15)

/* Zero at first. */
struct head_memo {
	struct head slot[HEAD_SLOTS];
	/* bit n: there may be heads with n bytes that begin so: by the first byte those with no more; by the first two, roughly */
	uint8_t one[256], more[1u << 12];
};

/* The instruction at b, of which `avail` bytes are readable, at most 15 count. False if it is none. */
bool disc_head(struct head_memo *memo, const ZydisDecoder *minimal, const uint8_t *b, uint32_t avail,
	       struct head *h);

#endif
