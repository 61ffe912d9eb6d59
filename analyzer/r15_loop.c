/* SPDX-License-Identifier: MIT
 *
 * r15_loop.c - the program's r15 in a register for the length of a loop
 *
 * A loop that names r15 and leaves some register R alone keeps the program's r15 in R:
 *
 *   P ──▶ edge: mov R,%gs:SPILL1; mov %gs:R15,R; jmp head        head … (R for r15) … ──▶ head
 *   exit: mov R,%gs:R15 (if written); mov %gs:SPILL1,R; jmp X ◀── any edge out of the loop
 *
 * Without this every such instruction would load r15 from the TCB, and where no register is dead
 * also save and restore the borrowed one: a store-to-load chain from one iteration to the next.
 *
 * Only natural loops all of whose blocks are reached inside the copy (no stub, no call or indirect
 * jump in them), without logs that read r15. The address map says r15_reg = R, spill[1] = R.
 */
#include <string.h>
#include "emit.h"
#include "form.h"

/* rsp, rbp, r12, r13 have encodings of their own (r15.c) */
#define ROTATABLE (GPR_ALL & ~(1u << X_RSP | 1u << X_RBP | 1u << 12 | 1u << 13 | 1u << R15))
#define BODY_MAX 64

struct body {
	uint32_t b[BODY_MAX], n;
};

static bool in_body(const struct body *l, uint32_t b)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->b[i] == b)
			return true;
	return false;
}

static bool plain_end(const struct em *e, uint32_t b)
{
	const struct an_block *k = &e->g->block[b];
	const struct an_insn *i = &e->g->insn[k->first + k->n - 1];
	const uint8_t *t = elf_at(e->m, i->vaddr, i->len);

	if (i->flow == FLOW_JCC)
		return k->succ[0] != AN_NONE && k->succ[1] != AN_NONE && t && (t[0] & 0xfc) != 0xe0 &&
		       t[0] != 0x67 && t[0] != 0xc7 && i->len <= 6; /* loop*, jrcxz, xbegin */
	return (i->flow == FLOW_NEXT && k->succ[1] != AN_NONE) ||
	       (i->flow == FLOW_JMP && k->succ[0] != AN_NONE);
}

/* the natural loop of head h: blocks that reach h backwards from its back edges; false: not one */
static bool collect(const struct em *e, uint32_t h, struct body *l)
{
	l->n = 1;
	l->b[0] = h;
	for (uint32_t i = 0; i < l->n; i++) {
		const struct an_block *k = &e->g->block[l->b[i]];

		/* entries have no stub where all calls are direct (keep.c): r15 comes in its slot */
		if (e->stub[l->b[i]] != STUB_NONE || (k->flags & AN_B_ENTRY) || !plain_end(e, l->b[i]) ||
		    e->lid[l->b[i]])
			return false;
		for (uint32_t p = 0; p < k->npred; p++) {
			if (i == 0 && k->pred[p] < h)
				continue; /* the way in (a back edge from below makes it no loop of ours) */
			if (in_body(l, k->pred[p]))
				continue;
			if (l->n == BODY_MAX)
				return false;
			l->b[l->n++] = k->pred[p];
		}
	}
	return l->n > 1 || e->g->block[h].succ[0] == h || e->g->block[h].succ[1] == h;
}

/* general registers that instruction i touches; decoded where they are not kept, or if r15 is one of them. Whether r15 is written */
static bool touches(const struct em *e, uint32_t i, uint32_t *regs, bool *write)
{
	const struct form *f = e->lv->form[i];
	struct dec d;

	if (f)
		*regs |= f->gprs;
	if (f && !(f->gprs >> R15 & 1))
		return true;
	if (dec_insn(e->m, &e->g->insn[i], &d))
		return false;
	*regs |= dec_gprs(&d);
	for (int o = 0; o < d.in.operand_count; o++)
		*write |= d.op[o].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			  dec_gpr(d.op[o].reg.value) == (int)R15 &&
			  (d.op[o].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE);
	return true;
}

