/* SPDX-License-Identifier: MIT
 *
 * sem_lift_addr.c - building ops; reading and writing operands; addresses and plain records
 */
#include "sem_lift_int.h"

void put(struct lift *l, unsigned op, unsigned w, uint16_t dst, uint16_t a, uint16_t b, int64_t imm)
{
	if (l->n >= l->max) {
		l->fail = true;
		return;
	}
	l->out[l->n++] = (struct sem_op){.op = op, .w = w, .dst = dst, .a = a, .b = b, .imm = imm};
}

uint16_t tmp(struct lift *l)
{
	if (SEM_T0 + 1 + l->ntmp > SEM_TLAST) {
		l->fail = true;
		return SEM_TLAST;
	}
	return SEM_T0 + 1 + l->ntmp++;
}

uint16_t val(struct lift *l, unsigned op, unsigned w, uint16_t a, uint16_t b, int64_t imm)
{
	uint16_t t = tmp(l);

	put(l, op, w, t, a, b, imm);
	return t;
}

uint16_t imm_val(struct lift *l, int64_t v)
{
	return val(l, SEM_IMM, 8, NONE, NONE, v);
}

uint16_t unk_val(struct lift *l)
{
	return val(l, SEM_UNK, 8, NONE, NONE, 0);
}

int gpr_of(ZydisRegister r)
{
	/* the order of enum ZydisRegister_: al cl dl bl ah ch dh bh spl … r15b, ax … r15w, eax … r15d, rax … r15 */
	_Static_assert(ZYDIS_REGISTER_AH - ZYDIS_REGISTER_AL == 4 &&
			       ZYDIS_REGISTER_R15B - ZYDIS_REGISTER_AL == 19 &&
			       ZYDIS_REGISTER_AX - ZYDIS_REGISTER_AL == 20 &&
			       ZYDIS_REGISTER_R15 - ZYDIS_REGISTER_AX == 47,
		       "general registers are in one piece");
	unsigned i = (unsigned)r - ZYDIS_REGISTER_AL;

	if (i >= 20 + 48)
		return -1;
	return i < 4 ? (int)i : i < 20 ? (int)i - 4 : (int)(i - 20) % 16;
}

bool is_high(ZydisRegister r)
{
	return r >= ZYDIS_REGISTER_AH && r <= ZYDIS_REGISTER_BH;
}

bool is_gpr(opnd o)
{
	return is_reg(o) && gpr_of(o->reg.value) >= 0;
}

bool is_vec(opnd o)
{
	return is_reg(o) && o->reg.value >= ZYDIS_REGISTER_XMM0 && o->reg.value <= ZYDIS_REGISTER_ZMM31;
}

bool is_kreg(opnd o)
{
	return is_reg(o) && o->reg.value >= ZYDIS_REGISTER_K0 && o->reg.value <= ZYDIS_REGISTER_K7;
}

unsigned reg_id(opnd o)
{
	return (unsigned)ZydisRegisterGetId(o->reg.value);
}

bool same_reg(opnd a, opnd b)
{
	return is_reg(a) && is_reg(b) && a->reg.value == b->reg.value;
}

/* Segment base. Only fs and gs have one in 64-bit mode (SDM Vol. 1, 3.4.2.1). A prefix does not apply to
 * movdir64b's destination (SDM Vol. 2), but Zydis says so. */
