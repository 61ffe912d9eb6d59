/* SPDX-License-Identifier: MIT
 *
 * r15.c - instructions that name r15, in a copy where r15 is the log pointer
 *
 * The program's r15 lives in tcb.r15. In this order of preference:
 *
 *   push, pop, mov      the slot is the operand:       mov %gs:R15,%rax
 *   op with a register  the slot in place of it:       add %rbx,%gs:R15   (64-bit, or r15 only read)
 *     form in modrm.rm  (op r15,rm is turned around where a twin opcode exists)
 *   everything else     a borrowed register S:         mov S,%gs:SPILLi     unless S is dead
 *                                                      mov %gs:R15,S        if r15 is read
 *                                                      the instruction with S for r15
 *                                                      mov S,%gs:R15        if r15 is written
 *                                                      mov %gs:SPILLi,S     unless S was dead
 *
 * Only mov is added, so flags stay. A patched encoding is decoded again and every operand
 * compared with the original: what does not come out equal has no encoding here.
 * The borrowed register is never rsp, rbp, r12 or r13, whose modrm/sib encodings are special
 * (SDM Vol. 2, 2.1.5 and table 2-5).
 */
#include <string.h>
#include "decode.h"
#include "emit.h"
#include "sem_lift.h"

#define BORROWABLE (GPR_ALL & ~(1u << X_RSP | 1u << X_RBP | 1u << 12 | 1u << 13 | 1u << R15))

static int decode(const uint8_t *b, size_t n, ZydisDecodedInstruction *in, ZydisDecodedOperand *op)
{
	return decode_full(b, n, in, op) ? 0 : -1;
}

int dec_insn(const struct module *m, const struct an_insn *i, struct dec *d)
{
	d->vaddr = i->vaddr;
	d->b = elf_at(m, i->vaddr, i->len);
	if (!d->b || decode(d->b, i->len, &d->in, d->op) || d->in.length != i->len)
		return -1;
	return 0;
}

int dec_gpr(ZydisRegister r)
{
	return gpr_of(r);
}

uint32_t dec_gprs(const struct dec *d)
{
	uint32_t set = 0;

	for (int i = 0; i < d->in.operand_count; i++) {
		const ZydisDecodedOperand *o = &d->op[i];
		int r[2] = {-1, -1};

		if (o->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			r[0] = dec_gpr(o->reg.value);
		} else if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			r[0] = dec_gpr(o->mem.base);
			r[1] = dec_gpr(o->mem.index);
		}
		for (int k = 0; k < 2; k++)
			if (r[k] >= 0)
				set |= 1u << r[k];
	}
	return set;
}

bool r15_named(const struct dec *d)
{
	return dec_gprs(d) >> R15 & 1;
}

/* read (1), written (2); partial and conditional writes read as well; addresses read */
static unsigned r15_access(const struct dec *d)
{
	unsigned a = 0;

	for (int i = 0; i < d->in.operand_count; i++) {
		const ZydisDecodedOperand *o = &d->op[i];

		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    (dec_gpr(o->mem.base) == (int)R15 || dec_gpr(o->mem.index) == (int)R15))
			a |= 1;
		if (o->type != ZYDIS_OPERAND_TYPE_REGISTER || dec_gpr(o->reg.value) != (int)R15)
			continue;
		if (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
			a |= 1;
		if (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) {
			a |= 2;
			if (!(o->actions & ZYDIS_OPERAND_ACTION_WRITE) || o->size < 32)
				a |= 1;
		}
	}
	return a;
}

/* ---- borrowed register ---- */

/* extension bit of a register field in whatever prefix the instruction has */
static int set_ext(const struct dec *d, uint8_t *b, char f, unsigned bit)
{
	const ZydisDecodedInstruction *in = &d->in;
	int sh;
	uint8_t *p;

	switch (in->encoding) {
	case ZYDIS_INSTRUCTION_ENCODING_LEGACY:
		if (!(in->attributes & ZYDIS_ATTRIB_HAS_REX))
			return -1;
		p = b + in->raw.rex.offset;
		sh = f == 'R' ? 2 : f == 'X' ? 1 : 0;
		*p = (*p & ~(1u << sh)) | bit << sh;
		return 0;
	case ZYDIS_INSTRUCTION_ENCODING_VEX:
		p = b + in->raw.vex.offset + 1;
		if (in->raw.vex.size == 2 && f != 'R')
			return -1;
		break;
	case ZYDIS_INSTRUCTION_ENCODING_EVEX:
		p = b + in->raw.evex.offset + 1;
		break;
	default:
		return -1;
	}
	sh = f == 'R' ? 7 : f == 'X' ? 6 : 5; /* stored inverted */
	*p = (*p & ~(1u << sh)) | !bit << sh;
	return 0;
}

