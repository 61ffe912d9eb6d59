/* SPDX-License-Identifier: MIT
 *
 * emit_cycle.h - between the copy's flow graph and the checks in it
 */
#ifndef EMIT_CYCLE_H
#define EMIT_CYCLE_H

#include "emit.h"

#define SHARED 32 /* jump tables at most that several jumps of a group go by */

/* All successors in one array: from start[b] to stop[b]. */
struct flow {
	uint32_t *to, *start, *stop;
	uint32_t *
		end; /* unchecked paths go along those edges but for the ones to checked blocks: up to here */
	uint32_t *as; /* the first block with the same successors, if they are a jump table's */
	uint32_t *
		in; /* bit n: block is in table n of these, which several jumps go by; by one: the number of the table, plus 1 */
	uint8_t *table;
	uint32_t ntable;
	uint8_t *self; /* per block: an edge leads to it itself */
	uint8_t *late; /* one leads to it from itself or a block that is further on */
	bool back; /* there are some of those */
};

void flow_build(struct em *e, struct flow *f); /* in scratch.h's memory */
/* sets chk_body so that no cycle that logs is without */
void cut_cycles(struct em *e, const struct flow *f);

static inline const struct an_insn *last(const struct an_group *g, uint32_t b)
{
	return &g->insn[g->block[b].first + g->block[b].n - 1];
}

#endif
