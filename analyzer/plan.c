/* SPDX-License-Identifier: MIT
 *
 * plan.c - what a group's copy logs and what the decoder computes (contract: an.h)
 *
 *   cheapest cut ─▶ decisions                                (cut_run)
 *   or, where the group is too large for that: addresses are roots, then the branches that are
 *   known anyhow are computed                                (gr_need, gr_branches)
 *   ─▶ needs ─▶ ops and logs in stream order                 (gr_need, pe_run)
 *
 * The order of SEM_LOG, SEM_VCHK, SEM_RECVEC and SEM_JCC_LOG reads in the ops is the order of the
 * bytes the copy writes; one pass makes both (plan_insn.c states the order).
 */
#include <stdlib.h>
#include "plan.h"

/* plan_solve - decide what is logged; 0 or -1. Where a second run decides the same, what is needed is the same,
 * too: what is logged at the entries besides (gr_need.c) is what was not needed there. */
int plan_solve(struct gr *gr)
{
	bool same;
	int r = cut_run(gr, &same);

	if (r < 0)
		return -1;
	if (same)
		return gr->broken ? -1 : 0;
	if (r > 0 && (gr_need(gr) < 0 || gr_branches(gr) < 0))
		return -1;
	return gr_need(gr);
}

/* Returns NULL when out of memory or when an instruction of the group cannot be handled (which
 * plan_summaries has found before and made the group opaque). */
struct plan *plan_group(const struct module *m, const struct an_group *g, uint32_t mapflags)
{
	struct plan *p = NULL;
	struct gr *gr;
	int bad;

	gr = gr_open(m, g, mapflags, &bad);
	if (gr && plan_solve(gr) == 0)
		p = pe_run(gr);
	gr_close(gr);
	return p;
}

void plan_free(struct plan *p)
{
	if (!p)
		return;
	free(p->log);
	free(p); /* plan_buf.c: the rest is one piece */
}
