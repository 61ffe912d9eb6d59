/* SPDX-License-Identifier: MIT
 *
 * graph_form.c - what the planner knows of ops from the bytes of their instruction alone
 *
 * Found once for all instructions with these bytes (form.h): the ops' notes as they are before any pass, and what the
 * passes would find anew at each visit of a block: operands in an imm, kinds of ops, results whose bits no operand changes.
 */
#include "form.h"
#include "graph_range.h"
#include "plan.h"
#include "sem_eval.h"

/* x86 condition code of a jcc, 0xff for the others */
static uint8_t jcc_code(const ZydisDecodedInstruction *in)
{
	if (in->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (in->opcode & 0xf0) == 0x70)
		return in->opcode & 15;
	if (in->opcode_map == ZYDIS_OPCODE_MAP_0F && (in->opcode & 0xf0) == 0x80)
		return in->opcode & 15;
	return in->mnemonic == ZYDIS_MNEMONIC_XBEGIN ? GR_CC_XBEGIN : GR_CC_NONE;
}

/* rep cmps, scas: what the lifter calls unknown is rcx after the instruction, which can be logged */
static void note_count(const struct form *f, struct gr_note *note, int rep)
{
	const struct sem_vec *v = (const struct sem_vec *)&f->op[rep + 1];

	if (v->count < SEM_T0 || v->count > SEM_TLAST)
		return;
	for (int k = rep; k-- > 0;)
		if (f->op[k].op == SEM_SUB && f->op[k].dst == v->count && f->op[k].a == SEM_RCX)
			for (int j = k; j-- > 0;)
				if (f->op[j].op == SEM_UNK && f->op[j].dst == f->op[k].b) {
					note[j].flags |= GN_COUNT;
					return;
				}
}

/* popf: nothing holds DF but the word it comes from, which can be logged before the instruction */
static void note_flags(const struct form *f, struct gr_note *note, int df)
{
	uint16_t from = f->op[df].op == SEM_AND ? f->op[df].a : SEM_NONE;

	for (int k = df; from != SEM_NONE && k-- > 0;) {
		const struct sem_op *op = &f->op[k];

		if (op->dst != from || !gr_is_value(op))
			continue;
		if (op->op == SEM_LOAD && op->w == 8)
			note[k].flags |= GN_COUNT;
		if (op->op != SEM_SHR && op->op != SEM_MOV)
			return;
		from = op->a;
	}
}

static uint8_t value_kind(const struct sem_op *op)
{
	bool flag = op->dst == SEM_FC || op->dst == SEM_FR;

	switch (op->op) {
	case SEM_LOAD:
		return GK_LOAD;
	case SEM_ADD:
	case SEM_SUB:
		return GK_SUM;
	case SEM_LEA:
		return GK_LEA;
	case SEM_IMM:
		return op->dst < 64 && !flag ? GK_IMM : GK_ASIDE;
	case SEM_MODADDR:
		return op->dst < 64 && !flag ? GK_MODADDR : GK_ASIDE;
	case SEM_MOV:
		if (op->w == 8 && op->dst < 64 && !flag)
			return GK_COPY;
		break;
	case SEM_AND:
		if (op->w == 8 && op->dst == SEM_RSP && op->b == SEM_NONE)
			return GK_ALIGN;
		break;
	}
	/* what is compared is not given away; lanes that are made of lanes */
	if (flag || (op->dst >= 64 && op->a >= 64 && op->b >= 64 && sem_third(op) >= 64))
		return GK_ASIDE;
	return GK_VALUE;
}

static uint8_t kind_of(const struct sem_op *op)
{
	if (op->op == SEM_STORE)
		return GK_STORE;
	if (op->op == SEM_REC)
		return GK_REC;
	if (gr_has_slot2(op))
		return GK_GROUP;
	return gr_is_value(op) ? value_kind(op) : GK_NONE;
}

static void note_value(struct form *f, struct gr_note *note, int k)
{
	const struct sem_op *op = &f->op[k];

	if (op->dst < SEM_NGPR)
		f->written |= 1u << op->dst;
	if (op->dst == SEM_DF) {
		f->writes_df = true;
		note_flags(f, note, k);
	}
	if (op->op == SEM_LOAD && op->a == SEM_FSBASE && op->imm == 0 && op->w == 8)
		note[k].flags |= GN_SELF;
}

void gr_form(struct form *f, const ZydisDecodedInstruction *in, uint8_t flow)
{
	struct gr_note *note = form_notes(f);
	uint32_t rec = 0;

	f->cc = flow == FLOW_JCC ? jcc_code(in) : GR_CC_NONE;
	f->written = 0;
	f->writes_df = f->has_rec = false;
	memset(note, 0, (size_t)f->n * sizeof(*note));
	for (int k = 0; k < f->n; k++) {
		const struct sem_op *op = &f->op[k];

		note[k].slot = GR_NOSLOT;
		note[k].third = sem_third(op) < SEM_NREGS ? sem_third(op) : SEM_NONE;
		note[k].kind = kind_of(op);
		note[k].range = range_kind(op, &note[k].rng);
		if (op->op == SEM_REC) {
			note[k].ea = rec < SEM_EA_MAX ? f->ea[rec] : (struct sem_ea){SEM_EA_NONE, 0, 0};
			rec++;
			f->has_rec = true;
		}
		if (op->op == SEM_RECREP)
			note_count(f, note, k);
		if (note[k].kind >= GK_VALUES)
			note_value(f, note, k);
		if (note[k].kind == GK_GROUP && k + 1 < f->n)
			note[++k] = (struct gr_note){.flags = GN_SLOT2, .slot = GR_NOSLOT, .third = SEM_NONE};
	}
}
