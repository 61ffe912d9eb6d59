/* SPDX-License-Identifier: MIT
 *
 * decode.c - instruction bytes to the list of accesses they make
 *
 * Zydis says which operands there are, how they are addressed, how wide they are and
 * whether they are read or written. What it leaves open is settled here by mnemonic:
 * the order of accesses, implicit stack operands, masks, and what only looks like an
 * access. A hidden memory operand of an instruction not listed here ends the run: the
 * oracle may be incomplete, but not wrong.
 */
#define _GNU_SOURCE
#include <Zydis/Zydis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

#define CACHE_BITS 15
#define CACHE_SIZE (1u << CACHE_BITS)

static ZydisDecoder decoder;
static struct insn *cache;
/* Two, because an instruction and the one in its trap shadow are in use together. */
static struct insn uncached[2];

struct parse {
	const ZydisDecodedInstruction *zi;
	const ZydisDecodedOperand *op; /* ZYDIS_MAX_OPERAND_COUNT */
	struct insn *in;
};

void decode_init(void)
{
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	cache = calloc(CACHE_SIZE, sizeof(*cache));
	if (!cache) {
		fprintf(stderr, "oracle: no memory for the instruction cache\n");
		exit(125);
	}
}

void decode_flush(void)
{
	for (size_t i = 0; i < CACHE_SIZE; i++)
		cache[i].cacheable = false;
}

static bool is_mem(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       (op->mem.type == ZYDIS_MEMOP_TYPE_MEM || op->mem.type == ZYDIS_MEMOP_TYPE_VSIB);
}

static uint8_t reg_id(ZydisRegister r)
{
	return r == ZYDIS_REGISTER_NONE ? (uint8_t)REG_NONE : (uint8_t)ZydisRegisterGetId(r);
}

static struct access *add(struct insn *in, enum ptrace_kind kind, uint32_t size)
{
	struct access *a;

	if (in->nacc == sizeof(in->acc) / sizeof(in->acc[0])) {
		fprintf(stderr, "oracle: too many accesses at %#lx\n", in->ip);
		exit(125);
	}
	a = &in->acc[in->nacc++];
	memset(a, 0, sizeof(*a));
	a->kind = kind;
	a->size = size;
	a->base = a->index = REG_NONE;
	return a;
}

static struct access *add_operand(struct parse *p, const ZydisDecodedOperand *op, enum ptrace_kind kind)
{
	struct access *a = add(p->in, kind, op->size / 8);
	const ZydisDecodedOperandMem *m = &op->mem;

	a->disp = m->disp.has_displacement ? m->disp.value : 0;
	a->addr32 = p->zi->address_width == 32;
	if (m->base == ZYDIS_REGISTER_RIP || m->base == ZYDIS_REGISTER_EIP)
		a->disp += p->in->ip + p->in->len;
	else
		a->base = reg_id(m->base);
	a->index = reg_id(m->index);
	a->scale = m->scale;
	if (m->segment == ZYDIS_REGISTER_FS)
		a->seg = 1;
	else if (m->segment == ZYDIS_REGISTER_GS)
		a->seg = 2;
	return a;
}

/* The stack is always addressed with 64 bits, whatever the address-size prefix says. */
static void add_stack(struct insn *in, enum ptrace_kind kind, uint32_t size, int64_t disp)
{
	struct access *a = add(in, kind, size);

	a->base = 4;
	a->disp = disp;
}

