/* SPDX-License-Identifier: MIT
 *
 * sem_lift_flow.c - the stack, calls, returns, branches
 *
 * Only data effects; SEM_T0 is the target or the condition (sem_lift.h). The stack is always
 * addressed with 64 bits: 67h does not apply to implicit stack operands, and ss has no base.
 */
#include "sem_lift_int.h"

/* the instruction's hidden memory operand: of push, call, enter on rsp; leave's on rbp */
static opnd hidden(struct lift *l)
{
	for (int i = l->in->operand_count_visible; i < l->in->operand_count; i++)
		if (is_mem(&l->ops[i]))
			return &l->ops[i];
	return NULL;
}

/* an access at rsp + disp, rsp as it is before the instruction */
static void stack(struct lift *l, int64_t disp, unsigned w, enum ptrace_kind kind)
{
	rec(l, hidden(l), (struct ea){SEM_RSP, NONE, 0, disp}, w, kind);
}

static void add_rsp(struct lift *l, int64_t n)
{
	put(l, SEM_LEA, 0, SEM_RSP, SEM_RSP, NONE, n);
}

/* w bytes pushed: the hidden memory operand's size */
static unsigned stack_width(struct lift *l)
{
	return l->in->operand_width == 16 ? 2 : 8;
}

static uint16_t pop_val(struct lift *l, unsigned w)
{
	return val(l, SEM_LOAD, w, SEM_RSP, NONE, 0);
}

static void push_val(struct lift *l, unsigned w, uint16_t v)
{
	put(l, SEM_STORE, w, NONE, SEM_RSP, v, -(int64_t)w);
	add_rsp(l, -(int64_t)w);
}

/* push of a segment register writes at least its 16 bits; the rest of the slot is unknown too */
void lift_push(struct lift *l, int arg)
{
	unsigned w = stack_width(l);

	(void)arg;
	recs(l);
	stack(l, -(int64_t)w, w, PTRACE_W);
	push_val(l, w, rd(l, l->arg[0]));
}

/* The address of `pop mem` based on rsp is computed with rsp after the pop (SDM Vol. 2, POP). */
void lift_pop(struct lift *l, int arg)
{
	unsigned w = stack_width(l);
	opnd o = l->arg[0];
	uint16_t t;

	(void)arg;
	stack(l, 0, w, PTRACE_R);
	if (is_mem(o)) {
		ZydisDecodedOperand m = *o;
		struct ea e;

		if (m.mem.base == ZYDIS_REGISTER_RSP || m.mem.base == ZYDIS_REGISTER_ESP) {
			m.mem.disp.value = (m.mem.disp.has_displacement ? m.mem.disp.value : 0) + w;
			m.mem.disp.has_displacement = ZYAN_TRUE;
		}
		e = ea_of(l, &m, NONE, 0);
		rec(l, o, e, w, PTRACE_W);
		set_at(l, o, e);
		store(l, o, 0, w, pop_val(l, w));
		add_rsp(l, w);
		return;
	}
	if (gpr_of(o->reg.value) < 0) { /* fs, gs */
		l->fail = true;
		return;
	}
	t = pop_val(l, w);
	if (gpr_of(o->reg.value) != SEM_RSP) {
		add_rsp(l, w);
		wr(l, o, t);
	} else if (w == 8) {
		put(l, SEM_MOV, 8, SEM_RSP, t, NONE, 0);
	} else {
		put(l, SEM_INS, w, SEM_RSP, val(l, SEM_LEA, 0, SEM_RSP, NONE, w), t, 0);
	}
}

/* The image holds flags that are not modelled (IF, AC, ID, IOPL): unknown. */
void lift_pushf(struct lift *l, int arg)
{
	unsigned w = stack_width(l);

	(void)arg;
	stack(l, -(int64_t)w, w, PTRACE_W);
	push_val(l, w, unk_val(l));
}

void lift_popf(struct lift *l, int arg)
{
	unsigned w = stack_width(l);
	uint16_t t;

	(void)arg;
	stack(l, 0, w, PTRACE_R);
	t = pop_val(l, w);
	put(l, SEM_AND, 8, SEM_FC, t, NONE, SEM_CF);
	put(l, SEM_AND, 8, SEM_FR, t, NONE, SEM_PF | SEM_AF | SEM_ZF | SEM_SF | SEM_OF);
	put(l, SEM_AND, 8, SEM_DF, val(l, SEM_SHR, 8, t, NONE, 10), NONE, 1);
	add_rsp(l, w);
}

