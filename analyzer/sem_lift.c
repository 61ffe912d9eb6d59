/* SPDX-License-Identifier: MIT
 *
 * sem_lift.c - entry of the lifter, dispatch by mnemonic, and the catch-all
 *
 * The catch-all (lift_other) takes what has no handler: exact records from the operand list, and
 * SEM_UNK for all that is written. So a mnemonic missing from the table is never wrong, only
 * opaque in its results.
 */
#include "sem_lift_int.h"

#define M(name, fn, arg) [ZYDIS_MNEMONIC_##name] = {lift_##fn, arg},
static const struct {
	lift_fn *fn;
	int arg;
} table[ZYDIS_MNEMONIC_MAX_VALUE + 1] = {
#include "sem_lift_table.h"
};
#undef M

void lift_nothing(struct lift *l, int arg)
{
	(void)l;
	(void)arg;
}

/* f3 90 with REX.B is an xchg with r8 to processors, not to Zydis 4.0 */
void lift_pause(struct lift *l, int arg)
{
	(void)arg;
	if (l->in->raw.rex.B)
		l->fail = true;
}

void lift_refuse(struct lift *l, int arg)
{
	(void)arg;
	l->fail = true;
}

/* All lanes the instruction may write become unknown. VEX and EVEX clear what is above the
 * vector length (SDM Vol. 1, 14.1.3); legacy SSE leaves it. */
static void unk_vec(struct lift *l, opnd o)
{
	unsigned v = reg_id(o), n = 2, lane = 0;

	if (o->reg.value >= ZYDIS_REGISTER_ZMM0)
		n = 8;
	else if (o->reg.value >= ZYDIS_REGISTER_YMM0)
		n = 4;
	for (; lane < n; lane++)
		unk(l, SEM_V(v, lane));
	if (l->in->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return;
	for (; lane < 8; lane++)
		put(l, SEM_IMM, 8, SEM_V(v, lane), NONE, NONE, 0);
}

static void unk_operand(struct lift *l, opnd o)
{
	if (is_gpr(o)) {
		if (width(o) >= 4)
			unk(l, gpr_of(o->reg.value));
		else
			wr(l, o, unk_val(l));
	} else if (is_vec(o)) {
		unk_vec(l, o);
	} else if (is_kreg(o)) {
		unk(l, SEM_K0 + reg_id(o));
		if (l->in->mnemonic == ZYDIS_MNEMONIC_VP2INTERSECTD ||
		    l->in->mnemonic == ZYDIS_MNEMONIC_VP2INTERSECTQ) /* a pair, k and k ^ 1 */
			unk(l, SEM_K0 + (reg_id(o) ^ 1));
	}
}

static void unk_flags(struct lift *l)
{
	const ZydisAccessedFlags *f = l->in->cpu_flags;
	uint32_t m;

	if (!f)
		return;
	m = f->modified | f->set_0 | f->set_1 | f->undefined;
	if (m & ZYDIS_CPUFLAG_CF)
		unk(l, SEM_FC);
	if (m &
	    (ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF | ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF))
		unk(l, SEM_FR);
	if (m & ZYDIS_CPUFLAG_DF)
		l->fail = true;
}

/* fxrstor, frstor and the like name no vector register as an operand */
static bool restores_xmm(ZydisMnemonic m)
{
	return m == ZYDIS_MNEMONIC_FXRSTOR || m == ZYDIS_MNEMONIC_FXRSTOR64;
}

/* Vector registers 0..15 written as a set, which Zydis does not list. */
static bool hidden_vectors(ZydisMnemonic m)
{
	return m >= ZYDIS_MNEMONIC_V4FMADDPS && m <= ZYDIS_MNEMONIC_V4FNMADDSS;
}

/* Segment, control, debug and bound registers: their change is not followed. */
static bool is_system_reg(opnd o)
{
	if (!is_reg(o) || !(o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return false;
	switch (ZydisRegisterGetClass(o->reg.value)) {
	case ZYDIS_REGCLASS_SEGMENT:
	case ZYDIS_REGCLASS_CONTROL:
	case ZYDIS_REGCLASS_DEBUG:
	case ZYDIS_REGCLASS_TEST:
	case ZYDIS_REGCLASS_TABLE:
	case ZYDIS_REGCLASS_TMM:
		return true;
	default:
		return false;
	}
}

void lift_other(struct lift *l, int arg)
{
	const ZydisDecodedInstruction *in = l->in;
	bool plain;

	(void)arg;
	if (in->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE || (in->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED) ||
	    in->encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX || hidden_vectors(in->mnemonic) ||
	    !recs_any(l, &plain)) {
		l->fail = true;
		return;
	}
	for (int i = 0; i < in->operand_count; i++) {
		opnd o = &l->ops[i];

		if (!(o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (is_system_reg(o))
			l->fail = true;
		else if (is_mem(o) && plain)
			store_unk(l, o);
		else if (is_reg(o))
			unk_operand(l, o);
	}
	unk_flags(l);
	for (int v = 0; v < 16 && restores_xmm(in->mnemonic); v++) {
		unk(l, SEM_V(v, 0));
		unk(l, SEM_V(v, 1));
	}
}

int sem_lift(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops, uint32_t vaddr,
	     const struct sem_cpu *cpu, struct sem_op *out, int max, struct sem_ea *ea)
{
	struct lift l = {.in = in, .ops = ops, .vaddr = vaddr, .cpu = cpu, .out = out, .max = max, .ea = ea};

	if (in->machine_mode != ZYDIS_MACHINE_MODE_LONG_64)
		return -1;
	for (int i = 0; i < in->operand_count_visible && l.narg < 8; i++)
		if (ops[i].encoding != ZYDIS_OPERAND_ENCODING_MASK)
			l.arg[l.narg++] = &ops[i];
	if (table[in->mnemonic].fn && !is_masked(in))
		table[in->mnemonic].fn(&l, table[in->mnemonic].arg);
	else
		lift_other(&l, 0);
	return l.fail ? -1 : l.n;
}
