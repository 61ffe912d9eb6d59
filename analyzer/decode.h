/* SPDX-License-Identifier: MIT
 *
 * decode.h - full decodings, most of them made from earlier ones
 *
 * Of an instruction's bytes, what is before its displacement and its immediate (its head: disc_head.h) decides all that a
 * decoder says of it but those two numbers. So the decoding of a head that was met before is copied, and they are put in.
 */
#ifndef DECODE_H
#define DECODE_H

#include <stdbool.h>
#include <stdint.h>
#include <Zydis/Zydis.h>

/* The instruction at b, of which n bytes may be looked at: exactly what ZydisDecoderDecodeFull says in 64-bit mode. False if it
 * is none. From any thread. */
bool decode_full(const uint8_t *b, uint32_t n, ZydisDecodedInstruction *in,
		 ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT]);

#endif