/* enter n,L: push rbp; copy L - 1 frame pointers; push the new frame pointer; rsp -= n */
void lift_enter(struct lift *l, int arg)
{
	int64_t size = l->arg[0]->imm.value.u & 0xffff;
	int level = l->arg[1]->imm.value.u & 31;
	uint16_t frame;

	(void)arg;
	if (stack_width(l) != 8) {
		l->fail = true;
		return;
	}
	stack(l, -8, 8, PTRACE_W);
	for (int i = 1; i < level; i++) {
		rec(l, NULL, (struct ea){SEM_RBP, NONE, 0, -8 * i}, 8, PTRACE_R);
		stack(l, -8 - 8 * i, 8, PTRACE_W);
	}
	if (level)
		stack(l, -8 - 8 * level, 8, PTRACE_W);
	frame = val(l, SEM_LEA, 0, SEM_RSP, NONE, -8);
	put(l, SEM_STORE, 8, NONE, SEM_RSP, SEM_RBP, -8);
	for (int i = 1; i < level; i++) {
		uint16_t t = val(l, SEM_LOAD, 8, SEM_RBP, NONE, -8 * i);

		put(l, SEM_STORE, 8, NONE, SEM_RSP, t, -8 - 8 * i);
	}
	if (level)
		put(l, SEM_STORE, 8, NONE, SEM_RSP, frame, -8 - 8 * level);
	add_rsp(l, -8 - 8 * level - size);
	put(l, SEM_MOV, 8, SEM_RBP, frame, NONE, 0);
}

void lift_leave(struct lift *l, int arg)
{
	uint16_t t;

	(void)arg;
	if (stack_width(l) != 8) {
		l->fail = true;
		return;
	}
	rec(l, hidden(l), (struct ea){SEM_RBP, NONE, 0, 0}, 8, PTRACE_R);
	t = val(l, SEM_LOAD, 8, SEM_RBP, NONE, 0);
	put(l, SEM_LEA, 0, SEM_RSP, SEM_RBP, NONE, 8);
	put(l, SEM_MOV, 8, SEM_RBP, t, NONE, 0);
}

/* near and 64-bit, or refused: far transfers, and 66h on branches (without REX.W), which cuts
 * the instruction pointer to 16 bits on AMD and is ignored by Intel */
static bool near64(struct lift *l)
{
	const ZydisDecodedInstruction *in = l->in;

	if (in->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		l->fail = true;
	for (int i = 0; i < in->raw.prefix_count; i++)
		if (in->raw.prefixes[i].value == 0x66 && !in->raw.rex.W)
			l->fail = true;
	return !l->fail;
}

/* SEM_T0 = the target of an indirect transfer */
static void target(struct lift *l)
{
	if (!is_imm(l->arg[0]))
		put(l, SEM_MOV, 8, SEM_T0, rd(l, l->arg[0]), NONE, 0);
}

void lift_call(struct lift *l, int arg)
{
	(void)arg;
	if (!near64(l))
		return;
	recs(l);
	stack(l, -8, 8, PTRACE_W);
	target(l);
	push_val(l, 8, val(l, SEM_MODADDR, 8, NONE, NONE, (int64_t)l->vaddr + l->in->length));
}

void lift_ret(struct lift *l, int arg)
{
	(void)arg;
	if (!near64(l))
		return;
	stack(l, 0, 8, PTRACE_R);
	put(l, SEM_LOAD, 8, SEM_T0, SEM_RSP, NONE, 0);
	add_rsp(l, 8 + (l->narg ? (int64_t)(l->arg[0]->imm.value.u & 0xffff) : 0));
}

void lift_jmp(struct lift *l, int arg)
{
	(void)arg;
	if (!near64(l) || is_imm(l->arg[0]))
		return;
	recs(l);
	target(l);
}

/* arg: condition code */
void lift_jcc(struct lift *l, int arg)
{
	if (!near64(l))
		return;
	put(l, SEM_MOV, 8, SEM_T0, cond(l, arg), NONE, 0);
}

/* Zen 5 swaps loope and loopne under f2 and f3, which the manuals call reserved. */
static bool rep_prefix(const ZydisDecodedInstruction *in)
{
	for (int i = 0; i < in->raw.prefix_count; i++)
		if (in->raw.prefixes[i].value == 0xf2 || in->raw.prefixes[i].value == 0xf3)
			return true;
	return false;
}

/* arg: -1 loop, or the condition code that must hold as well (loope, loopne) */
void lift_loop(struct lift *l, int arg)
{
	unsigned w = l->in->address_width / 8;
	uint16_t c = val(l, SEM_SUB, w, SEM_RCX, NONE, 1);
	uint16_t t = val(l, SEM_FC_NZ, w, c, NONE, 0);

	if (arg >= 0 && rep_prefix(l->in))
		l->fail = true;
	else if (arg >= 0)
		put(l, SEM_AND, 8, SEM_T0, t, cond(l, arg), 0);
	else
		put(l, SEM_MOV, 8, SEM_T0, t, NONE, 0);
	put(l, SEM_MOV, w, SEM_RCX, c, NONE, 0);
}

void lift_jrcxz(struct lift *l, int arg)
{
	put(l, SEM_FC_NZ, arg, SEM_T0, SEM_RCX, NONE, 1);
}

/* Taken where the transaction aborts: registers and memory are as they were here, but for eax, which says why
 * (SDM Vol. 1, 16.3.8.1). What ran in between is undone, its logs as well. */
void lift_xbegin(struct lift *l, int arg)
{
	(void)arg;
	unk(l, SEM_T0);
	unk(l, SEM_RAX);
}

void lift_syscall(struct lift *l, int arg)
{
	(void)arg;
	unk(l, SEM_RAX);
	unk(l, SEM_RCX);
	unk(l, SEM_R11);
}
