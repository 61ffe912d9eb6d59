/* SPDX-License-Identifier: MIT
 *
 * discover_read.c - code whose bytes are read as data through a computed address
 *
 *     lea  f(%rip),%rsi
 *     movzbl (%rsi,%rcx),%eax      what f's first bytes are matters: no patch may stand there
 *
 * How far such a read reaches is not known, so f's piece stays opaque. The register is followed along
 * the instructions that come next; an address that goes to memory or to a callee before it is used
 * to read code is not found (checksums of one's own text; see the limits in the manual).
 */
#include "decode.h"
#include "discover_group.h"
#include "table.h"

enum { AHEAD = 24 };

static bool decode(const struct disc *d, uint32_t v, struct dins *x)
{
	const uint8_t *p = elf_at(d->m, v, IL_LEN(d->il[v - d->lo]));

	return p && decode_full(p, IL_LEN(d->il[v - d->lo]), &x->in, x->op);
}

static bool goes_on(uint8_t kind)
{
	return kind == K_NEXT || kind >= K_RIP || kind == K_JCC8 || kind == K_JCC32;
}

/* Does the operand lead from `to`, which is in reg, into text? A table may have its own place relative to some label. */
static bool reads_text(const struct disc *d, const ZydisDecodedOperand *o, int reg, uint32_t to)
{
	if (tv_gpr(o->mem.base) != reg)
		return tv_gpr(o->mem.index) == reg;
	return disc_in(d, (uint32_t)(to + o->mem.disp.value));
}

/* Is `to`, which the instruction at v puts into a register, the base of a read further on? */
bool disc_read_through(const struct disc *d, uint32_t v, uint32_t to)
{
	struct dins x;
	int reg;

	if (!decode(d, v, &x) || x.op[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    (reg = tv_gpr(x.op[0].reg.value)) < 0)
		return false;
	for (int n = 0; n < AHEAD; n++) {
		bool written = false;

		v += x.in.length;
		if (!disc_in(d, v) || !IL_START(d->il[v - d->lo]) || !goes_on(IL_KIND(d->il[v - d->lo])) ||
		    !decode(d, v, &x))
			return false;
		for (int k = 0; k < x.in.operand_count; k++) {
			const ZydisDecodedOperand *o = &x.op[k];
			bool mem =
				o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->mem.type == ZYDIS_MEMOP_TYPE_MEM;

			if (mem && x.in.mnemonic != ZYDIS_MNEMONIC_NOP &&
			    (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ) && reads_text(d, o, reg, to))
				return true;
			written |= o->type == ZYDIS_OPERAND_TYPE_REGISTER && tv_gpr(o->reg.value) == reg &&
				   (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE);
		}
		if (written)
			return false;
	}
	return false;
}

void disc_code_reads(struct disc *d)
{
	for (uint32_t i = 0; i < d->lea.n + d->fn.n; i++) {
		const struct edge *e = i < d->lea.n ? &d->lea.v[i] : &d->fn.v[i - d->lea.n];
		uint32_t p = disc_piece(d, e->to);

		if (!disc_in(d, e->from) || p == AN_NONE || d->piece.v[p].reason ||
		    !IL_START(d->il[e->from - d->lo]) || !IL_START(d->il[e->to - d->lo]))
			continue;
		if (disc_read_through(d, e->from, e->to))
			d->piece.v[p].reason = MAP_R_DATA_READ;
	}
}
