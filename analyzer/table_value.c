/* SPDX-License-Identifier: MIT
 *
 * table_value.c - reaching definitions, and the constants a register may hold
 *
 * Searches go backward from one point over the predecessor lists, on demand: a group has few
 * indirect jumps, and the definitions that matter are near.
 */
#include <string.h>
#include "decode.h"
#include "form.h"
#include "table.h"

bool tv_decode(const struct tctx *t, uint32_t i, struct dins *o)
{
	const struct an_insn *in = &t->g->insn[i];
	const uint8_t *p = elf_at(t->d->m, in->vaddr, in->len);

	return p && decode_full(p, in->len, &o->in, o->op);
}

int tv_gpr(ZydisRegister r)
{
	r = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
	return r >= ZYDIS_REGISTER_RAX && r <= ZYDIS_REGISTER_R15 ? (int)(r - ZYDIS_REGISTER_RAX) : -1;
}

uint32_t tv_form(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op)
{
	uint32_t w = WR_KNOWN;

	for (int k = 0; k < in->operand_count; k++) {
		const ZydisDecodedOperand *p = &op[k];
		int r;

		if (!(p->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (p->type == ZYDIS_OPERAND_TYPE_MEMORY)
			w |= WR_MEM;
		else if (p->type == ZYDIS_OPERAND_TYPE_REGISTER && (r = tv_gpr(p->reg.value)) >= 0)
			w |= 1u << r;
	}
	if (in->cpu_flags && (in->cpu_flags->modified | in->cpu_flags->set_0 | in->cpu_flags->set_1 |
			      in->cpu_flags->undefined))
		w |= WR_FLAGS;
	return w;
}

uint32_t tv_writes(struct tctx *t, uint32_t i)
{
	enum { CALLER_SAVED = 0x0fc7 }; /* psABI: rax rcx rdx rsi rdi r8-r11 */
	_Alignas(struct form) char tmp[FORM_TMP];
	const uint8_t *p;

	if (t->wr[i])
		return t->wr[i];
	switch (t->g->insn[i].flow) {
	case FLOW_CALL:
	case FLOW_ICALL:
		return t->wr[i] = WR_KNOWN | CALLER_SAVED | WR_FLAGS | WR_MEM;
	case FLOW_JCC:
		p = elf_at(t->d->m, t->g->insn[i].vaddr, 1);
		if (!p || (*p != 0x0f && (*p & 0xf0) != 0x70))
			break; /* loop*, xbegin */
		return t->wr[i] = WR_KNOWN;
	case FLOW_JMP:
	case FLOW_IJMP:
		return t->wr[i] = WR_KNOWN;
	}
	return t->wr[i] = form_get(t->d->m, &t->g->insn[i], tmp)->writes;
}

static void add_def(struct defs *o, uint32_t i)
{
	for (uint32_t k = 0; k < o->n; k++)
		if (o->v[k] == i)
			return;
	if (o->n == DEFS_MAX)
		o->open = true;
	else
		o->v[o->n++] = i;
}

/* Scans block b backward from `end` (exclusive); true if reg is defined in it. */
static bool scan_block(struct tctx *t, int reg, uint32_t b, uint32_t end, struct defs *o)
{
	for (uint32_t i = end; i-- > t->g->block[b].first;) {
		if (t->budget)
			t->budget--;
		if (tv_writes(t, i) >> reg & 1) {
			add_def(o, i);
			return true;
		}
	}
	return false;
}

void tv_defs(struct tctx *t, int reg, uint32_t before, struct defs *o)
{
	const struct an_group *g = t->g;
	uint32_t b = g->insn[before].block, n = 0, stamp = ++t->now;

	o->n = 0;
	o->open = false;
	if (scan_block(t, reg, b, before, o))
		return;
	t->stack[n++] = b;
	for (bool first = true; n; first = false) {
		b = t->stack[--n];
		if (!t->budget) {
			o->open = true;
			return;
		}
		if (!first && scan_block(t, reg, b, g->block[b].first + g->block[b].n, o))
			continue;
		if ((g->block[b].flags & (AN_B_ENTRY | AN_B_LANDING)) || !g->block[b].npred)
			o->open = true;
		t->budget -= g->block[b].npred < t->budget ? g->block[b].npred : t->budget;
		for (uint32_t k = 0; k < g->block[b].npred; k++) {
			uint32_t p = g->block[b].pred[k];

			if (t->stamp[p] != stamp) {
				t->stamp[p] = stamp;
				t->stack[n++] = p;
			}
		}
	}
}

bool tv_is_slot(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.index == ZYDIS_REGISTER_NONE &&
	       (op->mem.base == ZYDIS_REGISTER_RSP || op->mem.base == ZYDIS_REGISTER_RBP);
}

static int cmp_slot(const void *a, const void *b)
{
	const struct tslot *x = a, *y = b;

	if (x->base != y->base)
		return x->base - y->base;
	if (x->disp != y->disp)
		return x->disp < y->disp ? -1 : 1;
	return x->insn < y->insn ? -1 : x->insn > y->insn;
}

static void find_slots(struct tctx *t)
{
	struct dins x;

	t->have_slots = true;
	for (uint32_t i = 0; i < t->g->ninsn; i++) {
		struct tslot s = {.insn = i};

		if (!(tv_writes(t, i) & WR_MEM) || t->g->insn[i].flow != FLOW_NEXT || !tv_decode(t, i, &x) ||
		    !tv_is_slot(&x.op[0]))
			continue;
		s.base = (int8_t)tv_gpr(x.op[0].mem.base);
		s.disp = x.op[0].mem.disp.value;
		s.mov = x.in.mnemonic == ZYDIS_MNEMONIC_MOV && x.op[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
		if (!VEC_PUSH(&t->slot, s))
			t->d->nomem = true;
	}
	if (t->slot.n)
		qsort(t->slot.v, t->slot.n, sizeof(*t->slot.v), cmp_slot);
}

/* Compilers do not take the address of a spill slot: its stores are all there is. */
void tv_slot_stores(struct tctx *t, int base, int64_t disp, struct defs *o)
{
	const struct tslot key = {.base = (int8_t)base, .disp = disp};
	uint32_t lo = 0, hi;

	o->n = 0;
	o->open = false;
	if (!t->have_slots)
		find_slots(t);
	for (hi = t->slot.n; lo < hi;) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (cmp_slot(&t->slot.v[mid], &key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < t->slot.n && t->slot.v[lo].base == base && t->slot.v[lo].disp == disp; lo++) {
		if (!t->budget) {
			o->open = true;
			break;
		}
		t->budget--;
		if (t->slot.v[lo].mov)
			add_def(o, t->slot.v[lo].insn);
		else
			o->open = true;
	}
	if (!o->n)
		o->open = true;
}

static void add_const(struct consts *o, uint64_t v)
{
	for (uint32_t k = 0; k < o->n; k++)
		if (o->v[k] == v)
			return;
	if (o->n == CONSTS_MAX)
		o->open = true;
	else
		o->v[o->n++] = v;
}

/* adds what reg may hold before an instruction, plus off */
static void consts_of(struct tctx *t, int reg, uint32_t before, int64_t off, struct consts *o, int depth)
{
	struct consts c;

	tv_consts(t, reg, before, &c, depth - 1);
	for (uint32_t k = 0; k < c.n; k++)
		add_const(o, c.v[k] + off);
	o->open |= c.open;
}

static void const_load(struct tctx *t, const struct dins *x, uint32_t i, struct consts *o, int depth)
{
	const ZydisDecodedOperand *m = &x->op[1];
	struct defs st;
	uint64_t v;
	bool fixed;

	if (m->mem.base == ZYDIS_REGISTER_RIP && m->mem.index == ZYDIS_REGISTER_NONE && m->size == 64) {
		uint64_t a = t->g->insn[i].vaddr + x->in.length + m->mem.disp.value;

		if (a < UINT32_MAX && elf_word(t->d->m, a, &v, &fixed) && fixed)
			add_const(o, v);
		else
			o->open = true;
		return;
	}
	if (!tv_is_slot(m)) {
		o->open = true;
		return;
	}
	tv_slot_stores(t, tv_gpr(m->mem.base), m->mem.disp.value, &st);
	o->open |= st.open;
	for (uint32_t k = 0; k < st.n; k++) {
		struct dins s;

		if (tv_decode(t, st.v[k], &s))
			consts_of(t, tv_gpr(s.op[1].reg.value), st.v[k], 0, o, depth);
	}
}

static void const_def(struct tctx *t, uint32_t i, struct consts *o, int depth)
{
	const ZydisDecodedOperand *a, *b;
	struct dins x;

	if (t->g->insn[i].flow != FLOW_NEXT || !tv_decode(t, i, &x)) {
		o->open = true;
		return;
	}
	a = &x.op[0];
	b = &x.op[1];
	if (a->type != ZYDIS_OPERAND_TYPE_REGISTER || a->size < 32) {
		o->open = true;
		return;
	}
	switch (x.in.mnemonic) {
	case ZYDIS_MNEMONIC_LEA:
		if (b->mem.base == ZYDIS_REGISTER_RIP)
			add_const(o, t->g->insn[i].vaddr + x.in.length + b->mem.disp.value);
		else if (b->mem.index == ZYDIS_REGISTER_NONE && tv_gpr(b->mem.base) >= 0)
			consts_of(t, tv_gpr(b->mem.base), i, b->mem.disp.value, o, depth);
		else
			o->open = true;
		return;
	case ZYDIS_MNEMONIC_MOV:
		if (b->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			add_const(o, a->size == 32 ? (uint32_t)b->imm.value.u : b->imm.value.u);
		else if (b->type == ZYDIS_OPERAND_TYPE_REGISTER && tv_gpr(b->reg.value) >= 0)
			consts_of(t, tv_gpr(b->reg.value), i, 0, o, depth);
		else if (b->type == ZYDIS_OPERAND_TYPE_MEMORY)
			const_load(t, &x, i, o, depth);
		else
			o->open = true;
		return;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (b->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
			consts_of(t, tv_gpr(a->reg.value), i,
				  x.in.mnemonic == ZYDIS_MNEMONIC_ADD ? b->imm.value.s : -b->imm.value.s, o,
				  depth);
			return;
		}
		break;
	case ZYDIS_MNEMONIC_XOR:
		if (b->type == ZYDIS_OPERAND_TYPE_REGISTER && b->reg.value == a->reg.value) {
			add_const(o, 0);
			return;
		}
		break;
	default:
		if (x.in.meta.category == ZYDIS_CATEGORY_CMOV && b->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			consts_of(t, tv_gpr(a->reg.value), i, 0, o, depth);
			consts_of(t, tv_gpr(b->reg.value), i, 0, o, depth);
			return;
		}
	}
	o->open = true;
}

void tv_consts(struct tctx *t, int reg, uint32_t before, struct consts *o, int depth)
{
	struct defs defs;

	o->n = 0;
	o->open = depth <= 0;
	if (depth <= 0)
		return;
	tv_defs(t, reg, before, &defs);
	o->open |= defs.open;
	for (uint32_t k = 0; k < defs.n; k++)
		const_def(t, defs.v[k], o, depth);
}
