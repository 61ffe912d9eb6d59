/* SPDX-License-Identifier: MIT
 *
 * decode.c - see decode.h
 *
 * What is kept stays, so lookups take no lock; of two heads with one place the first keeps it. Vector encodings are not
 * kept: their displacements are scaled, and immediates name registers.
 */
#include "decode.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "disc_head.h"

#define SLOTS (1u << 13)

struct known {
	uint64_t head; /* the first byte lowest */
	uint8_t n; /* bytes of it */
	int8_t mem, imm; /* operands that the numbers go into, too; -1: none */
	ZydisDecodedInstruction in;
	ZydisDecodedOperand op[];
};

static _Atomic(struct known *) table[SLOTS];
/* bit n: there may be heads with n bytes that begin so: by the first byte, or (more than one) by two, roughly */
static atomic_uchar one[256], more[1u << 12];

static atomic_uchar *lens(const uint8_t *b, unsigned n)
{
	return n == 1 ? &one[b[0]] : &more[(b[0] << 4 ^ b[1]) % sizeof(more)];
}

static _Atomic(struct known *) *slot(uint64_t head, unsigned n)
{
	return &table[((head + n) * 0x9e3779b97f4a7c15u >> 40) % SLOTS];
}

static uint64_t first(uint64_t bytes, unsigned n)
{
	return bytes & ((1ull << 8 * n) - 1);
}

/* a number of so many bits */
static int64_t number(const uint8_t *b, unsigned bits, bool is_signed)
{
	uint64_t v = 0;

	memcpy(&v, b, bits / 8);
	if (!is_signed || bits == 64)
		return (int64_t)v;
	return (int64_t)(v << (64 - bits)) >> (64 - bits);
}

/* the operand of that type; -1 if there is none, -2 if several */
static int only(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op, ZydisOperandType type)
{
	int found = -1;

	for (int i = 0; i < in->operand_count; i++)
		if (op[i].type == type &&
		    (type != ZYDIS_OPERAND_TYPE_MEMORY || op[i].mem.disp.has_displacement))
			found = found == -1 ? i : -2;
	return found;
}

static void keep(const uint8_t *b, const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op)
{
	unsigned n = head_bytes(in);
	struct known *k, *other = NULL;
	_Atomic(struct known *) *place;
	int mem = -1, imm = -1;
	uint64_t bytes = 0;

	if (in->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY || !n || n > HEAD_MAX || in->raw.imm[1].size)
		return;
	if (in->raw.disp.size)
		mem = only(in, op, ZYDIS_OPERAND_TYPE_MEMORY);
	if (in->raw.imm[0].size)
		imm = only(in, op, ZYDIS_OPERAND_TYPE_IMMEDIATE);
	if ((in->raw.disp.size && mem < 0) || (in->raw.imm[0].size && imm < 0))
		return;
	memcpy(&bytes, b, n);
	place = slot(bytes, n);
	if (atomic_load_explicit(place, memory_order_relaxed) ||
	    !(k = malloc(sizeof(*k) + in->operand_count * sizeof(*op))))
		return;
	*k = (struct known){
		.head = bytes, .n = (uint8_t)n, .mem = (int8_t)mem, .imm = (int8_t)imm, .in = *in};
	memcpy(k->op, op, in->operand_count * sizeof(*op));
	if (atomic_compare_exchange_strong(place, &other, k))
		atomic_fetch_or_explicit(lens(b, n), (unsigned char)(1u << n), memory_order_release);
	else
		free(k);
}

static void copy(const struct known *k, const uint8_t *b, ZydisDecodedInstruction *in,
		 ZydisDecodedOperand *op)
{
	uint32_t n = k->in.operand_count;

	*in = k->in;
	memcpy(op, k->op, n * sizeof(*op));
	memset(op + n, 0, (ZYDIS_MAX_OPERAND_COUNT - n) * sizeof(*op));
	if (k->mem >= 0)
		in->raw.disp.value = op[k->mem].mem.disp.value =
			number(b + in->raw.disp.offset, in->raw.disp.size, true);
	if (k->imm >= 0)
		in->raw.imm[0].value.s = op[k->imm].imm.value.s =
			number(b + in->raw.imm[0].offset, in->raw.imm[0].size, in->raw.imm[0].is_signed);
}

bool decode_full(const uint8_t *b, uint32_t n, ZydisDecodedInstruction *in,
		 ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT])
{
	uint64_t bytes = 0;
	ZydisDecoder z;

	if (n) {
		memcpy(&bytes, b, n < 8 ? n : 8);
		for (unsigned m = atomic_load_explicit(lens(b, 1), memory_order_acquire) |
				  (n > 1 ? atomic_load_explicit(lens(b, 2), memory_order_acquire) : 0);
		     m; m &= m - 1) {
			unsigned len = (unsigned)__builtin_ctz(m);
			const struct known *k =
				atomic_load_explicit(slot(first(bytes, len), len), memory_order_acquire);

			if (k && k->n == len && k->head == first(bytes, len) && k->in.length <= n) {
				copy(k, b, in, op);
				return true;
			}
		}
	}
	ZydisDecoderInit(&z, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&z, b, n, in, op)))
		return false;
	keep(b, in, op);
	return true;
}
