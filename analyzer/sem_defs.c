/* SPDX-License-Identifier: MIT
 *
 * sem_defs.c - use and definition sets of general registers and flags, for liveness
 *
 * From Zydis' operand and flag lists. Where they are silent or too confident the sets err to
 * the safe side: `read` and `may` too large, `must` too small. test/semtest.c compares them
 * with what the processor changes.
 */
#include "sem_lift_int.h"

#define STATUS                                                                                               \
	(ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF | ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_SF |      \
	 ZYDIS_CPUFLAG_OF)

/* What the kernel may read: number, six arguments, stack pointer (psABI, A.2.1) */
#define SYSCALL_READS                                                                                        \
	(1u << SEM_RAX | 1u << SEM_RDI | 1u << SEM_RSI | 1u << SEM_RDX | 1u << SEM_R10 | 1u << SEM_R8 |      \
	 1u << SEM_R9 | 1u << SEM_RSP)

static uint32_t bit(ZydisRegister r)
{
	int g = r == ZYDIS_REGISTER_NONE ? -1 : gpr_of(r);

	return g < 0 ? 0 : 1u << g;
}

static bool has_rep(const ZydisDecodedInstruction *in)
{
	return in->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
}

/* A count that may be zero leaves flags, and rep strings their registers, as they were. */
static bool may_do_nothing(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_SHR:
	case ZYDIS_MNEMONIC_SAR:
	case ZYDIS_MNEMONIC_ROL:
	case ZYDIS_MNEMONIC_ROR:
	case ZYDIS_MNEMONIC_RCL:
	case ZYDIS_MNEMONIC_RCR:
		return !is_imm(&ops[1]) || !(ops[1].imm.value.u & 31);
	case ZYDIS_MNEMONIC_SHLD:
	case ZYDIS_MNEMONIC_SHRD:
		return !is_imm(&ops[2]) || !(ops[2].imm.value.u & 31);
	default:
		return has_rep(in);
	}
}

static uint32_t flags_written(const ZydisDecodedInstruction *in)
{
	const ZydisAccessedFlags *f = in->cpu_flags;

	return f ? (f->modified | f->set_0 | f->set_1 | f->undefined) & STATUS : 0;
}

/* zeroing idioms read nothing (SDM optimisation manual; the result does not depend on it) */
static bool zero_idiom(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	return (in->mnemonic == ZYDIS_MNEMONIC_XOR || in->mnemonic == ZYDIS_MNEMONIC_SUB) &&
	       same_reg(&ops[0], &ops[1]) && width(&ops[0]) >= 4;
}

static uint32_t must_write(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	uint32_t s = 0;

	for (int i = 0; i < in->operand_count; i++) {
		opnd o = &ops[i];

		if (!is_gpr(o) || width(o) < 4 || !(o->actions & ZYDIS_OPERAND_ACTION_WRITE))
			continue;
		s |= bit(o->reg.value);
	}
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_BSF:
	case ZYDIS_MNEMONIC_BSR:
	case ZYDIS_MNEMONIC_LZCNT:
	case ZYDIS_MNEMONIC_TZCNT:
		s &= ~bit(ops[0].reg.value); /* may be left alone */
		break;
	/* Where user mode may not execute them (UMIP) the kernel does, and writes 16 bits (arch/x86/kernel/umip.c). */
	case ZYDIS_MNEMONIC_SLDT:
	case ZYDIS_MNEMONIC_SMSW:
	case ZYDIS_MNEMONIC_STR:
		s = 0;
		break;
	case ZYDIS_MNEMONIC_CMPXCHG:
	case ZYDIS_MNEMONIC_CMPXCHG8B:
	case ZYDIS_MNEMONIC_CMPXCHG16B:
	case ZYDIS_MNEMONIC_RDSSPD:
	case ZYDIS_MNEMONIC_RDSSPQ:
		s = 0;
		break;
	case ZYDIS_MNEMONIC_SYSCALL:
		s |= 1u << SEM_RCX | 1u << SEM_R11;
		break;
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFQ:
		return s | SEM_F_FLAGS;
	default:
		if (has_rep(in))
			s = 0;
	}
	if (flags_written(in) == STATUS && !may_do_nothing(in, ops))
		s |= SEM_F_FLAGS;
	return s;
}

/* Zydis 4.0 leaves out that cmps and scas move rsi and rdi. */
static uint32_t string_pointers(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	uint32_t s = 0;

	if (in->meta.category != ZYDIS_CATEGORY_STRINGOP)
		return 0;
	for (int i = 0; i < in->operand_count; i++)
		if (is_mem(&ops[i]))
			s |= bit(ops[i].mem.base);
	return s | (has_rep(in) ? 1u << SEM_RCX : 0);
}

static uint32_t may_write(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	uint32_t s = (flags_written(in) ? SEM_F_FLAGS : 0) | string_pointers(in, ops);

	for (int i = 0; i < in->operand_count; i++)
		if (is_gpr(&ops[i]) && (ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			s |= bit(ops[i].reg.value);
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_SYSCALL:
		s |= 1u << SEM_RAX | 1u << SEM_RCX | 1u << SEM_R11;
		break;
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFQ:
		s |= SEM_F_FLAGS;
		break;
	case ZYDIS_MNEMONIC_XBEGIN:
		s |= 1u << SEM_RAX;
		break;
	default:
		break;
	}
	return s;
}

static uint32_t read_operand(opnd o)
{
	if (is_mem(o))
		return bit(o->mem.base) | (o->mem.type == ZYDIS_MEMOP_TYPE_VSIB ? 0 : bit(o->mem.index));
	if (!is_reg(o))
		return 0;
	if (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
		return bit(o->reg.value);
	return 0;
}

uint32_t sem_gpr_sets(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops, uint32_t *must,
		      uint32_t *may)
{
	uint32_t s = 0;
	const ZydisAccessedFlags *f = in->cpu_flags;

	if (!zero_idiom(in, ops))
		for (int i = 0; i < in->operand_count; i++)
			s |= read_operand(&ops[i]);
	if (f && (f->tested & STATUS))
		s |= SEM_F_FLAGS;
	if (in->mnemonic == ZYDIS_MNEMONIC_PUSHF || in->mnemonic == ZYDIS_MNEMONIC_PUSHFQ)
		s |= SEM_F_FLAGS;
	if (in->mnemonic == ZYDIS_MNEMONIC_SYSCALL) /* the flags go to r11 */
		s |= SEM_F_FLAGS | SYSCALL_READS;
	if (in->mnemonic == ZYDIS_MNEMONIC_XLAT)
		s |= 1u << SEM_RAX | 1u << SEM_RBX;
	/* what is written only in part, or perhaps not at all, passes through */
	*may = may_write(in, ops);
	*must = must_write(in, ops);
	return s | (*may & ~*must);
}