static int set_vvvv(const struct dec *d, uint8_t *b, unsigned s)
{
	uint8_t *p;

	if (d->in.encoding == ZYDIS_INSTRUCTION_ENCODING_VEX)
		p = b + d->in.raw.vex.offset + (d->in.raw.vex.size == 2 ? 1 : 2);
	else if (d->in.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX)
		p = b + d->in.raw.evex.offset + 2;
	else
		return -1;
	*p = (*p & ~0x78) | (~s & 15) << 3;
	return 0;
}

static void set_low(uint8_t *p, int sh, unsigned s)
{
	*p = (*p & ~(7u << sh)) | (s & 7) << sh;
}

static int patch_reg(const struct dec *d, const ZydisDecodedOperand *o, unsigned s, uint8_t *b)
{
	const ZydisDecodedInstruction *in = &d->in;

	switch (o->encoding) {
	case ZYDIS_OPERAND_ENCODING_MODRM_REG:
		set_low(b + in->raw.modrm.offset, 3, s);
		return set_ext(d, b, 'R', s >> 3);
	case ZYDIS_OPERAND_ENCODING_MODRM_RM:
		set_low(b + in->raw.modrm.offset, 0, s);
		return set_ext(d, b, 'B', s >> 3);
	case ZYDIS_OPERAND_ENCODING_NDSNDD:
		return set_vvvv(d, b, s);
	case ZYDIS_OPERAND_ENCODING_OPCODE:
		if (in->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT && in->opcode_map != ZYDIS_OPCODE_MAP_0F)
			return -1;
		set_low(b + in->raw.prefix_count + (in->opcode_map == ZYDIS_OPCODE_MAP_0F), 0, s);
		return set_ext(d, b, 'B', s >> 3);
	default:
		return -1;
	}
}

static int patch_mem(const struct dec *d, const ZydisDecodedOperand *o, unsigned s, uint8_t *b)
{
	const ZydisDecodedInstruction *in = &d->in;
	bool sib = in->raw.modrm.rm == 4;

	/* movdir64b's destination: the register operand says which; that all are as they should be is seen afterwards */
	if (o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
		return 0;
	if (dec_gpr(o->mem.base) == (int)R15) {
		set_low(b + (sib ? in->raw.sib.offset : in->raw.modrm.offset), 0, s);
		if (set_ext(d, b, 'B', s >> 3))
			return -1;
	}
	if (dec_gpr(o->mem.index) == (int)R15) {
		set_low(b + in->raw.sib.offset, 3, s);
		if (set_ext(d, b, 'X', s >> 3))
			return -1;
	}
	return 0;
}

/* the register r of the original shows up as q in the patched form */
static bool same_reg(ZydisRegister r, ZydisRegister q, unsigned s)
{
	if (dec_gpr(r) != (int)R15)
		return r == q;
	return dec_gpr(q) == (int)s && ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, r) ==
					       ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, q);
}

static bool same_operand(const ZydisDecodedOperand *a, const ZydisDecodedOperand *b, unsigned s)
{
	if (a->type != b->type || a->size != b->size || a->actions != b->actions)
		return false;
	switch (a->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		return same_reg(a->reg.value, b->reg.value, s);
	case ZYDIS_OPERAND_TYPE_MEMORY:
		return same_reg(a->mem.base, b->mem.base, s) && same_reg(a->mem.index, b->mem.index, s) &&
		       a->mem.scale == b->mem.scale && a->mem.disp.value == b->mem.disp.value &&
		       (a->mem.segment == b->mem.segment || /* rbp, rsp: ss instead of ds, both flat */
			(a->mem.segment <= ZYDIS_REGISTER_DS && b->mem.segment <= ZYDIS_REGISTER_DS));
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		return a->imm.value.u == b->imm.value.u;
	default:
		return true;
	}
}

