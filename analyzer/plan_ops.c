/* SPDX-License-Identifier: MIT
 *
 * plan_ops.c - one group's plan: every block's ops and logs in stream order
 *
 * Per block, in the op array:
 *
 *   entry program   LOG … JMP block                   after an ENTRY or RESYNC mark
 *   return program  [RMARK] LOG … JMP block           only if other edges lead to the block
 *   block           BLOCK [RMARK LOG …] LOG … instructions … control
 *                         return site    AT_BLOCK
 *
 * How many slots each instruction's ops take is kept (insnops): where one begins cannot be seen in them.
 */
#include <stdlib.h>
#include "cut.h"
#include "graph_range.h"
#include "plan_buf.h"
#include "scratch.h"

bool pe_is_return(const struct gr *gr, uint32_t b)
{
	return (gr->g->block[b].flags & AN_B_RETURN) &&
	       (gr->b[b].stub == STUB_RELOAD || gr->b[b].stub == STUB_RETURN);
}

/* log the general registers of `mask` that are needed, ascending */
static void log_needs(struct pe *e, uint32_t bi, uint8_t when, const struct gr_set *need, uint32_t mask)
{
	uint32_t insn = e->gr->g->block[bi].first;
	enum sem_why why = when == AT_STUB ? SEM_WHY_RETURN : when == AT_BLOCK ? SEM_WHY_JOIN : SEM_WHY_ENTRY;

	_Static_assert((GR_X2 & 63) + SEM_NGPR <= 64 && (GR_X4 & 63) + SEM_NGPR <= 64, "each in one word");
	/* with whatever part of it */
	mask &= 0xffffu & (uint32_t)(need->w[0] | need->w[GR_X2 >> 6] >> (GR_X2 & 63) |
				     need->w[GR_X4 >> 6] >> (GR_X4 & 63));
	for (; mask; mask &= mask - 1) {
		unsigned r = (unsigned)__builtin_ctz(mask), w;
		bool sx;

		w = gr_inwidth(e->gr, bi, r, gr_gpr(need, r), &sx);
		pe_log_reg(e, insn, when, r, w, sx, r, why);
	}
}

static void entry_program(struct pe *e, uint32_t bi)
{
	struct gr_block *b = &e->gr->b[bi];

	e->entryop[bi] = AN_NONE;
	if (b->stub != STUB_ENTRY && b->stub != STUB_RESYNC)
		return;
	e->entryop[bi] = e->nop;
	log_needs(e, bi, b->stub == STUB_ENTRY ? AT_ENTRY : AT_RESYNC, &b->need, 0xffffu & ~(1u << SEM_RSP));
	pe_op(e, SEM_JMP, 0, SEM_NONE, SEM_NONE, SEM_NONE, 0);
	pe_target(e, false, PE_BLOCK, bi);
}

/* the call is the last instruction before the block (an.h) */
static uint32_t call_block(const struct gr *gr, uint32_t bi)
{
	return gr->g->insn[gr->g->block[bi].first - 1].block;
}

static void return_logs(struct pe *e, uint32_t bi)
{
	struct gr *gr = e->gr;

	if (gr->b[bi].stub == STUB_RETURN)
		pe_op(e, SEM_RMARK, 0, SEM_NONE, SEM_NONE, SEM_NONE, bi & 0x1f);
	log_needs(e, bi, AT_STUB, &gr->b[bi].need, gr_ret_clobber(gr, call_block(gr, bi)));
}

#define ROUND 32 /* blocks of a loop that is looked at */

/* From loop head bi control goes nowhere but round and round, without calls: only a signal ends that, and nothing
 * else would tell in which turn. The processor's trace tells where there is a branch. */
static bool endless(const struct gr *gr, uint32_t bi)
{
	uint32_t seen[ROUND], n = 1;

	if (!(gr->g->block[bi].flags & AN_B_LOOPHEAD))
		return false;
	seen[0] = bi;
	for (uint32_t i = 0; i < n; i++) {
		const struct an_block *b = &gr->g->block[seen[i]];
		uint8_t flow = gr_flow(gr, seen[i]);
		bool two = flow == FLOW_JCC;

		if ((flow != FLOW_NEXT && flow != FLOW_JMP && !two) || (two && (gr->mapflags & MAP_F_PT)))
			return false;
		for (int s = 0; s < 2; s++) {
			uint32_t to = b->succ[s], k = 0;

			if (to == AN_NONE && (two || b->succ[!s] == AN_NONE))
				return false; /* out of the group */
			while (k < n && seen[k] != to)
				k++;
			if (to == AN_NONE || k < n)
				continue;
			if (n == ROUND)
				return false;
			seen[n++] = to;
		}
	}
	return true;
}

static void block(struct pe *e, uint32_t bi)
{
	struct gr *gr = e->gr;
	const struct an_block *b = &gr->g->block[bi];
	bool ret = pe_is_return(gr, bi), alone = b->npred == 1 && !(b->flags & AN_B_ENTRY);
	uint32_t from;

	entry_program(e, bi);
	e->retop[bi] = AN_NONE;
	if (ret && !alone) {
		e->retop[bi] = e->nop;
		return_logs(e, bi);
		pe_op(e, SEM_JMP, 0, SEM_NONE, SEM_NONE, SEM_NONE, 0);
		pe_target(e, false, PE_BLOCK, bi);
	}
	e->blockop[bi] = e->nop;
	pe_op(e, SEM_BLOCK, 0, SEM_NONE, SEM_NONE, SEM_NONE, bi);
	if (ret && alone) {
		e->retop[bi] = e->blockop[bi];
		return_logs(e, bi);
	}
	log_needs(e, bi, AT_BLOCK, &gr->b[bi].logneed, gr->b[bi].blklog | gr->b[bi].blkforce);
	if (endless(gr, bi)) /* something, so that each turn has its own place in the log */
		pe_log_reg(e, b->first, AT_BLOCK, SEM_RSP, 1, false, SEM_TLAST, SEM_WHY_OTHER);
	pe_insns(e, b->first, b->n);
	from = e->nop - e->insnops[b->first + b->n - 1];
	pe_control(e, bi);
	pe_count(e, b->first + b->n - 1, from);
}

struct plan *pe_run(struct gr *gr)
{
	struct pe e = {.gr = gr};
	struct plan *p = NULL;
	struct scratch_mark mark;

	if ((gr->mapflags & MAP_F_PTW) && cut_freq(gr) < 0) /* what it finds stays with the graph */
		return NULL;
	mark = scratch_mark();
	if (pe_start(&e)) {
		for (uint32_t i = 0; i < gr->g->nblock; i++)
			block(&e, i);
		if (!pe_resolve(&e) && !gr->broken)
			p = pe_take(&e);
	}
	scratch_release(mark);
	return p;
}
