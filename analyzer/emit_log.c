/* SPDX-License-Identifier: MIT
 *
 * emit_log.c - the stores into the log
 *
 * A log is a store at e->c.off(%r15). What is in a register already costs that store alone; an
 * effective address, the program's r15 and a target in memory are brought into a register
 * first (dead, or spilled to the TCB). A ptwrite is one instruction and no byte of the log. Nothing here touches flags. A signal may come between any two
 * instructions, so what was stored counts from the very next one on.
 */
#include "emit.h"

uint32_t log_bytes(const struct plan_log *l)
{
	switch (l->what) {
	case LOG_REG:
	case LOG_EA:
	case LOG_VEC:
	case LOG_KMASK:
		return l->w;
	case LOG_SETCC:
	case LOG_HOP:
		return 1;
	case LOG_TARGET:
		return l->w == 8 ? 8 : 4;
	case LOG_PTW:
		return 0;
	default:
		return 8;
	}
}

/* l has just been stored */
static void stored_part(struct em *e, const struct plan_log *l, unsigned n)
{
	e->c.off += n;
	if (l->when == AT_BEFORE)
		e->c.ahead += n;
	e->since += n;
	e->logbytes += n;
}

static void stored(struct em *e, const struct plan_log *l)
{
	stored_part(e, l, log_bytes(l));
}

/* mov of w bytes from reg to the log. There are no 6-byte stores: the next log overwrites the last two. */
static void store(struct em *e, unsigned reg, unsigned w)
{
	struct code *c = &e->c;
	unsigned rex = 0x41 | (reg & 8 ? 4 : 0) | (w > 4 ? 8 : 0);

	code_insn(c);
	if (w == 2)
		code_byte(c, 0x66);
	code_byte(c, rex); /* also makes spl..dil of 4..7 */
	code_byte(c, w == 1 ? 0x88 : 0x89);
	code_r15mem(c, reg, e->c.off);
}

/* modrm, sib, disp of memory operand o with r15 replaced by s */
static void address(struct em *e, const ZydisDecodedOperand *o, unsigned reg, unsigned s, int32_t disp)
{
	struct code *c = &e->c;
	int b = dec_gpr(o->mem.base), x = dec_gpr(o->mem.index), sc = o->mem.scale;
	unsigned log2 = sc == 8 ? 3 : sc == 4 ? 2 : sc == 2 ? 1 : 0;
	unsigned rex;

	if (b == (int)R15)
		b = s;
	if (x == (int)R15)
		x = s;
	rex = 0x48 | (reg & 8 ? 4 : 0) | (x > 7 ? 2 : 0) | (b > 7 ? 1 : 0);
	code_byte(c, rex);
	code_byte(c, 0x8d);
	code_byte(c, (b < 0 ? 0x04 : 0x84) | (reg & 7) << 3);
	code_byte(c, log2 << 6 | (x < 0 ? 4 : x & 7) << 3 | (b < 0 ? 5 : b & 7));
	code_u32(c, disp);
}

/* movzbl %al,s; lea (%rbx,s),s: the operand of xlat, of which Zydis shows rbx alone */
static void lea_xlat(struct code *c, const struct dec *d, unsigned s)
{
	unsigned hi = s & 8 ? 1 : 0, lo = s & 7;

	code_insn(c);
	code_bytes(c, (uint8_t[]){0x40 | hi << 2, 0x0f, 0xb6, 0xc0 | lo << 3}, 4);
	code_insn(c);
	if (d->in.address_width == 32)
		code_byte(c, 0x67);
	code_bytes(c, (uint8_t[]){0x48 | hi << 2 | hi << 1, 0x8d, 0x04 | lo << 3, lo << 3 | X_RBX}, 4);
}

/* lea of memory operand o into register s */
static void lea(struct em *e, const struct dec *d, const ZydisDecodedOperand *o, unsigned s, int32_t extra)
{
	struct code *c = &e->c;
	int64_t disp = o->mem.disp.has_displacement ? o->mem.disp.value : 0;

	if (o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && o->mem.base == ZYDIS_REGISTER_RSP)
		disp = 0; /* the plan says where, relative to rsp before the instruction */
	if (d->in.mnemonic == ZYDIS_MNEMONIC_POP && o->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT &&
	    dec_gpr(o->mem.base) == X_RSP)
		extra += d->in.operand_width / 8; /* address computed after the increment (SDM Vol. 2, POP) */
	if (d->in.mnemonic == ZYDIS_MNEMONIC_XLAT) {
		lea_xlat(c, d, s);
		return;
	}
	if (o->mem.base == ZYDIS_REGISTER_RIP) {
		code_insn(c);
		code_byte(c, 0x48 | (s & 8 ? 4 : 0));
		code_byte(c, 0x8d);
		code_byte(c, 0x05 | (s & 7) << 3);
		code_mod32(c, d->vaddr + d->in.length + (uint32_t)disp, 0);
		return;
	}
	if (o->mem.base == ZYDIS_REGISTER_NONE && o->mem.index == ZYDIS_REGISTER_NONE &&
	    disp != (int32_t)disp) {
		code_insn(c);
		code_byte(c, 0x48 | (s & 8 ? 1 : 0)); /* movabs */
		code_byte(c, 0xb8 | (s & 7));
		code_bytes(c, &disp, 8);
		return;
	}
	if (dec_gpr(o->mem.base) == (int)R15 || dec_gpr(o->mem.index) == (int)R15)
		code_gs(c, 0x8b, s, TCB_R15, true);
	code_insn(c);
	if (d->in.address_width == 32 && o->mem.base != ZYDIS_REGISTER_RSP)
		code_byte(c, 0x67);
	address(e, o, s, s, (int32_t)disp + extra);
}

