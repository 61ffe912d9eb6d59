/* SPDX-License-Identifier: MIT
 *
 * emu.c - simple instructions on a stopped thread's registers (emu.h)
 */
#include "emu.h"

#include <Zydis/Zydis.h>
#include <string.h>

#define CF 1ull
#define PF (1ull << 2)
#define AF (1ull << 4)
#define ZF (1ull << 6)
#define SF (1ull << 7)
#define OF (1ull << 11)
#define ALL (CF | PF | AF | ZF | SF | OF)

struct emu_write emu_write;

uint64_t *emu_gpr(struct user_regs_struct *r, unsigned n)
{
	typedef unsigned long long ull;
	ull *at[16] = {&r->rax, &r->rcx, &r->rdx, &r->rbx, &r->rsp, &r->rbp, &r->rsi, &r->rdi,
		       &r->r8,	&r->r9,	 &r->r10, &r->r11, &r->r12, &r->r13, &r->r14, &r->r15};

	return (uint64_t *)at[n & 15];
}

/* Condition codes, SDM volume 1, appendix B: o b z be s p l le, bit 0 inverts */
bool emu_condition(unsigned cc, uint64_t fl)
{
	bool cf = fl & 1, pf = fl >> 2 & 1, zf = fl >> 6 & 1, sf = fl >> 7 & 1, of = fl >> 11 & 1;
	bool v[8] = {of, cf, zf, cf || zf, sf, pf, sf != of, zf || sf != of};

	return v[cc >> 1 & 7] != (cc & 1);
}

uint64_t emu_address(struct user_regs_struct *r, const struct operand *o)
{
	uint64_t a = (uint64_t)o->disp;

	if (o->base != 0xff)
		a += *emu_gpr(r, o->base);
	if (o->index != 0xff)
		a += *emu_gpr(r, o->index) * o->scale;
	if (o->addr32)
		a = (uint32_t)a;
	return a + (o->seg == 1 ? r->fs_base : o->seg == 2 ? r->gs_base : 0);
}

/* --- decoding -------------------------------------------------------------------------------------- */

static enum emu_op op_of(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_ENDBR64:
		return E_NOP;
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
		return E_MOV;
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
		return E_MOVSX;
	case ZYDIS_MNEMONIC_LEA:
		return E_LEA;
	case ZYDIS_MNEMONIC_ADD:
		return E_ADD;
	case ZYDIS_MNEMONIC_ADC:
		return E_ADC;
	case ZYDIS_MNEMONIC_SUB:
		return E_SUB;
	case ZYDIS_MNEMONIC_SBB:
		return E_SBB;
	case ZYDIS_MNEMONIC_CMP:
		return E_CMP;
	case ZYDIS_MNEMONIC_AND:
		return E_AND;
	case ZYDIS_MNEMONIC_OR:
		return E_OR;
	case ZYDIS_MNEMONIC_XOR:
		return E_XOR;
	case ZYDIS_MNEMONIC_TEST:
		return E_TEST;
	case ZYDIS_MNEMONIC_INC:
		return E_INC;
	case ZYDIS_MNEMONIC_DEC:
		return E_DEC;
	case ZYDIS_MNEMONIC_NEG:
		return E_NEG;
	case ZYDIS_MNEMONIC_NOT:
		return E_NOT;
	case ZYDIS_MNEMONIC_SHL:
		return E_SHL;
	case ZYDIS_MNEMONIC_SHR:
		return E_SHR;
	case ZYDIS_MNEMONIC_SAR:
		return E_SAR;
	case ZYDIS_MNEMONIC_IMUL:
		return E_IMUL;
	case ZYDIS_MNEMONIC_PUSH:
		return E_PUSH;
	case ZYDIS_MNEMONIC_POP:
		return E_POP;
	case ZYDIS_MNEMONIC_LEAVE:
		return E_LEAVE;
	case ZYDIS_MNEMONIC_CDQE:
	case ZYDIS_MNEMONIC_CWDE:
		return E_CDQE;
	case ZYDIS_MNEMONIC_CDQ:
	case ZYDIS_MNEMONIC_CQO:
		return E_CDQ;
	default:
		return E_NONE;
	}
}

