/* SPDX-License-Identifier: MIT
 *
 * disc_head.c - see disc_head.h
 */
#include "disc_head.h"
#include <string.h>
#include "disc.h"
#include "nondet.h"

/* Control transfer of an instruction; -1 where relocation is not supported (SDM Vol. 2). */
static int kind_of(const ZydisDecodedInstruction *in)
{
	uint8_t op = in->opcode;

	if (in->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT) {
		if (op >= 0x70 && op <= 0x7f)
			return K_JCC8;
		switch (op) {
		case 0xe0:
		case 0xe1:
		case 0xe2:
		case 0xe3:
			return K_JCC8;
		case 0xe8:
			return K_CALL;
		case 0xe9:
			return K_JMP32;
		case 0xeb:
			return K_JMP8;
		case 0xc2:
		case 0xc3:
			return K_RET;
		case 0xcc:
		case 0xf4:
			return K_HALT;
		case 0xca:
		case 0xcb:
		case 0xcd:
		case 0xcf:
		case 0xf1:
			return -1;
		case 0xc7: /* with a 16-bit distance xbegin's target would lose its upper bits */
			if (in->mnemonic != ZYDIS_MNEMONIC_XBEGIN)
				return K_NEXT;
			return in->operand_width == 16 ? -1 : K_JCC32;
		case 0xff:
			switch (in->raw.modrm.reg) {
			case 2:
				return K_ICALL;
			case 4:
				return K_IJMP;
			case 3:
			case 5:
				return -1;
			}
		}
		return K_NEXT;
	}
	if (in->opcode_map == ZYDIS_OPCODE_MAP_0F) {
		if (op >= 0x80 && op <= 0x8f)
			return in->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY ? K_JCC32 : K_NEXT;
		switch (in->mnemonic) {
		case ZYDIS_MNEMONIC_SYSCALL:
			return K_SYSCALL;
		case ZYDIS_MNEMONIC_UD0:
		case ZYDIS_MNEMONIC_UD1:
		case ZYDIS_MNEMONIC_UD2:
			return K_HALT;
		case ZYDIS_MNEMONIC_SYSRET:
		case ZYDIS_MNEMONIC_SYSENTER:
		case ZYDIS_MNEMONIC_SYSEXIT:
		case ZYDIS_MNEMONIC_RSM:
			return -1;
		default:
			return K_NEXT;
		}
	}
	return K_NEXT;
}

static uint16_t flags_of(const ZydisDecodedInstruction *in, const uint8_t *b)
{
	bool def = in->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;
	uint16_t f = 0;

	if (in->attributes & ZYDIS_ATTRIB_HAS_MODRM) {
		if (in->raw.modrm.mod == 0 && in->raw.modrm.rm == 5)
			f |= H_RIP;
		else if (in->raw.modrm.mod != 3 && in->raw.disp.size == 32)
			f |= H_ABS;
	}
	if (def && in->opcode == 0x8d)
		f |= H_LEA;
	if (in->opcode_map == ZYDIS_OPCODE_MAP_0F && in->opcode >= 0x18 && in->opcode <= 0x1f)
		f |= H_HINT;
	if (in->raw.imm[0].size == 32 && !in->raw.imm[0].is_relative)
		f |= H_IMM32 | (in->raw.imm[0].is_signed ? H_SIGNED : 0);
	if (in->mnemonic == ZYDIS_MNEMONIC_INT3)
		f |= H_INT3;
	if (in->mnemonic == ZYDIS_MNEMONIC_XBEGIN || in->mnemonic == ZYDIS_MNEMONIC_INT)
		f |= H_GOES_ON;
	if (nondet_base(b, in->length))
		f |= H_BASE;
	return f;
}

static uint64_t first(uint64_t bytes, unsigned n)
{
	return bytes & ((1ull << 8 * n) - 1);
}

static struct head *slot(struct head_memo *memo, uint64_t bytes, unsigned n)
{
	return &memo->slot[((bytes + n) * 0x9e3779b97f4a7c15u >> 40) % HEAD_SLOTS];
}

static uint8_t *more(struct head_memo *memo, const uint8_t *b)
{
	return &memo->more[(b[0] << 4 ^ b[1]) % sizeof(memo->more)];
}

static bool decode(struct head_memo *memo, const ZydisDecoder *minimal, const uint8_t *b, uint32_t avail,
		   struct head *h)
{
	ZydisDecodedInstruction in;
	uint64_t bytes;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(minimal, NULL, b, avail < 15 ? avail : 15, &in)))
		return false;
	*h = (struct head){.n = head_bytes(&in),
			   .len = in.length,
			   .kind = kind_of(&in),
			   .flags = flags_of(&in, b),
			   .disp = in.raw.disp.offset,
			   .imm = in.raw.imm[0].offset};
	if (avail >= 15 && h->n && h->n <= HEAD_MAX) {
		memcpy(&bytes, b, 8);
		h->bytes = first(bytes, h->n);
		*slot(memo, h->bytes, h->n) = *h;
		*(h->n == 1 ? &memo->one[b[0]] : more(memo, b)) |= 1u << h->n;
	}
	return true;
}

bool disc_head(struct head_memo *memo, const ZydisDecoder *minimal, const uint8_t *b, uint32_t avail,
	       struct head *h)
{
	uint64_t bytes;

	if (avail < 15)
		return decode(memo, minimal, b, avail, h);
	memcpy(&bytes, b, 8);
	for (unsigned lens = memo->one[b[0]] | *more(memo, b); lens; lens &= lens - 1) {
		unsigned n = (unsigned)__builtin_ctz(lens);
		const struct head *x = slot(memo, first(bytes, n), n);

		if (x->n == n && x->bytes == first(bytes, n)) {
			*h = *x;
			return true;
		}
	}
	return decode(memo, minimal, b, avail, h);
}