static void log_ea(struct em *e, const struct plan_log *l, const struct dec *d, uint32_t live)
{
	const ZydisDecodedOperand *o = &d->op[l->reg];
	struct scratch s;

	if (l->reg >= d->in.operand_count || o->type != ZYDIS_OPERAND_TYPE_MEMORY ||
	    o->mem.type == ZYDIS_MEMOP_TYPE_VSIB) {
		e->c.fail = "the plan logs the address of an operand that has none";
		return;
	}
	/* nor one that it is going to write: it may fault, and a handler may skip it */
	s = scratch_get(e, dec_gprs(d), live);
	lea(e, d, o, s.reg, l->disp);
	store(e, s.reg, 8);
	stored(e, l);
	scratch_put(e, s);
}

void emit_load_operand(struct em *e, const struct dec *d, unsigned reg)
{
	const ZydisDecodedOperand *o = &d->op[0];
	struct code *c = &e->c;
	uint8_t seg = o->mem.segment == ZYDIS_REGISTER_FS   ? 0x64
		      : o->mem.segment == ZYDIS_REGISTER_GS ? 0x65
							    : 0;
	uint32_t at;

	/* the operand's encoding is mov's with another opcode and reg field: 8b /r for ff /2, ff /4 */
	if (o->mem.base == ZYDIS_REGISTER_RIP) {
		code_insn(c);
		code_byte(c, 0x48 | (reg & 8 ? 4 : 0));
		code_byte(c, 0x8b);
		code_byte(c, 0x05 | (reg & 7) << 3);
		code_mod32(c, d->vaddr + d->in.length + (uint32_t)o->mem.disp.value, 0);
		return;
	}
	if (seg == 0x65 || d->in.address_width != 64) {
		c->fail = "target operand with a gs segment or a 32-bit address";
		return;
	}
	code_insn(c);
	if (seg)
		code_byte(c, seg);
	at = c->n + 1;
	address(e, o, reg, reg, o->mem.disp.has_displacement ? (int32_t)o->mem.disp.value : 0);
	c->b[at] = 0x8b;
}

/* mov (%rsp),reg */
static void load_top(struct code *c, unsigned reg)
{
	code_insn(c);
	code_bytes(c, (uint8_t[]){0x48 | (reg & 8 ? 4 : 0), 0x8b, 0x04 | (reg & 7) << 3, 0x24}, 4);
}

/* The target of an indirect jump, or of a ret (at the stack's top). */
static void log_target(struct em *e, const struct plan_log *l, const struct dec *d, uint32_t live)
{
	unsigned w = l->w == 8 ? 8 : 4;
	struct code *c = &e->c;
	struct scratch s;
	int r = d->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? dec_gpr(d->op[0].reg.value) : -1;

	if (d->in.meta.category != ZYDIS_CATEGORY_RET && r >= 0 && r != (int)R15) {
		store(e, r, w);
		stored(e, l);
		return;
	}
	s = scratch_get(e, dec_gprs(d) & live, live);
	if (d->in.meta.category == ZYDIS_CATEGORY_RET) {
		load_top(c, s.reg);
	} else if (r == (int)R15) {
		code_gs(c, 0x8b, s.reg, TCB_R15, true);
	} else {
		if (dec_gprs(d) >> R15 & 1)
			code_gs(c, 0x8b, s.reg, TCB_R15, true);
		emit_load_operand(e, d, s.reg);
	}
	store(e, s.reg, w);
	stored(e, l);
	scratch_put(e, s);
}

/* kmovq k,m64: VEX.L0.0F.W1 91 /r (AVX512BW) */
static void log_k(struct em *e, unsigned k)
{
	code_insn(&e->c);
	code_bytes(&e->c, (uint8_t[]){0xc4, 0xc1, 0xf8, 0x91}, 4);
	code_r15mem(&e->c, k, e->c.off);
}

/* EVEX disp8 is scaled, so a 32-bit displacement is always used */
static void r15_disp32(struct code *c, unsigned reg, uint32_t off)
{
	code_byte(c, 0x87 | (reg & 7) << 3);
	code_u32(c, off);
}

/* Lower w bytes of vector register v. Registers 16 and up: forms that AVX512F alone has
 * (vmovdqu64 zmm, vextracti64x4, vextracti32x4, vmovq), so nothing more than the program uses. */
