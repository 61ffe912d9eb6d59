/* SPDX-License-Identifier: MIT
 *
 * graph.c - a group's instructions as one array of ops, and what each op reads
 */
#include "emit.h"
#include "graph_order.h"

/* registers the decoder does not know after a call, besides the flags: what the callee may change
 * for good. An opaque callee follows the psABI. */
static uint32_t call_clobber(const struct gr *gr, uint32_t insn)
{
	const struct an_callee *c;

	if (glue_call(gr->m, gr->g, insn) == CALL_EXT)
		return GR_CALLER_SAVED;
	c = glue_callee(gr->g, insn);
	return gr->m->group[c->group].sum->maywrite & ~(1u << SEM_RSP);
}

uint32_t gr_call_clobber(const struct gr *gr, uint32_t insn)
{
	return gr->b[gr->g->insn[insn].block].clob; /* calls end blocks */
}

static inline const struct form *form_at(const struct gr *gr, uint32_t i, void *tmp)
{
	const struct live *l = gr->g->live;

	return l && l->form && l->form[i] ? l->form[i] : form_of(gr->m, gr->g, i, tmp);
}

/* room for the ops of all instructions */
static bool make_room(struct gr *gr)
{
	_Alignas(struct form) char tmp[FORM_TMP];
	const struct live *l = gr->g->live;
	bool known = l && l->form;
	uint32_t n = known ? l->nop : 0;

	for (uint32_t i = 0; !known && i < gr->g->ninsn; i++) {
		const struct form *f = form_at(gr, i, tmp);

		n += f->n < 0 ? 0 : (uint32_t)f->n;
	}
	gr->op = scratch(n * sizeof(*gr->op));
	gr->note = scratch(n * sizeof(*gr->note));
	return gr->op && gr->note;
}

static int lift_all(struct gr *gr, int *bad)
{
	_Alignas(struct form) char tmp[FORM_TMP];

	if (!make_room(gr))
		return -1;
	for (uint32_t i = 0; i < gr->g->ninsn; i++) {
		const struct an_insn *ai = &gr->g->insn[i];
		const struct form *f = form_at(gr, i, tmp);
		struct gr_insn *gi = &gr->in[i];
		struct gr_note *note;
		struct sem_op *op;

		gi->op = gr->nop;
		if (f->n < 0 || (f->cc == GR_CC_XBEGIN && gr->g->block[ai->block].succ[0] == AN_NONE)) {
			/* the fallback logs eax, and so must be in the group */
			*bad = 1;
			return -1;
		}
		gi->cc = f->cc;
		if (ai->flow == FLOW_SYSCALL) /* the kernel's results come from the mark */
			continue;
		op = gr->op + gr->nop;
		note = gr->note + gr->nop;
		for (int k = 0; k < f->n; k++) {
			op[k] = f->op[k];
			note[k] = form_notes(f)[k];
		}
		form_place(f, gr->m, ai, op);
		gr->written |= gi->writes = f->written;
		gi->rec = f->has_rec;
		gr->writes_df |= f->writes_df;
		gr->nop += (uint32_t)f->n;
	}
	gr->in[gr->g->ninsn].op = gr->nop;
	return 0;
}

static bool same_targets(const struct an_table *x, const struct an_table *y)
{
	return x->ntarget == y->ntarget && !memcmp(x->target, y->target, x->ntarget * sizeof(*x->target));
}

/* the classes that each block is a target of */
static bool link_classes(struct gr *gr)
{
	const struct an_group *g = gr->g;
	uint32_t n = 0, *at;

	for (uint32_t i = 0; i < g->ntable; i++)
		for (uint32_t k = 0; gr->class[i] == i && k < g->table[i].ntarget; k++, n++)
			gr->offirst[g->table[i].target[k] + 1]++;
	gr->of = scratch((n + 1) * sizeof(*gr->of));
	at = scratch((g->nblock + 1) * sizeof(*at));
	for (uint32_t b = 0; b < g->nblock && at; b++) {
		gr->offirst[b + 1] += gr->offirst[b];
		at[b] = gr->offirst[b];
	}
	for (uint32_t i = 0; i < g->ntable && gr->of && at; i++)
		for (uint32_t k = 0; gr->class[i] == i && k < g->table[i].ntarget; k++)
			gr->of[at[g->table[i].target[k]]++] = i;
	return gr->of && at;
}

static bool find_classes(struct gr *gr)
{
	const struct an_group *g = gr->g;

	gr->class = scratch((g->ntable + 1) * sizeof(*gr->class));
	gr->meet = scratch((g->ntable + 1) * sizeof(*gr->meet));
	gr->offirst = scratch_zero((g->nblock + 2) * sizeof(*gr->offirst));
	if (!gr->class || !gr->meet || !gr->offirst)
		return false;
	for (uint32_t i = 0; i < g->ntable; i++) {
		gr->class[i] = i;
		for (uint32_t j = 0; j < i; j++)
			if (gr->class[j] == j && same_targets(&g->table[i], &g->table[j])) {
				gr->class[i] = j;
				break;
			}
	}
	return !g->ntable || link_classes(gr);
}

static struct gr *open_once(const struct module *m, const struct an_group *g, uint32_t mapflags, int *bad)
{
	struct scratch_mark mark = scratch_mark();
	struct gr *gr = scratch_zero(sizeof(*gr));

	*bad = 0;
	if (!gr)
		return NULL;
	gr->mark = mark;
	gr->m = m;
	gr->g = g;
	gr->mapflags = mapflags;
	gr->in = scratch_zero((g->ninsn + 1) * sizeof(*gr->in));
	gr->b = scratch((g->nblock + 1) * sizeof(*gr->b));
	gr->flow = scratch(g->nblock + 1);
	if (!gr->in || !gr->b || !gr->flow)
		goto fail;
	for (uint32_t i = 0; i < g->nblock; i++)
		gr->flow[i] = g->insn[g->block[i].first + g->block[i].n - 1].flow;
	if (!find_classes(gr) || !gr_order(gr) || lift_all(gr, bad) < 0)
		goto fail;
	for (uint32_t i = 0; i < g->nblock; i++) {
		uint8_t flow = gr_flow(gr, i);

		memset(&gr->b[i].deref, 0, sizeof(*gr->b) - offsetof(struct gr_block, deref));
		gr->b[i].stub = (uint8_t)glue_stub(m, g, i);
		if (flow == FLOW_CALL || flow == FLOW_ICALL)
			gr->b[i].clob = call_clobber(gr, g->block[i].first + g->block[i].n - 1);
	}
	gr_range(gr);
	gr_tables(gr);
	if (sp_run(gr) < 0 || gr_know(gr) < 0)
		goto fail;
	gr_deref(gr);
	return gr;
fail:
	gr_close(gr);
	return NULL;
}

struct gr *gr_open(const struct module *m, const struct an_group *g, uint32_t mapflags, int *bad)
{
	bool strays = g->sum->strays;
	struct gr *gr = open_once(m, g, mapflags, bad);

	if (!gr || g->sum->strays == strays)
		return gr;
	gr_close(gr); /* its return sites are others than have been assumed */
	return open_once(m, g, mapflags, bad);
}

void gr_close(struct gr *gr)
{
	if (!gr)
		return;
	cut_close(gr);
	scratch_release(gr->mark);
}
