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
	uint8_t *seen, *dead; /* dead: leads only to where control ends */
	struct {
		uint32_t b, k;
	} * stack;
	double *taken; /* per block that ends in a branch: how likely it is taken */
	double *runs,
		*last; /* per activation, and behind that what goes back into the next sweep; the sweep before's */
	struct freq_edge {
		double p;
		uint32_t to; /* index in runs */
	} * edge; /* in the order of a sweep */
	uint32_t nedge, capedge;
	uint32_t *last_edge; /* by position in the order: end of the edges of that block */
	uint32_t *ways; /* per block: among how many equal edges its runs are divided */
	bool again; /* something goes back */
};

/* cut_prob.c: order, rank and dead are there */
double prob_taken(const struct freq *f, uint32_t b);

#endif