static const ZydisDecodedOperand *hidden_mem(struct parse *p)
{
	for (int i = 0; i < p->zi->operand_count; i++) {
		if (is_mem(&p->op[i]) && p->op[i].visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
			return &p->op[i];
	}
	return NULL;
}

static uint32_t stack_size(struct parse *p)
{
	return hidden_mem(p)->size / 8;
}

static bool has_rep(const ZydisDecodedInstruction *zi)
{
	return zi->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
}

/* The explicit operands: all reads, then all writes. */
static void add_explicit(struct parse *p)
{
	for (int write = 0; write < 2; write++) {
		for (int i = 0; i < p->zi->operand_count_visible; i++) {
			const ZydisDecodedOperand *op = &p->op[i];
			unsigned want =
				write ? ZYDIS_OPERAND_ACTION_MASK_WRITE : ZYDIS_OPERAND_ACTION_MASK_READ;

			if (is_mem(op) && (op->actions & want))
				add_operand(p, op, write ? PTRACE_W : PTRACE_R);
		}
	}
}

static void parse_string(struct parse *p)
{
	const ZydisDecodedOperand *mem[2] = {NULL, NULL};
	int n = 0;

	for (int i = 0; i < p->zi->operand_count; i++) {
		if (is_mem(&p->op[i]) && n < 2)
			mem[n++] = &p->op[i];
	}
	if (has_rep(p->zi))
		p->in->flags |= INSN_REP;
	switch (p->zi->mnemonic) {
	case ZYDIS_MNEMONIC_MOVSB:
	case ZYDIS_MNEMONIC_MOVSW:
	case ZYDIS_MNEMONIC_MOVSD:
	case ZYDIS_MNEMONIC_MOVSQ:
		add_operand(p, mem[1], PTRACE_R);
		add_operand(p, mem[0], PTRACE_W);
		break;
	case ZYDIS_MNEMONIC_CMPSB:
	case ZYDIS_MNEMONIC_CMPSW:
	case ZYDIS_MNEMONIC_CMPSD:
	case ZYDIS_MNEMONIC_CMPSQ:
		add_operand(p, mem[0], PTRACE_R);
		add_operand(p, mem[1], PTRACE_R);
		break;
	case ZYDIS_MNEMONIC_STOSB:
	case ZYDIS_MNEMONIC_STOSW:
	case ZYDIS_MNEMONIC_STOSD:
	case ZYDIS_MNEMONIC_STOSQ:
		add_operand(p, mem[0], PTRACE_W);
		break;
	default: /* lods, scas */
		add_operand(p, mem[0], PTRACE_R);
	}
}

static bool is_string(const ZydisDecodedInstruction *zi)
{
	/* movsd and cmpsd are also SSE instructions; those have another category. */
	return zi->meta.category == ZYDIS_CATEGORY_STRINGOP;
}

/* Classes "NF": the whole operand is read whatever the mask says, because result
 * elements do not correspond to memory elements one to one. */
static bool reads_all(const ZydisDecodedInstruction *zi)
{
	switch (zi->meta.exception_class) {
	case ZYDIS_EXCEPTION_CLASS_E1NF:
	case ZYDIS_EXCEPTION_CLASS_E2NF:
	case ZYDIS_EXCEPTION_CLASS_E3NF:
	case ZYDIS_EXCEPTION_CLASS_E4NF:
	case ZYDIS_EXCEPTION_CLASS_E5NF:
	case ZYDIS_EXCEPTION_CLASS_E6NF:
		return true;
	default:
		break;
	}
	switch (zi->mnemonic) {
	/* Zydis 4.0 has E4 for these; the processor faults on masked-off elements. */
	case ZYDIS_MNEMONIC_VDBPSADBW:
	case ZYDIS_MNEMONIC_VCVTNE2PS2BF16:
	case ZYDIS_MNEMONIC_VGF2P8AFFINEQB:
	case ZYDIS_MNEMONIC_VGF2P8AFFINEINVQB:
		return true;
	default:
		return false;
	}
}

static int vector_bytes(ZydisRegister r)
{
	switch (ZydisRegisterGetClass(r)) {
	case ZYDIS_REGCLASS_XMM:
		return 16;
	case ZYDIS_REGCLASS_YMM:
		return 32;
	case ZYDIS_REGCLASS_ZMM:
		return 64;
	default:
		return 0;
	}
}

static bool is_packed_move(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_VPCOMPRESSB:
	case ZYDIS_MNEMONIC_VPCOMPRESSW:
	case ZYDIS_MNEMONIC_VPCOMPRESSD:
	case ZYDIS_MNEMONIC_VPCOMPRESSQ:
	case ZYDIS_MNEMONIC_VCOMPRESSPS:
	case ZYDIS_MNEMONIC_VCOMPRESSPD:
	case ZYDIS_MNEMONIC_VPEXPANDB:
	case ZYDIS_MNEMONIC_VPEXPANDW:
	case ZYDIS_MNEMONIC_VPEXPANDD:
	case ZYDIS_MNEMONIC_VPEXPANDQ:
	case ZYDIS_MNEMONIC_VEXPANDPS:
	case ZYDIS_MNEMONIC_VEXPANDPD:
		return true;
	default:
		return false;
	}
}

