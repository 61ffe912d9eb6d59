/* SPDX-License-Identifier: MIT
 *
 * graph.c - a group's instructions as one array of ops, and what each op reads
 */
#include "form.h"
#include "plan.h"

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

/* x86 condition code of a jcc, 0xff for the others */
static uint8_t jcc_code(const ZydisDecodedInstruction *in)
{
	if (in->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (in->opcode & 0xf0) == 0x70)
		return in->opcode & 15;
	if (in->opcode_map == ZYDIS_OPCODE_MAP_0F && (in->opcode & 0xf0) == 0x80)
		return in->opcode & 15;
	return 0xff;
}

void gr_form(struct form *f, const ZydisDecodedInstruction *in, uint8_t flow)
{
	f->cc = flow == FLOW_JCC ? jcc_code(in) : 0xff;
}

/* the ops of one instruction, nothing noted of them but where records have their addresses from */
static void append(struct gr *gr, const struct form *f, const struct an_insn *i)
{
	const struct sem_op *op = gr->op + gr->nop;
	uint32_t rec = 0;

	form_ops(f, gr->m, i, gr->op + gr->nop);
	memset(gr->note + gr->nop, 0, f->n * sizeof(*gr->note));
	for (int k = 0; k < f->n; k++) {
		if (op[k].op == SEM_REC) {
			gr->note[gr->nop + k].ea =
				rec < SEM_EA_MAX ? f->ea[rec] : (struct sem_ea){SEM_EA_NONE, 0, 0};
			rec++;
		}
		k += gr_has_slot2(&op[k]);
	}
}

/* room for the ops of all instructions */
static bool make_room(struct gr *gr)
{
	_Alignas(struct form) char tmp[FORM_TMP];
	uint32_t n = 0;

	for (uint32_t i = 0; i < gr->g->ninsn; i++) {
		const struct form *f = form_of(gr->m, gr->g, i, tmp);

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
		const struct form *f = form_of(gr->m, gr->g, i, tmp);
		struct gr_insn *gi = &gr->in[i];

		gi->op = gr->nop;
		if (f->n < 0) {
			*bad = 1;
			return -1;
		}
		append(gr, f, ai);
		gi->cc = f->cc;
		/* the kernel's results come from the mark */
		if (ai->flow != FLOW_SYSCALL)
			gr->nop += (uint32_t)f->n;
	}
	gr->in[gr->g->ninsn].op = gr->nop;
	return 0;
}

/* rep cmps, scas: what the lifter calls unknown is rcx after the instruction, which can be logged */
static void note_count(struct gr *gr, uint32_t rep)
{
	const struct sem_vec *v = (const struct sem_vec *)&gr->op[rep + 1];

	if (v->count < SEM_T0 || v->count > SEM_TLAST)
		return;
	for (uint32_t k = rep; k-- > 0 && rep - k < 8;)
		if (gr->op[k].op == SEM_SUB && gr->op[k].dst == v->count && gr->op[k].a == SEM_RCX)
			for (uint32_t j = k; j-- > 0 && k - j < 8;)
				if (gr->op[j].op == SEM_UNK && gr->op[j].dst == gr->op[k].b) {
					gr->note[j].flags |= GN_COUNT;
					return;
				}
}

/* popf: nothing holds DF but the word it comes from, which can be logged before the instruction */
static void note_flags(struct gr *gr, uint32_t df)
{
	uint16_t from = gr->op[df].op == SEM_AND ? gr->op[df].a : SEM_NONE;

	for (uint32_t k = df; from != SEM_NONE && k-- > 0 && df - k < 8;) {
		const struct sem_op *op = &gr->op[k];

		if (op->dst != from || !gr_is_value(op))
			continue;
		if (op->op == SEM_LOAD && op->w == 8)
			gr->note[k].flags |= GN_COUNT;
		if (op->op != SEM_SHR && op->op != SEM_MOV)
			return;
		from = op->a;
	}
}

static void note_ops(struct gr *gr)
{
	for (uint32_t k = 0; k < gr->nop; k++) {
		struct sem_op *op = &gr->op[k];

		gr->note[k].slot = GR_NOSLOT;
		if (gr_has_slot2(op)) {
			if (op->op == SEM_RECREP)
				note_count(gr, k);
			if (++k < gr->nop) {
				gr->note[k].flags = GN_SLOT2;
				gr->note[k].slot = GR_NOSLOT;
			}
			continue;
		}
		if (!gr_is_value(op))
			continue;
		if (op->dst < SEM_NGPR)
			gr->written |= 1u << op->dst;
		if (op->dst == SEM_DF) {
			gr->writes_df = true;
			note_flags(gr, k);
		}
		if (op->op == SEM_LOAD && op->a == SEM_FSBASE && op->imm == 0 && op->w == 8)
			gr->note[k].flags |= GN_SELF;
	}
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
	gr->b = scratch_zero((g->nblock + 1) * sizeof(*gr->b));
	if (!gr->in || !gr->b || !find_classes(gr) || lift_all(gr, bad) < 0)
		goto fail;
	note_ops(gr);
	for (uint32_t i = 0; i < g->nblock; i++) {
		uint8_t flow = gr_flow(gr, i);

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