int r15_patch(const struct dec *d, unsigned s, uint8_t out[16])
{
	ZydisDecodedInstruction in;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];

	memcpy(out, d->b, d->in.length);
	for (int i = 0; i < d->in.operand_count; i++) {
		const ZydisDecodedOperand *o = &d->op[i];

		if (o->type == ZYDIS_OPERAND_TYPE_REGISTER && dec_gpr(o->reg.value) == (int)R15 &&
		    patch_reg(d, o, s, out))
			return -1;
		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    (dec_gpr(o->mem.base) == (int)R15 || dec_gpr(o->mem.index) == (int)R15) &&
		    patch_mem(d, o, s, out))
			return -1;
	}
	if (decode(out, d->in.length, &in, op) || in.length != d->in.length ||
	    in.mnemonic != d->in.mnemonic || in.operand_count != d->in.operand_count)
		return -1;
	for (int i = 0; i < in.operand_count; i++)
		if (!same_operand(&d->op[i], &op[i], s))
			return -1;
	return 0;
}

struct scratch scratch_get(struct em *e, uint32_t avoid, uint32_t live)
{
	static const uint8_t order[] = {0, 1, 2, 6, 7, 8, 9, 10, 11, 3, 14};
	struct scratch s = {NOREG, NOREG};
	struct map_xlat *x = &e->c.cur;

	avoid |= (x->spill[0] != NOREG ? 1u << x->spill[0] : 0) |
		 (x->spill[1] != NOREG ? 1u << x->spill[1] : 0);
	if (x->r15_reg != NOREG)
		avoid |= 1u << x->r15_reg;
	for (int pass = 0; pass < 2 && s.reg == NOREG; pass++)
		for (unsigned i = 0; i < sizeof(order); i++)
			if (!((avoid | (pass ? 0 : live)) >> order[i] & 1)) {
				s.reg = order[i];
				break;
			}
	if (s.reg == NOREG) {
		e->c.fail = "no register to borrow";
		s.reg = 0;
		return s;
	}
	if (!(live >> s.reg & 1))
		return s;
	s.slot = x->spill[0] == NOREG ? 0 : 1;
	if (x->spill[s.slot] != NOREG)
		e->c.fail = "no slot to spill to";
	code_gs(&e->c, 0x89, s.reg, s.slot ? TCB_SPILL1 : TCB_SPILL0, true);
	x->spill[s.slot] = s.reg;
	return s;
}

void scratch_put(struct em *e, struct scratch s)
{
	if (s.slot == NOREG)
		return;
	code_gs(&e->c, 0x8b, s.reg, s.slot ? TCB_SPILL1 : TCB_SPILL0, true);
	e->c.cur.spill[s.slot] = NOREG;
}

/* ---- the slot as a memory operand ---- */

static bool slot_ok(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_OR:
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST:
	case ZYDIS_MNEMONIC_ADC:
	case ZYDIS_MNEMONIC_SBB:
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
	case ZYDIS_MNEMONIC_NEG:
	case ZYDIS_MNEMONIC_NOT:
	case ZYDIS_MNEMONIC_IMUL:
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_SHR:
	case ZYDIS_MNEMONIC_SAR:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
	case ZYDIS_MNEMONIC_CMOVZ:
	case ZYDIS_MNEMONIC_CMOVNZ:
	case ZYDIS_MNEMONIC_CMOVB:
	case ZYDIS_MNEMONIC_CMOVNB:
	case ZYDIS_MNEMONIC_CMOVL:
	case ZYDIS_MNEMONIC_CMOVNL:
	case ZYDIS_MNEMONIC_CMOVLE:
	case ZYDIS_MNEMONIC_CMOVNLE:
	case ZYDIS_MNEMONIC_CMOVBE:
	case ZYDIS_MNEMONIC_CMOVNBE:
	case ZYDIS_MNEMONIC_CMOVS:
	case ZYDIS_MNEMONIC_CMOVNS:
	case ZYDIS_MNEMONIC_MOVQ:
	case ZYDIS_MNEMONIC_CVTSI2SD:
	case ZYDIS_MNEMONIC_SETZ:
	case ZYDIS_MNEMONIC_SETNZ:
	case ZYDIS_MNEMONIC_POPCNT:
		return true;
	default:
		return false;
	}
}

