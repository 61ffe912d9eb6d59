/* SPDX-License-Identifier: MIT
 *
 * graph_order.h - the blocks that wait for a visit of a pass: the first in order is next, or the last
 */
#ifndef GRAPH_ORDER_H
#define GRAPH_ORDER_H

#include "plan.h"

/* fills order, place; nothing waits. false: no memory */
bool gr_order(struct gr *gr);

static inline void gr_wait(struct gr *gr, uint32_t block)
{
	uint32_t p = gr->place[block];

	gr->wait[p / 64] |= 1ull << p % 64;
	if (p / 64 < gr->from)
		gr->from = p / 64;
	if (p / 64 > gr->to)
		gr->to = p / 64;
}

/* AN_NONE: none waits */
static inline uint32_t gr_first(struct gr *gr)
{
	for (; gr->from <= gr->to; gr->from++) {
		uint64_t *w = &gr->wait[gr->from];

		if (*w) {
			uint32_t p = gr->from * 64 + (uint32_t)__builtin_ctzll(*w);

			*w &= *w - 1;
			return gr->order[p];
		}
	}
	gr->from = AN_NONE;
	gr->to = 0;
	return AN_NONE;
}

static inline uint32_t gr_last(struct gr *gr)
{
	for (; gr->from <= gr->to && gr->to != AN_NONE; gr->to--) {
		uint64_t *w = &gr->wait[gr->to];

		if (*w) {
			uint32_t k = 63 - (uint32_t)__builtin_clzll(*w);

			*w &= ~(1ull << k);
			return gr->order[gr->to * 64 + k];
		}
	}
	gr->from = AN_NONE;
	gr->to = 0;
	return AN_NONE;
}

#endif
