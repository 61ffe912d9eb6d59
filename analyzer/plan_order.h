/* SPDX-License-Identifier: MIT
 *
 * plan_order.h - call cycles: order and first summaries
 */
#ifndef PLAN_ORDER_H
#define PLAN_ORDER_H

#include "plan.h"

/* order_cycle - sorts g[0 … n-1], the groups of component comp[g[0]], by when they are to be summed up, and
 * sets first[i] if g[i] comes before one of its callees (itself included). comp: of every group of the
 * module. place: scratch, an entry a group of the module; only those of g[] are written. 0, -1 no memory. */
int order_cycle(const struct module *m, const uint32_t *comp, uint32_t *place, uint32_t *g, uint32_t n,
		uint8_t *first);
/* order_seed - maywrite of the groups of a cycle, as far as instructions and callees tell without a plan */
void order_seed(struct module *m, const uint32_t *g, uint32_t n);

/* does the group call itself, or jump to itself as to a callee? */
bool order_itself(const struct an_group *g);

#endif