static bool arg_of(struct emu_arg *a, const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *o,
		   uint64_t ip)
{
	*a = (struct emu_arg){.size = (uint8_t)(o->size / 8), .mem = {.base = 0xff, .index = 0xff}};
	switch (o->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		switch (ZydisRegisterGetClass(o->reg.value)) {
		case ZYDIS_REGCLASS_GPR8:
			a->kind = 1;
			if (o->reg.value >= ZYDIS_REGISTER_AH && o->reg.value <= ZYDIS_REGISTER_BH) {
				a->kind = 2;
				a->reg = (uint8_t)(o->reg.value - ZYDIS_REGISTER_AH);
				return true;
			}
			a->reg = (uint8_t)(o->reg.value - ZYDIS_REGISTER_AL);
			if (o->reg.value >= ZYDIS_REGISTER_SPL)
				a->reg = (uint8_t)(o->reg.value - ZYDIS_REGISTER_SPL + 4);
			return true;
		case ZYDIS_REGCLASS_GPR16:
		case ZYDIS_REGCLASS_GPR32:
		case ZYDIS_REGCLASS_GPR64:
			a->kind = 1;
			a->reg = (uint8_t)ZydisRegisterGetId(o->reg.value);
			return true;
		default:
			return false;
		}
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		a->kind = 4;
		a->imm = o->imm.value.u;
		return true;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		a->kind = 3;
		insn_operand(&a->mem, zi->address_width == 32, o, ip + zi->length);
		return o->mem.type == ZYDIS_MEMOP_TYPE_MEM || o->mem.type == ZYDIS_MEMOP_TYPE_AGEN;
	default:
		return false;
	}
}

