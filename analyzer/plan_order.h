/* SPDX-License-Identifier: MIT
 *
 * plan_order.h - call cycles: order and first summaries
 */
#ifndef PLAN_ORDER_H
#define PLAN_ORDER_H

#include "plan.h"

struct order_turn {
	uint32_t group;
	bool early; /* before a callee's: a plan would not last */
};
/* order_cycle - in which order the groups g[0 … n-1] of component comp[g[0]] are to be summed up: out[0 … *nout-1], some
 * of them twice; room for 2 n. comp: of every group of the module. place: scratch, an entry a group of the module; only
 * those of g[] are written. 0, -1 no memory. */
int order_cycle(const struct module *m, const uint32_t *comp, uint32_t *place, const uint32_t *g, uint32_t n,
		struct order_turn *out, uint32_t *nout);
/* order_seed - maywrite of the groups of a cycle, as far as instructions and callees tell without a plan */
void order_seed(struct module *m, const uint32_t *g, uint32_t n);

/* does the group call itself, or jump to itself as to a callee? */
bool order_itself(const struct an_group *g);

#endif