/* How many destination elements share a broadcast datum. */
static int broadcast_elems(struct parse *p)
{
	switch (p->zi->avx.broadcast.mode) {
	case ZYDIS_BROADCAST_MODE_1_TO_2:
		return 2;
	case ZYDIS_BROADCAST_MODE_1_TO_4:
	case ZYDIS_BROADCAST_MODE_2_TO_4:
		return 4;
	case ZYDIS_BROADCAST_MODE_1_TO_8:
	case ZYDIS_BROADCAST_MODE_2_TO_8:
	case ZYDIS_BROADCAST_MODE_4_TO_8:
		return 8;
	case ZYDIS_BROADCAST_MODE_1_TO_16:
	case ZYDIS_BROADCAST_MODE_2_TO_16:
	case ZYDIS_BROADCAST_MODE_4_TO_16:
	case ZYDIS_BROADCAST_MODE_8_TO_16:
		return 16;
	case ZYDIS_BROADCAST_MODE_1_TO_32:
		return 32;
	default:
		return 64;
	}
}

static void parse_evex_mask(struct parse *p)
{
	const ZydisDecodedInstruction *zi = p->zi;
	struct insn *in = p->in;
	struct access *a;
	const ZydisDecodedOperand *mem = NULL;

	add_explicit(p);
	for (int i = 0; i < zi->operand_count_visible; i++) {
		if (is_mem(&p->op[i]))
			mem = &p->op[i];
	}
	if (!mem || in->nacc != 1)
		return;
	a = &in->acc[0];
	if (a->kind == PTRACE_R && reads_all(zi))
		return;
	in->mask = MASK_K;
	in->mask_reg = ZydisRegisterGetId(zi->avx.mask.reg);
	in->nelem = mem->element_count;
	if (zi->avx.broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID) {
		a->mode = ACC_ANY;
		in->nelem = broadcast_elems(p);
		return;
	}
	a->mode = is_packed_move(zi->mnemonic) ? ACC_PACKED : ACC_ELEMS;
	a->size = mem->element_size / 8;
}

static void parse_vsib(struct parse *p)
{
	struct insn *in = p->in;
	struct access *a;
	int data = 0, nindex = 0;
	bool evex = p->zi->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX;

	add_explicit(p);
	if (in->nacc != 1)
		return;
	a = &in->acc[0];
	a->mode = ACC_VSIB;
	switch (p->zi->mnemonic) {
	case ZYDIS_MNEMONIC_VPGATHERDD:
	case ZYDIS_MNEMONIC_VPGATHERDQ:
	case ZYDIS_MNEMONIC_VGATHERDPS:
	case ZYDIS_MNEMONIC_VGATHERDPD:
	case ZYDIS_MNEMONIC_VPSCATTERDD:
	case ZYDIS_MNEMONIC_VPSCATTERDQ:
	case ZYDIS_MNEMONIC_VSCATTERDPS:
	case ZYDIS_MNEMONIC_VSCATTERDPD:
		a->index_size = 4;
		break;
	default:
		a->index_size = 8;
	}
	for (int i = 0; i < p->zi->operand_count_visible; i++) {
		const ZydisDecodedOperand *op = &p->op[i];

		if (is_mem(op))
			nindex = vector_bytes(op->mem.index) / a->index_size;
		else if (op->type == ZYDIS_OPERAND_TYPE_REGISTER && vector_bytes(op->reg.value) && !data)
			data = vector_bytes(op->reg.value) / a->size;
	}
	in->nelem = data < nindex ? data : nindex;
	if (evex) {
		in->mask = MASK_K;
		in->mask_reg = ZydisRegisterGetId(p->zi->avx.mask.reg);
	} else {
		in->mask = MASK_SIGN;
		in->mask_reg = ZydisRegisterGetId(p->op[2].reg.value);
		in->mask_size = a->size;
	}
}

