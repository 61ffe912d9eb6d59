/* SPDX-License-Identifier: MIT
 *
 * cut_prob.c - how likely a conditional branch is taken, from what its code looks like
 *
 * The heuristics of Ball and Larus (Branch Prediction for Free, PLDI 1993), each a probability, multiplied
 * as odds as Wu and Larus do (Static Branch Frequency and Program Profile Analysis, MICRO 1994). One more
 * that they could not have: compilers lay out what they hold for unlikely behind a jump.
 */
#include "cut_freq.h"

#define DEAD 0.002 /* to a path that ends in abort and the like */
#define LOOP 0.90 /* back to a loop's head; */
#define EXIT 0.10 /* out of a loop, as against staying in it */
#define EQUAL 0.34 /* operands are equal; a pointer is null */
#define NEGATIVE 0.16 /* a value is below zero, by its sign or against zero */
#define RETURN 0.28 /* leads to a return at once */
#define CALL 0.28 /* leads to a call at once */
#define AHEAD 0.42 /* a jump ahead */
#define COLD 0.02 /* a jump to another part of the function, split off as cold */

static double odds(double p)
{
	return p / (1 - p);
}

/* one of the two ways has a property: multiply the odds of the taken one */
static void weigh(double *o, bool taken, bool next, double p)
{
	if (taken != next)
		*o *= taken ? odds(p) : 1 / odds(p);
}

static bool same_range(const struct an_group *g, uint32_t x, uint32_t y)
{
	for (uint32_t i = 0; i < g->nrange; i++) {
		bool a = x >= g->range[i].start && x < g->range[i].end;
		bool b = y >= g->range[i].start && y < g->range[i].end;

		if (a || b)
			return a && b;
	}
	return true;
}

/* the flow that ends a block, or the one it falls or jumps into */
static uint8_t end_of(const struct gr *gr, uint32_t b)
{
	uint8_t flow = gr_flow(gr, b);
	uint32_t to = gr->g->block[b].succ[flow == FLOW_JMP ? 0 : 1];

	return (flow == FLOW_NEXT || flow == FLOW_JMP) && to != AN_NONE ? gr_flow(gr, to) : flow;
}

double prob_taken(const struct freq *f, uint32_t b)
{
	const struct an_group *g = f->gr->g;
	const struct an_block *ab = &g->block[b];
	uint32_t t = ab->succ[0], n = ab->succ[1], insn = ab->first + ab->n - 1;
	uint8_t cc = f->gr->in[insn].cc;
	double o = 1;

	if (t == AN_NONE || n == AN_NONE) /* a conditional tail jump */
		return RETURN;
	if (f->dead[t] != f->dead[n])
		return f->dead[t] ? DEAD : 1 - DEAD;
	if ((f->rank[t] >= f->rank[b]) != (f->rank[n] >= f->rank[b]))
		return f->rank[t] >= f->rank[b] ? LOOP : 1 - LOOP;
	weigh(&o, g->block[t].depth < ab->depth, g->block[n].depth < ab->depth, EXIT);
	if (cc == 4 || cc == 5) /* e, ne */
		weigh(&o, cc == 4, cc == 5, EQUAL);
	if (cc == 8 || cc == 9) /* s, ns */
		weigh(&o, cc == 8, cc == 9, NEGATIVE);
	weigh(&o, end_of(f->gr, t) == FLOW_RET, end_of(f->gr, n) == FLOW_RET, RETURN);
	weigh(&o, end_of(f->gr, t) == FLOW_CALL, end_of(f->gr, n) == FLOW_CALL, CALL);
	if (!same_range(g, g->insn[insn].vaddr, g->insn[g->block[t].first].vaddr))
		o *= odds(COLD);
	else if (t > b)
		o *= odds(AHEAD);
	return o / (1 + o);
}
