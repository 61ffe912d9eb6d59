/* SPDX-License-Identifier: MIT
 *
 * graph_ssa.h - the value graph of a group, for whoever asks where a value comes from (plan_explain.c): SSA on registers,
 * flags, lanes and slots
 */
#ifndef GRAPH_SSA_H
#define GRAPH_SSA_H

#include "plan.h"

#define VG_NVAR (SEM_NREGS + GR_NSLOT) /* variable: a register, or SEM_NREGS + slot */
#define VG_IN 0x80000000u /* a reference is an op, or VG_IN | index into in[] */
#define VG_NOREF 0xffffffffu

struct vg_in { /* a variable at the start of a block, or on the way to a class of jump tables */
	uint32_t block; /* block, or nblock + class */
	uint16_t var;
	uint8_t nw; /* bytes demanded */
};
struct vg_out {
	uint32_t op;
	uint16_t var;
};

struct vg {
	struct scratch_mark mark; /* its arrays are scratch memory from here on */
	struct gr *gr;
	uint32_t (*src)[4]; /* per op: where a, b, the third operand and the slot come from */
	uint8_t *nw; /* per op: bytes demanded of what it defines */
	struct vg_in *in;
	uint32_t nin, capin;
	uint32_t *hash; /* of in[], open addressing */
	uint32_t nhash;
	struct vg_out *out; /* per block: last definitions, by variable */
	uint32_t nout, capout;
	uint32_t *outfirst; /* nblock + 1 */
	uint32_t *jump, *jumpfirst; /* blocks that jump through tables, by class: ntable + 1 */
	uint32_t *work; /* references whose operands are to be demanded */
	uint32_t nwork, capwork;
	bool fail; /* out of memory or over the limit */
};

int vg_open(struct vg *v, struct gr *gr);
void vg_close(struct vg *v);
/* all operands of a reference, with the bytes wanted: calls f(ctx, operand, bytes) */
typedef void (*vg_visit)(void *ctx, uint32_t ref, unsigned w);
void vg_operands(struct vg *v, uint32_t ref, vg_visit f, void *ctx);
void vg_demand(struct vg *v, uint32_t ref, unsigned w); /* mark ref and all it is computed from */
uint32_t vg_end(struct vg *v, uint32_t block, unsigned var); /* a variable at a block's end */

#endif
