/* SPDX-License-Identifier: MIT
 *
 * graph_range.h - how an op takes part in the analysis of ranges, from its instruction's bytes alone
 */
#ifndef GRAPH_RANGE_H
#define GRAPH_RANGE_H

#include "plan.h"

enum range_kind {
	RK_NONE, /* not at all */
	RK_FIXED, /* the result's range is in its note, whatever the operands */
	RK_COPY, /* a's, of which w bytes are taken */
	RK_VALUE, /* it follows from the operands' */
	RK_SUM, /* and one of them may be an address, and the other one an index */
	RK_REC /* the same of a record's address */
};

/* *r: of RK_FIXED, the range */
uint8_t range_kind(const struct sem_op *op, struct gr_rng *r);

extern const uint8_t gr_bytes[65]; /* in how many bytes that many bits are stored: 1, 2, 4, 8 */

/* bytes to log of a value when nw are needed; address: proved to be one. *sx: as LOG_SX reads it */
static inline unsigned gr_width(struct gr_rng r, unsigned nw, bool address, bool *sx)
{
	unsigned z = gr_bytes[r.zb], s = gr_bytes[r.sb];

	/* what GR_ADDR bytes give: sem.h */
	if (s == 8 && (address || r.zb <= 47 || r.sb <= 47))
		s = GR_ADDR;
	*sx = s < z && s < nw;
	return *sx ? s : z < nw ? z : nw;
}

/* bytes to log of the general register that op k of instruction i defines when nw bytes of it are
 * needed: 1, 2, 4, 6, 8; *sx = the register is the sign extension of them */
static inline unsigned gr_logwidth(const struct gr *gr, uint32_t i, uint32_t k, unsigned nw, bool *sx)
{
	unsigned dst = gr->op[k].dst;

	return gr_width(gr->note[k].rng, nw, dst < SEM_NGPR && (gr->in[i].deref >> dst & 1), sx);
}

/* the same of general register r at the start of a block */
static inline unsigned gr_inwidth(const struct gr *gr, uint32_t b, unsigned r, unsigned nw, bool *sx)
{
	return gr_width(gr->b[b].rng[r], nw, gr->b[b].deref >> r & 1, sx);
}

#endif
