/* SPDX-License-Identifier: MIT
 *
 * pt_insn.c - the instructions of a block
 *
 * libipt says where a block begins and ends and how many instructions it has: they follow each other, or are
 * direct jumps and calls. Each is disassembled once and remembered.
 */
#include <Zydis/Zydis.h>
#include <stdlib.h>
#include "pt.h"

#define NCACHE (1u << 13) /* direct mapped */

struct ptinsn {
	const struct ptimg *img;
	ZydisDecoder dec[4]; /* by enum pt_exec_mode */
	struct {
		uint64_t ip, next;
		enum pt_exec_mode mode; /* ptem_unknown: empty */
	} cache[NCACHE];
};

struct ptinsn *ptinsn_new(const struct ptimg *img)
{
	struct ptinsn *c = xcalloc(1, sizeof(*c));

	c->img = img;
	ZydisDecoderInit(&c->dec[ptem_16bit], ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16);
	ZydisDecoderInit(&c->dec[ptem_32bit], ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32);
	ZydisDecoderInit(&c->dec[ptem_64bit], ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return c;
}

void ptinsn_free(struct ptinsn *c)
{
	free(c);
}

bool ptinsn_next(struct ptinsn *c, uint64_t ip, enum pt_exec_mode mode, uint64_t *next)
{
	uint32_t i = (uint32_t)(ip ^ ip >> 16) % NCACHE;
	ZydisDecodedInstruction in;
	uint8_t b[ZYDIS_MAX_INSTRUCTION_LENGTH];
	size_t n;

	if (mode == ptem_unknown)
		return false;
	if (c->cache[i].ip == ip && c->cache[i].mode == mode) {
		*next = c->cache[i].next;
		return true;
	}
	n = ptimg_read(c->img, ip, b, sizeof(b));
	if (!n || !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&c->dec[mode], NULL, b, n, &in)))
		return false;
	*next = ip + in.length;
	if (in.meta.category == ZYDIS_CATEGORY_UNCOND_BR || in.meta.category == ZYDIS_CATEGORY_CALL)
		*next += in.raw.imm[0].is_relative ? (uint64_t)in.raw.imm[0].value.s : 0;
	if (mode == ptem_32bit)
		*next = (uint32_t)*next;
	c->cache[i].ip = ip;
	c->cache[i].mode = mode;
	c->cache[i].next = *next;
	return true;
}