/* op reg,rm and op rm,reg: the twin opcode, or -1 (SDM Vol. 2, appendix A: 00-3B, 88-8B; test) */
static int twin(const ZydisDecodedInstruction *in)
{
	if (in->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT)
		return -1;
	if ((in->opcode < 0x40 && (in->opcode & 7) < 4) || (in->opcode >= 0x88 && in->opcode <= 0x8b))
		return in->opcode ^ 2;
	if (in->opcode == 0x84 || in->opcode == 0x85)
		return in->opcode;
	return -1;
}

/* Writes the form with the slot for r15 to out, returns its length; 0 if there is none. */
static int slot_form(const struct dec *d, uint8_t out[32])
{
	const ZydisDecodedInstruction *in = &d->in;
	unsigned rm = in->raw.modrm.rm | (in->raw.rex.B ? 8 : 0),
		 reg = in->raw.modrm.reg | (in->raw.rex.R ? 8 : 0);
	uint8_t b[16];
	int n = 0, mo = in->raw.modrm.offset, opo;
	ZydisDecodedInstruction in2;
	ZydisDecodedOperand op2[ZYDIS_MAX_OPERAND_COUNT];
	int rmop = -1;

	if (in->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY || !(in->attributes & ZYDIS_ATTRIB_HAS_MODRM) ||
	    in->raw.modrm.mod != 3 || !(in->attributes & ZYDIS_ATTRIB_HAS_REX) || !slot_ok(in->mnemonic))
		return 0;
	memcpy(b, d->b, in->length);
	opo = mo - 1;
	if (rm != R15) {
		int t = twin(in);

		if (t < 0 || reg != R15)
			return 0;
		b[opo] = t;
		b[mo] = 0xc0 | (rm & 7) << 3 | 7;
		b[in->raw.rex.offset] = (b[in->raw.rex.offset] & ~5) | (rm >> 3) << 2 | 1;
		reg = rm;
	} else if (reg == R15 && dec_gpr(d->op[0].reg.value) == (int)R15 &&
		   d->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER && dec_gpr(d->op[1].reg.value) == (int)R15) {
		return 0; /* op r15,r15 */
	}
	out[n++] = 0x65;
	memcpy(out + n, b, mo);
	out[n + in->raw.rex.offset] &= ~3; /* X, B */
	n += mo;
	out[n++] = (b[mo] & 0x38) | 4;
	out[n++] = 0x25;
	memset(out + n, 0, 4);
	out[n] = TCB_R15;
	n += 4;
	memcpy(out + n, b + mo + 1, in->length - mo - 1);
	n += in->length - mo - 1;
	if (n > 15 || decode(out, n, &in2, op2) || in2.length != n || in2.mnemonic != in->mnemonic ||
	    in2.operand_count != in->operand_count)
		return 0;
	for (int i = 0; i < in2.operand_count; i++) {
		if (op2[i].type == ZYDIS_OPERAND_TYPE_MEMORY && op2[i].mem.segment == ZYDIS_REGISTER_GS)
			rmop = i;
		else if (op2[i].type == ZYDIS_OPERAND_TYPE_REGISTER && dec_gpr(op2[i].reg.value) == (int)R15)
			return 0; /* named a second time */
	}
	/* same operand, same width, and a 32-bit result would leave the slot's upper half */
	for (int i = 0; i < in->operand_count; i++) {
		const ZydisDecodedOperand *o = &d->op[i];

		if (o->type != ZYDIS_OPERAND_TYPE_REGISTER || dec_gpr(o->reg.value) != (int)R15)
			continue;
		if (rmop < 0 || op2[rmop].size > o->size || op2[rmop].actions != o->actions)
			return 0;
		if ((o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    (o->size == 32 || op2[rmop].size != o->size))
			return 0;
		if (op2[rmop].size == 128 || ZydisRegisterGetClass(o->reg.value) == ZYDIS_REGCLASS_INVALID)
			return 0;
	}
	return n;
}

/* push r15, pop r15, mov $imm,%r15d (zero-extends; the slot's store sign-extends, so imm >= 0): as slot_form */
static unsigned special(const struct dec *d, uint8_t out[32])
{
	static const uint8_t push[] = {0x65, 0xff, 0x34, 0x25, TCB_R15, 0, 0, 0},
			     pop[] = {0x65, 0x8f, 0x04, 0x25, TCB_R15, 0, 0, 0},
			     mov[] = {0x65, 0x48, 0xc7, 0x04, 0x25, TCB_R15, 0, 0, 0};
	int32_t imm = (int32_t)d->in.raw.imm[0].value.s;
	uint8_t op = d->in.opcode;

	_Static_assert(TCB_R15 < 0x80, "a byte of the displacement");
	if (d->in.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
	    d->in.opcode_map != ZYDIS_OPCODE_MAP_DEFAULT)
		return 0;
	if (op == 0xbf && d->in.operand_width == 32 && imm >= 0) {
		memcpy(out, mov, sizeof(mov));
		memcpy(out + sizeof(mov), &imm, 4);
		return sizeof(mov) + 4;
	}
	if (d->in.operand_width != 64 || (op != 0x57 && op != 0x5f))
		return 0;
	memcpy(out, op == 0x57 ? push : pop, sizeof(push));
	return sizeof(push);
}

unsigned r15_slot(const struct dec *d, uint8_t out[32])
{
	unsigned n = special(d, out);

	if (!n)
		n = (unsigned)slot_form(d, out);
	return n <= R15_SLOT_MAX ? n : 0;
}

/* mov, movzx, movsx, lea mem,reg with r15 in the address: the destination can be the borrowed
 * register, it is overwritten anyway */
static int dest_scratch(const struct dec *d)
{
	int r;

	switch (d->in.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
	case ZYDIS_MNEMONIC_LEA:
		break;
	default:
		return -1;
	}
	if (d->op[0].type != ZYDIS_OPERAND_TYPE_REGISTER || d->op[0].size < 32 ||
	    d->op[1].type != ZYDIS_OPERAND_TYPE_MEMORY)
		return -1;
	r = dec_gpr(d->op[0].reg.value);
	if (r < 0 || !(BORROWABLE >> r & 1) || dec_gpr(d->op[1].mem.base) == r ||
	    dec_gpr(d->op[1].mem.index) == r)
		return -1;
	return r;
}

bool r15_can(const struct dec *d)
{
	uint8_t out[32];
	uint32_t used = dec_gprs(d);

	if (r15_slot(d, out))
		return true;
	for (unsigned s = 0; s < 16; s++)
		if ((BORROWABLE & ~used) >> s & 1)
			return !r15_patch(d, s, out);
	return false;
}

void r15_emit(struct em *e, const struct dec *d, uint32_t live)
{
	uint32_t next = d->vaddr + d->in.length;
	unsigned acc = r15_access(d);
	struct scratch s;
	uint8_t out[32];
	unsigned slot;
	int n;

	if (e->cur_rot != NOREG) {
		if (r15_patch(d, e->cur_rot, out))
			e->c.fail = "a loop's register for r15 has no encoding";
		else
			emit_bytes(e, d, out);
		return;
	}
	slot = r15_slot(d, out);
	if (slot) {
		code_insn(&e->c);
		code_bytes(&e->c, out, slot);
		return;
	}
	n = acc == 1 ? dest_scratch(d) : -1;
	s = n >= 0 ? (struct scratch){n, NOREG} : scratch_get(e, dec_gprs(d) | ~BORROWABLE, live);
	if (r15_patch(d, s.reg, out)) {
		e->c.fail = "an instruction that names r15 has no other encoding";
		return;
	}
	if (acc & 1)
		code_gs(&e->c, 0x8b, s.reg, TCB_R15, true);
	emit_bytes(e, d, out);
	e->c.cur.vaddr = next;
	e->c.ahead = 0;
	if (acc & 2) {
		e->c.cur.r15_reg = s.reg;
		code_gs(&e->c, 0x89, s.reg, TCB_R15, true);
		e->c.cur.r15_reg = NOREG;
	}
	scratch_put(e, s);
}
