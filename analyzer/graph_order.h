/* SPDX-License-Identifier: MIT
 *
 * graph_order.h - the blocks that wait for a visit of a pass
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

/* The other way: sweeps over the blocks as they lie, around and around, for passes whose result depends on the order of
 * visits. A block that waits is visited when its turn comes next. */
static inline void gr_wait_turn(struct gr *gr, uint32_t block)
{
	gr->wait[block / 64] |= 1ull << block % 64;
}

/* the next one after block `at`, AN_NONE: none waits */
static inline uint32_t gr_turn_up(struct gr *gr, uint32_t at)
{
	uint32_t nw = gr->g->nblock / 64 + 1, w = at / 64;
	uint64_t bits = gr->wait[w] & ~1ull << at % 64;

	for (uint32_t k = 0; !bits && k < nw; k++) {
		w = w + 1 < nw ? w + 1 : 0;
		bits = gr->wait[w];
	}
	if (!bits)
		return AN_NONE;
	at = w * 64 + (uint32_t)__builtin_ctzll(bits);
	gr->wait[w] &= ~(1ull << at % 64);
	return at;
}

/* before it */
static inline uint32_t gr_turn_down(struct gr *gr, uint32_t at)
{
	uint32_t nw = gr->g->nblock / 64 + 1, w = at / 64;
	uint64_t bits = gr->wait[w] & ~(~0ull << at % 64);

	for (uint32_t k = 0; !bits && k < nw; k++) {
		w = w ? w - 1 : nw - 1;
		bits = gr->wait[w];
	}
	if (!bits)
		return AN_NONE;
	at = w * 64 + 63 - (uint32_t)__builtin_clzll(bits);
	gr->wait[w] &= ~(1ull << at % 64);
	return at;
}

#endif
