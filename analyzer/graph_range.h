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

#endif