static void log_vec(struct em *e, unsigned v, unsigned w, bool legacy)
{
	struct code *c = &e->c;
	unsigned r = v & 8 ? 0 : 0x80, r2 = v & 16 ? 0 : 0x10;

	code_insn(c);
	if (legacy && v < 16 && w <= 16) {
		code_byte(c, w == 16 ? 0xf3 : 0x66); /* movdqu, movq */
		code_byte(c, 0x41 | (v & 8 ? 4 : 0));
		code_byte(c, 0x0f);
		code_byte(c, w == 16 ? 0x7f : 0xd6);
		code_r15mem(c, v, e->c.off);
	} else if (v < 16 && w <= 32) {
		code_byte(c, 0xc4); /* vmovdqu x/ymm, vmovq */
		code_byte(c, r | 0x41);
		code_byte(c, w == 8 ? 0x79 : w == 16 ? 0x7a : 0x7e);
		code_byte(c, w == 8 ? 0xd6 : 0x7f);
		code_r15mem(c, v, e->c.off);
	} else {
		code_byte(c, 0x62);
		code_byte(c, r | 0x40 | r2 | (w == 16 || w == 32 ? 3 : 1)); /* X=1 B=0 (r15), map */
		code_byte(c, w == 8 ? 0xfd : w == 16 ? 0x7d : w == 32 ? 0xfd : 0xfe);
		code_byte(c, w == 8 ? 0x08 : 0x48);
		code_byte(c, w == 8 ? 0xd6 : w == 16 ? 0x39 : w == 32 ? 0x3b : 0x7f);
		r15_disp32(c, v, e->c.off);
		if (w == 16 || w == 32)
			code_byte(c, 0);
	}
}

/* Before the instruction: the stores depend on the counter, and the instruction waits for them. After it: lfence
 * waits for the instruction (SDM Vol. 2, RDTSC). */
static void log_tsc(struct em *e, const struct plan_log *l, uint32_t live)
{
	struct scratch a = scratch_get(e, ~(1u << X_RAX), live), d = scratch_get(e, ~(1u << X_RDX), live);
	struct code *c = &e->c;

	if (l->when == AT_AFTER) {
		code_insn(c);
		code_bytes(c, "\x0f\xae\xe8", 3);
	}
	code_insn(c);
	code_bytes(c, "\x0f\x31", 2);
	store(e, X_RAX, 4);
	stored_part(e, l, 4);
	store(e, X_RDX, 4);
	stored_part(e, l, 4);
	scratch_put(e, d);
	scratch_put(e, a);
}

/* ptwrite of a register, or of r15's slot: F3 [REX.W] 0F AE /4, 32 or 64 bits (SDM Vol. 2, PTWRITE) */
static void log_ptw(struct em *e, const struct plan_log *l)
{
	uint32_t *label = &e->ptw[l - e->p->log];
	unsigned rex = (l->w > 4 ? 0x48 : 0) | (l->reg & 8 && l->reg != R15 ? 0x41 : 0);
	struct code *c = &e->c;

	if (*label != AN_NONE)
		c->fail = "a log that stands in two places";
	*label = code_label(c);
	code_insn(c);
	code_here(c, *label);
	if (l->reg == R15)
		code_byte(c, 0x65);
	code_byte(c, 0xf3);
	if (rex)
		code_byte(c, rex);
	code_bytes(c, "\x0f\xae", 2);
	if (l->reg == R15) {
		code_bytes(c, "\x24\x25", 2);
		code_u32(c, TCB_R15);
	} else {
		code_byte(c, 0xe0 | (l->reg & 7));
	}
}

void emit_log(struct em *e, const struct plan_log *l, const struct dec *d, uint32_t live)
{
	struct code *c = &e->c;
	struct scratch s;

	switch (l->what) {
	case LOG_REG:
		if (l->reg != R15) {
			store(e, l->reg, l->w);
			stored(e, l);
			break;
		}
		s = scratch_get(e, 0, live);
		code_gs(c, 0x8b, s.reg, TCB_R15, true);
		store(e, s.reg, l->w);
		stored(e, l);
		scratch_put(e, s);
		break;
	case LOG_SETCC:
		code_insn(c);
		code_bytes(c, (uint8_t[]){0x41, 0x0f, 0x90 | (l->reg & 15)}, 3);
		code_r15mem(c, 0, e->c.off);
		stored(e, l);
		break;
	case LOG_EA:
		log_ea(e, l, d, live);
		break;
	case LOG_KMASK:
		log_k(e, l->reg);
		stored(e, l);
		break;
	case LOG_VEC:
		log_vec(e, l->reg, l->w, d && d->in.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY);
		stored(e, l);
		break;
	case LOG_POPF:
		s = scratch_get(e, 0, live);
		load_top(c, s.reg);
		store(e, s.reg, 8);
		stored(e, l);
		scratch_put(e, s);
		break;
	case LOG_TARGET:
		log_target(e, l, d, live);
		break;
	case LOG_TSC:
		log_tsc(e, l, live);
		break;
	case LOG_PTW:
		log_ptw(e, l);
		break;
	default:
		c->fail = "unknown kind of log";
	}
}