/* registers the loop touches; whether r15 is read or written; false: cannot be done */
static bool touched(const struct em *e, const struct body *l, uint32_t *regs, bool *write)
{
	*regs = 0;
	*write = false;
	for (uint32_t n = 0; n < l->n; n++) {
		const struct an_block *k = &e->g->block[l->b[n]];

		for (uint32_t i = k->first; i < k->first + k->n; i++)
			if (!touches(e, i, regs, write))
				return false;
		for (uint32_t i = e->logfirst[l->b[n]]; i < e->logfirst[l->b[n] + 1]; i++) {
			const struct plan_log *p = &e->p->log[i];

			if ((p->what == LOG_REG || p->what == LOG_PTW) && p->reg == R15)
				return false;
			if (p->what == LOG_REG || p->what == LOG_PTW)
				*regs |= 1u << p->reg;
			if (p->what == LOG_EA || p->what == LOG_TARGET || p->what == LOG_TSC)
				return false;
		}
	}
	return *regs >> R15 & 1;
}

/* every instruction of the loop that names r15 can name r instead */
static bool encodable(const struct em *e, const struct body *l, unsigned r)
{
	uint8_t out[16];
	struct dec d;

	for (uint32_t n = 0; n < l->n; n++) {
		const struct an_block *k = &e->g->block[l->b[n]];

		for (uint32_t i = k->first; i < k->first + k->n; i++) {
			const struct form *f = e->lv->form[i];

			if (f && !(f->gprs >> R15 & 1))
				continue;
			if (dec_insn(e->m, &e->g->insn[i], &d) || (r15_named(&d) && r15_patch(&d, r, out)))
				return false;
		}
	}
	return true;
}

static void rotate(struct em *e, uint32_t h)
{
	struct body l;
	uint32_t regs;
	bool write;

	if (e->nrot == 254 || !collect(e, h, &l) || !touched(e, &l, &regs, &write))
		return;
	for (unsigned r = 0; r < 16; r++) {
		if (!((ROTATABLE & ~regs) >> r & 1) || !encodable(e, &l, r))
			continue;
		e->rot = code_more(e->rot, e->nrot, &e->caprot, sizeof(*e->rot));
		e->rot[e->nrot++] = (struct rot){r, write};
		for (uint32_t i = 0; i < l.n; i++)
			e->lid[l.b[i]] = e->nrot;
		return;
	}
}

#define DEEPEST 8

/* outer loops first: the longest stretch without memory traffic */
void rot_plan(struct em *e)
{
	uint32_t deep = 0; /* depths at which there are loops */

	for (uint32_t b = 0; b < e->g->nblock; b++)
		if ((e->g->block[b].flags & AN_B_LOOPHEAD) && e->g->block[b].depth < DEEPEST)
			deep |= 1u << e->g->block[b].depth;
	for (; deep; deep &= deep - 1)
		for (uint32_t b = 0; b < e->g->nblock; b++)
			if ((e->g->block[b].flags & AN_B_LOOPHEAD) &&
			    e->g->block[b].depth == (uint32_t)__builtin_ctz(deep) && !e->lid[b])
				rotate(e, b);
}

/* the label that control from block b to block `to` goes to */
uint32_t rot_label(struct em *e, uint32_t b, uint32_t to)
{
	struct edge *x;

	if (e->lid[b] == e->lid[to])
		return e->body[to];
	for (uint32_t i = 0; i < e->nedge; i++)
		if (e->edge[i].from == e->lid[b] && e->edge[i].to == to)
			return e->edge[i].label;
	e->edge = code_more(e->edge, e->nedge, &e->capedge, sizeof(*e->edge));
	x = &e->edge[e->nedge++];
	*x = (struct edge){code_label(&e->c), e->lid[b], to};
	return x->label;
}

void rot_edges(struct em *e)
{
	struct code *c = &e->c;

	for (uint32_t i = 0; i < e->nedge; i++) {
		const struct edge *x = &e->edge[i];
		const struct rot *out = x->from ? &e->rot[x->from - 1] : NULL;
		const struct rot *in = e->lid[x->to] ? &e->rot[e->lid[x->to] - 1] : NULL;

		e->cur_rot = out ? out->reg : NOREG;
		state(e, e->g->insn[e->g->block[x->to].first].vaddr);
		c->off = e->off_in[x->to];
		code_here(c, x->label);
		if (out) {
			if (out->write)
				code_gs(c, 0x89, out->reg, TCB_R15, true);
			c->cur.r15_reg = NOREG;
			code_gs(c, 0x8b, out->reg, TCB_SPILL1, true);
			c->cur.spill[1] = NOREG;
		}
		if (in) {
			code_gs(c, 0x89, in->reg, TCB_SPILL1, true);
			c->cur.spill[1] = in->reg;
			code_gs(c, 0x8b, in->reg, TCB_R15, true);
			c->cur.r15_reg = in->reg;
		}
		code_jmp(c, e->body[x->to]);
	}
	e->cur_rot = NOREG;
}
