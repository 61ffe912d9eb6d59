/* SPDX-License-Identifier: MIT
 *
 * insn.c - what an instruction does to control flow
 */
#include <Zydis/Zydis.h>

#include "code.h"

static ZydisDecoder decoder;
static bool ready;

static uint8_t gpr(ZydisRegister r)
{
	return r == ZYDIS_REGISTER_NONE ? 0xff : (uint8_t)ZydisRegisterGetId(r);
}

void insn_operand(struct operand *op, bool addr32, const void *zydis_operand, uint64_t behind)
{
	const ZydisDecodedOperand *o = zydis_operand;

	op->mem = true;
	op->addr32 = addr32;
	op->disp = o->mem.disp.has_displacement ? o->mem.disp.value : 0;
	op->index = gpr(o->mem.index);
	op->scale = o->mem.scale;
	op->base = 0xff;
	if (o->mem.base == ZYDIS_REGISTER_RIP || o->mem.base == ZYDIS_REGISTER_EIP)
		op->disp += (int64_t)behind;
	else
		op->base = gpr(o->mem.base);
	op->seg = o->mem.segment == ZYDIS_REGISTER_FS ? 1 : o->mem.segment == ZYDIS_REGISTER_GS ? 2 : 0;
}

static void operand(struct insn *in, const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *o)
{
	if (o->type == ZYDIS_OPERAND_TYPE_REGISTER)
		in->op.reg = gpr(o->reg.value);
	else
		insn_operand(&in->op, zi->address_width == 32, o, in->ip + in->len);
}

/* near branches: ops[0] is where they go */
static void branch(struct insn *in, const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *o,
		   enum insn_kind direct, enum insn_kind indirect)
{
	if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		in->kind = direct;
		in->target = in->ip + in->len + o->imm.value.u;
		in->odd = zi->operand_width == 16;
	} else {
		in->kind = indirect;
		operand(in, zi, o);
		in->odd = o->size != 64;
	}
	if (zi->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		in->kind = I_FAR;
}

static void loop(struct insn *in, const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *o,
		 enum loop_sub sub)
{
	in->target = in->ip + in->len + o->imm.value.u;
	in->sub = sub;
	in->addr32 = zi->address_width == 32;
	in->kind = I_LOOP;
}

/* Instructions that no hypervisor's guest may run unobserved, among those that user mode may use */
static bool exits(ZydisMnemonic m)
{
	return m == ZYDIS_MNEMONIC_CPUID || m == ZYDIS_MNEMONIC_RDTSC || m == ZYDIS_MNEMONIC_RDTSCP ||
	       m == ZYDIS_MNEMONIC_RDPMC || m == ZYDIS_MNEMONIC_RDRAND || m == ZYDIS_MNEMONIC_RDSEED ||
	       m == ZYDIS_MNEMONIC_XGETBV || m == ZYDIS_MNEMONIC_PAUSE;
}

static void other(struct insn *in, const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *ops)
{
	switch (zi->mnemonic) {
	case ZYDIS_MNEMONIC_JMP:
		branch(in, zi, ops, I_JMP, I_IJMP);
		break;
	case ZYDIS_MNEMONIC_CALL:
		branch(in, zi, ops, I_CALL, I_ICALL);
		break;
	case ZYDIS_MNEMONIC_RET:
		in->kind = zi->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ? I_FAR : I_RET;
		in->pop = zi->operand_count_visible ? (uint16_t)ops[0].imm.value.u : 0;
		in->odd = zi->operand_width == 16;
		break;
	case ZYDIS_MNEMONIC_LOOP:
		loop(in, zi, ops, L_LOOP);
		break;
	case ZYDIS_MNEMONIC_LOOPE:
		loop(in, zi, ops, L_LOOPE);
		break;
	case ZYDIS_MNEMONIC_LOOPNE:
		loop(in, zi, ops, L_LOOPNE);
		break;
	case ZYDIS_MNEMONIC_JRCXZ:
	case ZYDIS_MNEMONIC_JECXZ:
		loop(in, zi, ops, L_JCXZ);
		break;
	case ZYDIS_MNEMONIC_SYSCALL:
		in->kind = I_SYSCALL;
		break;
	case ZYDIS_MNEMONIC_XBEGIN:
		in->kind = I_XBEGIN;
		in->target = in->ip + in->len + zi->raw.imm[0].value.u;
		break;
	case ZYDIS_MNEMONIC_PTWRITE:
		in->kind = I_PTWRITE;
		operand(in, zi, ops);
		in->sub = (uint8_t)(ops[0].size / 8);
		break;
	case ZYDIS_MNEMONIC_INT3:
		in->kind = I_INT3;
		break;
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_XABORT:
		in->kind = I_FAR;
		break;
	default:
		in->kind = zi->meta.branch_type == ZYDIS_BRANCH_TYPE_NONE ? I_PLAIN : I_FAR;
		in->exits = exits(zi->mnemonic);
		if (code_tsc && zi->mnemonic == ZYDIS_MNEMONIC_RDTSC)
			in->kind = I_TSC;
	}
}

bool insn_decode(struct insn *in, uint64_t ip, const uint8_t *bytes, size_t n)
{
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];

	if (!ready)
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ready = true;
	*in = (struct insn){.ip = ip, .kind = I_BAD, .op = {.base = 0xff, .index = 0xff}};
	if (!n || ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, bytes, n, &zi, ops)))
		return false;
	in->len = zi.length;
	if (zi.meta.category == ZYDIS_CATEGORY_COND_BR &&
	    (zi.opcode_map == ZYDIS_OPCODE_MAP_0F ? (zi.opcode & 0xf0) == 0x80
						  : (zi.opcode & 0xf0) == 0x70)) {
		branch(in, &zi, ops, I_JCC, I_FAR);
		in->sub = zi.opcode & 15;
		return true;
	}
	other(in, &zi, ops);
	return true;
}