static void parse_sign_mask(struct parse *p, int mask_op, uint32_t elem, bool mmx)
{
	struct insn *in = p->in;
	const ZydisDecodedOperand *mem = hidden_mem(p);

	if (mem)
		add_operand(p, mem, PTRACE_W);
	else
		add_explicit(p);
	if (in->nacc != 1)
		return;
	in->mask = mmx ? MASK_MMX : MASK_SIGN;
	in->mask_reg = ZydisRegisterGetId(p->op[mask_op].reg.value);
	in->mask_size = elem;
	in->nelem = in->acc[0].size / elem;
	in->acc[0].mode = ACC_ELEMS;
	in->acc[0].size = elem;
}

static void parse_bits(struct parse *p)
{
	add_explicit(p);
	if (p->op[0].type != ZYDIS_OPERAND_TYPE_MEMORY || p->op[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return;
	for (int i = 0; i < p->in->nacc; i++) {
		p->in->acc[i].mode = ACC_BITS;
		p->in->acc[i].bit_reg = reg_id(p->op[1].reg.value);
		p->in->acc[i].bit_log2 = __builtin_ctz(p->op[0].size);
	}
}

static void parse_hint(struct parse *p)
{
	for (int i = 0; i < p->zi->operand_count_visible; i++) {
		if (is_mem(&p->op[i]))
			add_operand(p, &p->op[i], PTRACE_P)->size = 64;
	}
}

/* The size is not known before edx:eax is: 0 and 1 stand for the two formats. */
static void parse_xsave(struct parse *p, enum ptrace_kind kind, bool compacted)
{
	struct access *a = add_operand(p, &p->op[0], kind);

	a->size = compacted ? UINT32_MAX : UINT32_MAX - 1;
}

/* Instructions with implicit stack operands. False when it is none of them. */
static bool parse_stack(struct parse *p)
{
	struct insn *in = p->in;
	uint32_t n;

	switch (p->zi->mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		add_explicit(p);
		n = stack_size(p);
		add_stack(in, PTRACE_W, n, -(int64_t)n);
		return true;
	case ZYDIS_MNEMONIC_CALL:
		in->flags |= INSN_BRANCH;
		add_explicit(p);
		n = stack_size(p);
		add_stack(in, PTRACE_W, n, -(int64_t)n);
		return true;
	case ZYDIS_MNEMONIC_POP:
		n = stack_size(p);
		add_stack(in, PTRACE_R, n, 0);
		add_explicit(p);
		/* pop (rsp based): the address uses rsp after the increment. */
		if (in->nacc == 2 && in->acc[1].base == 4)
			in->acc[1].disp += n;
		return true;
	case ZYDIS_MNEMONIC_PUSHF:
	case ZYDIS_MNEMONIC_PUSHFQ:
		in->flags |= INSN_PUSHF;
		n = stack_size(p);
		add_stack(in, PTRACE_W, n, -(int64_t)n);
		return true;
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFQ:
		add_stack(in, PTRACE_R, stack_size(p), 0);
		return true;
	case ZYDIS_MNEMONIC_RET:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRET:
		in->flags |= INSN_BRANCH;
		add_stack(in, PTRACE_R, stack_size(p), 0);
		return true;
	case ZYDIS_MNEMONIC_LEAVE:
		add(in, PTRACE_R, p->zi->operand_width / 8)->base = 5;
		return true;
	case ZYDIS_MNEMONIC_ENTER:
		in->flags |= INSN_ENTER;
		in->level = p->op[1].imm.value.u & 31;
		return true;
	default:
		return false;
	}
}

static void parse_other(struct parse *p)
{
	const ZydisDecodedInstruction *zi = p->zi;

	if (zi->avx.mask.mode != ZYDIS_MASK_MODE_INVALID && zi->avx.mask.mode != ZYDIS_MASK_MODE_DISABLED &&
	    zi->avx.mask.reg != ZYDIS_REGISTER_NONE && zi->avx.mask.reg != ZYDIS_REGISTER_K0) {
		parse_evex_mask(p);
		return;
	}
	if (hidden_mem(p) && zi->mnemonic != ZYDIS_MNEMONIC_MOVDIR64B) {
		fprintf(stderr, "oracle: %s at %#lx has an implicit operand not modelled here\n",
			ZydisMnemonicGetString(zi->mnemonic), p->in->ip);
		exit(125);
	}
	add_explicit(p);
	if (hidden_mem(p)) /* a segment prefix is for the source alone (SDM Vol. 2, MOVDIR64B) */
		add_operand(p, hidden_mem(p), PTRACE_W)->seg = 0;
}

static void parse(struct parse *p)
{
	const ZydisDecodedInstruction *zi = p->zi;
	struct insn *in = p->in;

	if (zi->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE)
		in->flags |= INSN_BRANCH;
	if (is_string(zi)) {
		parse_string(p);
		return;
	}
	for (int i = 0; i < zi->operand_count_visible; i++) {
		if (is_mem(&p->op[i]) && p->op[i].mem.type == ZYDIS_MEMOP_TYPE_VSIB) {
			parse_vsib(p);
			return;
		}
	}
	if (parse_stack(p))
		return;
	switch (zi->mnemonic) {
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_LEA:
	/* MPX is gone from processors and kernels: these are nops. */
	case ZYDIS_MNEMONIC_BNDMOV:
	case ZYDIS_MNEMONIC_BNDLDX:
	case ZYDIS_MNEMONIC_BNDSTX:
		break;
	case ZYDIS_MNEMONIC_SYSCALL:
		in->flags |= INSN_SYSCALL;
		break;
	case ZYDIS_MNEMONIC_INT3:
		in->flags |= INSN_INT3;
		break;
	case ZYDIS_MNEMONIC_XBEGIN:
		in->flags |= INSN_BRANCH | INSN_XBEGIN;
		in->fallback = in->ip + in->len + zi->raw.imm[0].value.u;
		break;
	case ZYDIS_MNEMONIC_CPUID:
	case ZYDIS_MNEMONIC_RDTSC:
	case ZYDIS_MNEMONIC_RDTSCP:
	case ZYDIS_MNEMONIC_RDPMC:
	case ZYDIS_MNEMONIC_RDRAND:
	case ZYDIS_MNEMONIC_RDSEED:
	case ZYDIS_MNEMONIC_XGETBV:
	case ZYDIS_MNEMONIC_PAUSE:
		in->flags |= INSN_EXITS;
		break;
	case ZYDIS_MNEMONIC_PREFETCH:
	case ZYDIS_MNEMONIC_PREFETCHNTA:
	case ZYDIS_MNEMONIC_PREFETCHT0:
	case ZYDIS_MNEMONIC_PREFETCHT1:
	case ZYDIS_MNEMONIC_PREFETCHT2:
	case ZYDIS_MNEMONIC_PREFETCHW:
	case ZYDIS_MNEMONIC_PREFETCHWT1:
	case ZYDIS_MNEMONIC_CLFLUSH:
	case ZYDIS_MNEMONIC_CLFLUSHOPT:
	case ZYDIS_MNEMONIC_CLWB:
	case ZYDIS_MNEMONIC_CLDEMOTE:
		parse_hint(p);
		break;
	case ZYDIS_MNEMONIC_XLAT:
		add_operand(p, hidden_mem(p), PTRACE_R)->index_al = true;
		break;
	case ZYDIS_MNEMONIC_BT:
	case ZYDIS_MNEMONIC_BTS:
	case ZYDIS_MNEMONIC_BTR:
	case ZYDIS_MNEMONIC_BTC:
		parse_bits(p);
		break;
	case ZYDIS_MNEMONIC_MASKMOVQ:
		parse_sign_mask(p, 1, 1, true);
		break;
	case ZYDIS_MNEMONIC_MASKMOVDQU:
	case ZYDIS_MNEMONIC_VMASKMOVDQU:
		parse_sign_mask(p, 1, 1, false);
		break;
	case ZYDIS_MNEMONIC_VMASKMOVPS:
	case ZYDIS_MNEMONIC_VPMASKMOVD:
		parse_sign_mask(p, 1, 4, false);
		break;
	case ZYDIS_MNEMONIC_VMASKMOVPD:
	case ZYDIS_MNEMONIC_VPMASKMOVQ:
		parse_sign_mask(p, 1, 8, false);
		break;
	case ZYDIS_MNEMONIC_XSAVE:
	case ZYDIS_MNEMONIC_XSAVE64:
	case ZYDIS_MNEMONIC_XSAVEOPT:
	case ZYDIS_MNEMONIC_XSAVEOPT64:
		parse_xsave(p, PTRACE_W, false);
		break;
	case ZYDIS_MNEMONIC_XSAVEC:
	case ZYDIS_MNEMONIC_XSAVEC64:
		parse_xsave(p, PTRACE_W, true);
		break;
	case ZYDIS_MNEMONIC_XRSTOR:
	case ZYDIS_MNEMONIC_XRSTOR64:
		parse_xsave(p, PTRACE_R, false);
		break;
	case ZYDIS_MNEMONIC_MOV:
		if (p->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER && p->op[0].reg.value == ZYDIS_REGISTER_SS)
			in->flags |= INSN_MOVSS;
		add_explicit(p);
		break;
	default:
		parse_other(p);
	}
}

static struct insn *slot_for(uint64_t ip)
{
	return &cache[(ip ^ ip >> CACHE_BITS) & (CACHE_SIZE - 1)];
}

const struct insn *decode_at(pid_t pid, uint64_t ip)
{
	static int turn;
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	struct insn *in = slot_for(ip);
	struct parse p = {&zi, op, in};
	uint8_t bytes[15];
	size_t n;

	if (in->cacheable && in->ip == ip)
		return in;
	if (tracee_code_is_mutable(pid, ip)) {
		turn ^= 1;
		p.in = in = &uncached[turn];
	}
	memset(in, 0, sizeof(*in));
	in->ip = ip;
	n = tracee_read(pid, ip, bytes, sizeof(bytes));
	if (!n || ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, bytes, n, &zi, op))) {
		in->flags = INSN_BAD;
		return in;
	}
	in->len = zi.length;
	parse(&p);
	in->cacheable = in != &uncached[0] && in != &uncached[1];
	return in;
}

const char *decode_text(pid_t pid, uint64_t ip)
{
	static char text[128];
	ZydisFormatter fmt;
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	uint8_t bytes[15];
	size_t n = tracee_read(pid, ip, bytes, sizeof(bytes));

	if (!n || ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, bytes, n, &zi, op)))
		return "?";
	ZydisFormatterInit(&fmt, ZYDIS_FORMATTER_STYLE_INTEL);
	ZydisFormatterFormatInstruction(&fmt, &zi, op, zi.operand_count_visible, text, sizeof(text), ip,
					NULL);
	return text;
}