static uint16_t seg_base(struct lift *l, opnd o)
{
	if (l->in->mnemonic == ZYDIS_MNEMONIC_MOVDIR64B && o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
		return NONE;
	if (o->mem.segment == ZYDIS_REGISTER_FS)
		return SEM_FSBASE;
	return o->mem.segment == ZYDIS_REGISTER_GS ? SEM_GSBASE : NONE;
}

static uint16_t collapse(struct lift *l, struct ea e)
{
	return val(l, SEM_LEA, e.w, e.a, e.b, e.disp);
}

/* Offset within the segment, in SEM_REC form but with 64-bit displacement. */
static struct ea offset_of(struct lift *l, opnd o)
{
	struct ea e = {NONE, NONE, 0, o->mem.disp.has_displacement ? o->mem.disp.value : 0};

	if (o->mem.base == ZYDIS_REGISTER_RIP || o->mem.base == ZYDIS_REGISTER_EIP) {
		e.a = val(l, SEM_MODADDR, 8, NONE, NONE, (int64_t)l->vaddr + l->in->length + e.disp);
		e.disp = 0;
	} else if (o->mem.base != ZYDIS_REGISTER_NONE) {
		e.a = gpr_of(o->mem.base);
	}
	if (o->mem.index != ZYDIS_REGISTER_NONE && o->mem.type != ZYDIS_MEMOP_TYPE_VSIB) {
		e.b = gpr_of(o->mem.index);
		e.w = __builtin_ctz(o->mem.scale ? o->mem.scale : 1);
	}
	return e;
}

struct ea ea_of(struct lift *l, opnd o, uint16_t extra, unsigned shift)
{
	struct ea e = offset_of(l, o);
	uint16_t seg = seg_base(l, o);

	if (extra != NONE) {
		if (e.b != NONE)
			e = (struct ea){collapse(l, e), NONE, 0, 0};
		e.b = extra;
		e.w = shift;
	}
	if (l->in->address_width == 32) {
		e.a = val(l, SEM_MOV, 4, collapse(l, e), NONE, 0);
		e = (struct ea){e.a, NONE, 0, 0};
	}
	if (seg != NONE && e.a == NONE) {
		e.a = seg;
	} else if (seg != NONE) {
		e.b = e.b == NONE ? e.a : collapse(l, (struct ea){e.a, e.b, e.w, 0});
		e.a = seg;
		e.w = 0;
	}
	if (e.disp != (int32_t)e.disp)
		e = (struct ea){collapse(l, e), NONE, 0, 0};
	return e;
}

/* what lea makes of operand o (struct sem_ea) */
static struct sem_ea lea_of(struct lift *l, opnd o)
{
	struct sem_ea a = {SEM_EA_NONE, 0, false};
	uint16_t seg;

	/* no lea has eip */
	if (!o || o->mem.type == ZYDIS_MEMOP_TYPE_VSIB || o->mem.base == ZYDIS_REGISTER_EIP)
		return a;
	seg = seg_base(l, o);
	a.op = (uint8_t)(o - l->ops);
	a.seg = seg == NONE ? 0 : (uint8_t)seg;
	a.stack = o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && o->mem.base == ZYDIS_REGISTER_RSP;
	return a;
}

void rec(struct lift *l, opnd o, struct ea e, unsigned size, enum ptrace_kind kind)
{
	if (l->ea && l->nrec < SEM_EA_MAX)
		l->ea[l->nrec++] = lea_of(l, o);
	put(l, SEM_REC, e.w, SEM_RECDST(size, kind), e.a, e.b, SEM_RECIMM(e.disp, l->vaddr));
}

void set_at(struct lift *l, opnd o, struct ea e)
{
	int i = o - l->ops;

	l->at[i].done = true;
	if (e.a != NONE && e.b == NONE) {
		l->at[i].a = e.a;
		l->at[i].disp = e.disp;
	} else {
		l->at[i].a = collapse(l, e);
		l->at[i].disp = 0;
	}
}

uint16_t at(struct lift *l, opnd o, int64_t *disp)
{
	int i = o - l->ops;

	if (!l->at[i].done)
		set_at(l, o, ea_of(l, o, NONE, 0));
	*disp = l->at[i].disp;
	return l->at[i].a;
}

void recs(struct lift *l)
{
	for (int i = 0; i < l->narg; i++) {
		opnd o = l->arg[i];
		struct ea e;

		if (!is_mem(o) || o->mem.type == ZYDIS_MEMOP_TYPE_AGEN || !o->actions)
			continue;
		e = ea_of(l, o, NONE, 0);
		/* no instruction has two visible memory operands */
		if (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
			rec(l, o, e, width(o), PTRACE_R);
		if (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			rec(l, o, e, width(o), PTRACE_W);
		set_at(l, o, e);
	}
}

uint16_t load(struct lift *l, opnd o, unsigned off, unsigned w)
{
	int64_t disp;
	uint16_t a = at(l, o, &disp);

	return val(l, SEM_LOAD, w, a, NONE, disp + off);
}

void store(struct lift *l, opnd o, unsigned off, unsigned w, uint16_t v)
{
	int64_t disp;
	uint16_t a = at(l, o, &disp);

	put(l, SEM_STORE, w, NONE, a, v, disp + off);
}

void store_unk(struct lift *l, opnd o)
{
	uint16_t u = unk_val(l);
	unsigned n = width(o), off = 0;

	for (unsigned w = 8; w; w /= 2)
		for (; n - off >= w; off += w)
			store(l, o, off, w, u);
}

uint16_t rd(struct lift *l, opnd o)
{
	int r;

	if (is_imm(o))
		return imm_val(l, o->imm.value.s);
	if (is_mem(o))
		return load(l, o, 0, width(o));
	r = gpr_of(o->reg.value);
	if (r < 0) { /* segment, control, MMX registers */
		return unk_val(l);
	}
	if (is_high(o->reg.value))
		return val(l, SEM_EXTH, 1, r, NONE, 0);
	return r;
}

uint16_t rdi(struct lift *l, opnd o, int64_t *imm)
{
	*imm = 0;
	if (!is_imm(o))
		return rd(l, o);
	*imm = o->imm.value.s;
	return NONE;
}

void wr_gpr(struct lift *l, unsigned reg, unsigned w, uint16_t v)
{
	if (w >= 4)
		put(l, SEM_MOV, w, reg, v, NONE, 0);
	else
		put(l, SEM_INS, w, reg, reg, v, 0);
}

void wr(struct lift *l, opnd o, uint16_t v)
{
	int r;

	if (is_mem(o)) {
		store(l, o, 0, width(o), v);
		return;
	}
	r = gpr_of(o->reg.value);
	if (r < 0)
		l->fail = true;
	else if (is_high(o->reg.value))
		put(l, SEM_INSH, 1, r, r, v, 0);
	else
		wr_gpr(l, r, width(o), v);
}

void wr_op(struct lift *l, opnd dst, unsigned op, uint16_t a, uint16_t b, int64_t imm)
{
	if (is_gpr(dst) && width(dst) >= 4)
		put(l, op, width(dst), gpr_of(dst->reg.value), a, b, imm);
	else
		wr(l, dst, val(l, op, width(dst), a, b, imm));
}

void flags_unk(struct lift *l)
{
	unk(l, SEM_FC);
	unk(l, SEM_FR);
}

uint16_t cond(struct lift *l, unsigned cc)
{
	unsigned p = cc >> 1;

	return val(l, SEM_COND, 8, p == 1 || p == 3 ? SEM_FC : NONE, p == 1 ? NONE : SEM_FR, cc);
}
