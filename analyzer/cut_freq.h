/* SPDX-License-Identifier: MIT
 *
 * cut_freq.h - between the run counts of blocks and the probabilities of branches
 */
#ifndef CUT_FREQ_H
#define CUT_FREQ_H

#include "cut.h"

struct freq {
	const struct gr *gr;
	uint32_t *order, n; /* postorder */
	uint32_t *rank; /* position in it: control goes down, except where it goes back */
	uint32_t *seen, *fill; /* for one pass, per block */
	uint8_t *dead; /* leads only to where control ends */
	struct freq_way {
		const uint32_t *to; /* n ways on from block b that have not been taken */
		uint32_t n, b;
	} * stack;
	double *taken; /* per block that ends in a branch: how likely it is taken */
	struct freq_node {
		double runs; /* per activation */
		double count; /* blocks that run as often */
		uint32_t ways; /* among how many equal edges its runs are divided */
		uint32_t first, end; /* its edges: those that go back, what comes from outside, those ahead */
		uint32_t back; /* how many go back */
		bool loop; /* in a loop or behind one */
	} * node;
	double *out; /* what each way out of a block gets, before its probability; and behind the blocks', from outside */
	uint32_t *same; /* per block: the one whose runs are its own */
	struct freq_edge {
		double p;
		uint32_t from;
		bool last; /* of a block */
	} * edge;
};

/* cut_prob.c: order, rank and dead are there */
double prob_taken(const struct freq *f, uint32_t b);

#endif