bool emu_decode(struct emu *e, uint64_t ip, const uint8_t *bytes, size_t n)
{
	static ZydisDecoder decoder;
	static bool ready;
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	struct emu_arg *args[3] = {&e->to, &e->from, &e->third};

	if (!ready)
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ready = true;
	memset(e, 0, sizeof(*e));
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, bytes, n, &zi, ops)))
		return false;
	e->len = zi.length;
	e->op = (uint8_t)op_of(zi.mnemonic);
	if (zi.opcode_map == ZYDIS_OPCODE_MAP_0F && (zi.opcode & 0xf0) == 0x90 &&
	    zi.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		e->op = E_SETCC;
	if (zi.opcode_map == ZYDIS_OPCODE_MAP_0F && (zi.opcode & 0xf0) == 0x40 &&
	    zi.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		e->op = E_CMOV;
	e->cc = zi.opcode & 15;
	if (e->op == E_NONE ||
	    zi.attributes & (ZYDIS_ATTRIB_HAS_LOCK | ZYDIS_ATTRIB_HAS_XACQUIRE | ZYDIS_ATTRIB_HAS_XRELEASE))
		return false;
	if (e->op == E_NOP)
		return true;
	if (e->op == E_PUSH || e->op == E_POP || e->op == E_LEAVE) {
		if (zi.operand_width != 64)
			return false;
	}
	if (e->op == E_CDQE || e->op == E_CDQ) {
		e->to.size = (uint8_t)(zi.operand_width / 8);
		return true;
	}
	if (zi.operand_count_visible > 3 || (e->op == E_IMUL && zi.operand_count_visible == 1))
		return false;
	for (int i = 0; i < zi.operand_count_visible; i++)
		if (!arg_of(args[i], &zi, &ops[i], ip))
			return false;
	if (e->op == E_SHL || e->op == E_SHR || e->op == E_SAR)
		return zi.operand_count_visible == 2;
	return true;
}

/* --- doing ------------------------------------------------------------------------------------------ */

static uint64_t low(uint64_t v, unsigned size)
{
	return size == 8 ? v : v & ((1ull << size * 8) - 1);
}

static uint64_t sign(uint64_t v, unsigned size)
{
	unsigned up = 64 - size * 8;

	return (uint64_t)((int64_t)(v << up) >> up);
}

static bool get(const struct emu_arg *a, pid_t pid, struct user_regs_struct *r, uint64_t *v)
{
	*v = 0;
	switch (a->kind) {
	case 1:
		*v = low(*emu_gpr(r, a->reg), a->size);
		return true;
	case 2:
		*v = *emu_gpr(r, a->reg) >> 8 & 0xff;
		return true;
	case 3:
		return mem_read(pid, emu_address(r, &a->mem), v, a->size);
	default:
		*v = a->imm;
		return true;
	}
}

static bool store(pid_t pid, uint64_t addr, uint64_t v, unsigned size)
{
	if (emu_write.dry) {
		emu_write.made = true;
		emu_write.addr = addr;
		emu_write.value = v;
		emu_write.size = size;
		return true;
	}
	return mem_write(pid, addr, &v, size);
}

static bool put(const struct emu_arg *a, pid_t pid, struct user_regs_struct *r, uint64_t v)
{
	uint64_t *reg;

	if (a->kind == 3)
		return store(pid, emu_address(r, &a->mem), v, a->size);
	reg = emu_gpr(r, a->reg);
	if (a->kind == 2)
		*reg = (*reg & ~0xff00ull) | (v & 0xff) << 8;
	else if (a->size >= 4)
		*reg = low(v, a->size);
	else
		*reg = (*reg & ~((1ull << a->size * 8) - 1)) | low(v, a->size);
	return true;
}

static uint64_t result_flags(uint64_t v, unsigned size)
{
	uint64_t f = 0;

	v = low(v, size);
	if (!v)
		f |= ZF;
	if (v >> (size * 8 - 1))
		f |= SF;
	if (!__builtin_parity((unsigned)(v & 0xff)))
		f |= PF;
	return f;
}

static uint64_t add(uint64_t a, uint64_t b, uint64_t c, unsigned size, uint64_t *f)
{
	uint64_t v = low(a + b + c, size), top = 1ull << (size * 8 - 1);

	a = low(a, size);
	b = low(b, size);
	*f = result_flags(v, size);
	/* carry out of each bit: where both are set, or one is and the sum is not */
	c = (a & b) | ((a | b) & ~v);
	if (c & top)
		*f |= CF;
	if (c & 8)
		*f |= AF;
	if (~(a ^ b) & (a ^ v) & top)
		*f |= OF;
	return v;
}

static uint64_t sub(uint64_t a, uint64_t b, uint64_t c, unsigned size, uint64_t *f)
{
	uint64_t v = low(a - b - c, size), top = 1ull << (size * 8 - 1);

	a = low(a, size);
	b = low(b, size);
	*f = result_flags(v, size);
	c = (~a & b) | ((~a | b) & v); /* borrows */
	if (c & top)
		*f |= CF;
	if (c & 8)
		*f |= AF;
	if ((a ^ b) & (a ^ v) & top)
		*f |= OF;
	return v;
}

static uint64_t shift(const struct emu *e, uint64_t v, unsigned n, uint64_t *f)
{
	unsigned size = e->to.size, bits = size * 8;
	uint64_t r, top = 1ull << (bits - 1);
	bool out;

	if (e->op == E_SHL) {
		r = n < 64 ? low(v << n, size) : 0;
		out = n <= bits && v >> (bits - n) & 1;
		*f = result_flags(r, size) | (out ? CF : 0) | (!!(r & top) != out ? OF : 0);
	} else if (e->op == E_SHR) {
		r = v >> n;
		out = v >> (n - 1) & 1;
		*f = result_flags(r, size) | (out ? CF : 0) | (v & top ? OF : 0);
	} else {
		int64_t s = (int64_t)sign(v, size);

		r = low((uint64_t)(s >> n), size);
		out = s >> (n - 1) & 1;
		*f = result_flags(r, size) | (out ? CF : 0);
	}
	return r;
}

static uint64_t imul(uint64_t a, uint64_t b, unsigned size, uint64_t *f)
{
	__int128 v = (__int128)(int64_t)sign(a, size) * (int64_t)sign(b, size);

	*f = result_flags((uint64_t)v, size) & ~(ZF | SF | PF);
	if (v != (__int128)(int64_t)sign((uint64_t)v, size))
		*f |= CF | OF;
	return (uint64_t)v;
}

uint64_t emu_flags(const struct emu *e, const struct user_regs_struct *before)
{
	unsigned n;

	switch (e->op) {
	case E_AND:
	case E_OR:
	case E_XOR:
	case E_TEST:
		return ALL & ~AF;
	case E_IMUL:
		return CF | OF;
	case E_SHL:
	case E_SHR:
	case E_SAR:
		n = (unsigned)(e->from.kind == 4 ? e->from.imm : before->rcx) & (e->to.size == 8 ? 63 : 31);
		return !n ? ALL : ALL & ~AF & ~(n > 1 ? OF : 0);
	default:
		return ALL;
	}
}

/* Those with two operands that write the first and set flags. Cmp and test write none. */
static bool arithmetic(const struct emu *e, pid_t pid, struct user_regs_struct *r)
{
	uint64_t a, b = 0, v = 0, f = 0, cf = r->eflags & CF, keep = 0;
	unsigned size = e->to.size, n;

	if (!get(&e->to, pid, r, &a) || !get(&e->from, pid, r, &b))
		return false;
	switch (e->op) {
	case E_ADD:
	case E_ADC:
		v = add(a, b, e->op == E_ADC ? cf : 0, size, &f);
		break;
	case E_SUB:
	case E_SBB:
	case E_CMP:
		v = sub(a, b, e->op == E_SBB ? cf : 0, size, &f);
		break;
	case E_AND:
	case E_TEST:
		v = a & b;
		f = result_flags(v, size);
		break;
	case E_OR:
		v = a | b;
		f = result_flags(v, size);
		break;
	case E_XOR:
		v = a ^ b;
		f = result_flags(v, size);
		break;
	case E_INC:
		v = add(a, 1, 0, size, &f);
		keep = CF;
		break;
	case E_DEC:
		v = sub(a, 1, 0, size, &f);
		keep = CF;
		break;
	case E_NEG:
		v = sub(0, a, 0, size, &f);
		break;
	case E_NOT:
		v = ~a;
		keep = ALL;
		break;
	case E_IMUL:
		if (e->third.kind)
			v = imul(b, e->third.imm, size, &f);
		else
			v = imul(a, b, size, &f);
		break;
	default: /* shifts */
		n = (unsigned)b & (size == 8 ? 63 : 31);
		if (!n) {
			v = a;
			keep = ALL;
		} else if (n > size * 8) {
			return false; /* of bytes and words, beyond their size */
		} else {
			v = shift(e, a, n, &f);
		}
	}
	if (e->op != E_CMP && e->op != E_TEST && !put(&e->to, pid, r, v))
		return false;
	r->eflags = (r->eflags & (~ALL | keep)) | (f & ~keep);
	return true;
}

static bool move(const struct emu *e, pid_t pid, struct user_regs_struct *r)
{
	uint64_t v = 0, sp = r->rsp;

	switch (e->op) {
	case E_MOV:
		return get(&e->from, pid, r, &v) && put(&e->to, pid, r, v);
	case E_MOVSX:
		return get(&e->from, pid, r, &v) && put(&e->to, pid, r, sign(v, e->from.size));
	case E_LEA:
		return put(&e->to, pid, r, emu_address(r, &e->from.mem));
	case E_PUSH:
		if (!get(&e->to, pid, r, &v) || !store(pid, sp - 8, v, 8))
			return false;
		r->rsp = sp - 8;
		return true;
	case E_POP:
		if (e->to.kind != 1 || !mem_read(pid, sp, &v, 8))
			return false;
		r->rsp = sp + 8;
		return put(&e->to, pid, r, v);
	case E_LEAVE:
		if (!mem_read(pid, r->rbp, &v, 8))
			return false;
		r->rsp = r->rbp + 8;
		r->rbp = v;
		return true;
	case E_SETCC:
		return put(&e->to, pid, r, emu_condition(e->cc, r->eflags));
	case E_CMOV: /* reads in any case, and clears the upper half in any case */
		if (!get(&e->from, pid, r, &v))
			return false;
		if (!emu_condition(e->cc, r->eflags))
			get(&e->to, pid, r, &v);
		return put(&e->to, pid, r, v);
	case E_CDQE:
		v = sign(r->rax, e->to.size / 2);
		r->rax = e->to.size == 8 ? v : low(v, 4);
		return true;
	default: /* E_CDQ */
		v = sign(r->rax, e->to.size) >> 63 ? ~0ull : 0;
		r->rdx = low(v, e->to.size);
		return true;
	}
}

bool emu_do(const struct emu *e, pid_t pid, struct user_regs_struct *r)
{
	switch (e->op) {
	case E_NONE:
		return false;
	case E_NOP:
		return true;
	case E_MOV:
	case E_MOVSX:
	case E_LEA:
	case E_PUSH:
	case E_POP:
	case E_LEAVE:
	case E_SETCC:
	case E_CMOV:
	case E_CDQE:
	case E_CDQ:
		return move(e, pid, r);
	default:
		return arithmetic(e, pid, r);
	}
}
