/* SPDX-License-Identifier: MIT
 *
 * semtest_gen.c - encodings of every opcode, grouped into forms
 *
 * All opcodes of the legacy, VEX and EVEX maps are tried with all prefixes that select another
 * instruction, all ModRM.reg values, and a register and a memory operand. What Zydis decodes and
 * the lifter accepts belongs to a form: mnemonic, operand kinds and widths, masking, lock, rep. An
 * instance of a form has random registers, addressing mode and immediate.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "semtest.h"

uint64_t rnd_seed = 0x9e3779b97f4a7c15;

uint64_t rnd(void) /* xorshift64* */
{
	rnd_seed ^= rnd_seed >> 12;
	rnd_seed ^= rnd_seed << 25;
	rnd_seed ^= rnd_seed >> 27;
	return rnd_seed * 0x2545f4914f6cdd1d;
}

uint64_t rnd_value(void)
{
	static const uint64_t v[] = {
		0,
		1,
		2,
		3,
		7,
		8,
		15,
		16,
		31,
		32,
		33,
		63,
		64,
		65,
		0x7f,
		0x80,
		0xff,
		0x100,
		0x7fff,
		0x8000,
		0xffff,
		0x10000,
		0x7fffffff,
		0x80000000,
		0xffffffff,
		0x100000000,
		0x7fffffffffffffff,
		0x8000000000000000,
		-1ull,
		-2ull,
		-128ull,
		0xffffffff80000000,
	};
	uint64_t x = rnd();

	switch (x & 7) {
	case 0:
	case 1:
	case 2:
		return v[(x >> 8) % (sizeof(v) / sizeof(v[0]))];
	case 3:
		return x >> (x >> 3 & 63);
	case 4:
		return 1ull << (x >> 8 & 63);
	default:
		return rnd();
	}
}

enum { LEGACY, VEX, EVEX };
struct tmpl {
	uint8_t enc, map, pfx, w, l, opcode, reg, mem, lock, mask, bcast;
};
struct form {
	char name[96];
	struct tmpl t[8];
	unsigned nt, seen;
	int next;
};
enum { BUCKETS = 1 << 14 };
static struct form *form;
static int nform, cform, bucket[BUCKETS];
static ZydisDecoder dec;

static unsigned put_modrm(uint8_t *p, const struct tmpl *t)
{
	unsigned n = 0, mod = t->mem ? rnd() % 3 : 3, rm = rnd() & 7;

	p[n++] = mod << 6 | t->reg << 3 | rm;
	if (mod != 3 && rm == 4)
		p[n++] = rnd();
	for (int i = 0; i < 4; i++)
		p[n++] = rnd(); /* displacement, immediate */
	for (int i = 0; i < 4; i++)
		p[n++] = rnd();
	return n;
}

static unsigned put_legacy(uint8_t *p, const struct tmpl *t)
{
	static const uint8_t pfx[] = {0, 0x66, 0xf3, 0xf2};
	unsigned n = 0, x = rnd() & 31;

	if (t->lock)
		p[n++] = 0xf0;
	if (t->mem && x == 0)
		p[n++] = 0x67;
	else if (t->mem && x == 1)
		p[n++] = 0x64;
	if (t->pfx)
		p[n++] = pfx[t->pfx];
	if (t->w || rnd() & 1)
		p[n++] = 0x40 | t->w << 3 | (rnd() & 7);
	if (t->map)
		p[n++] = 0x0f;
	if (t->map > 1)
		p[n++] = t->map == 2 ? 0x38 : 0x3a;
	p[n++] = t->opcode;
	return n;
}

static unsigned put_vex(uint8_t *p, const struct tmpl *t, bool vvvv)
{
	unsigned v = vvvv ? rnd() & 15 : 15;

	p[0] = 0xc4;
	p[1] = (rnd() & 0xe0) | t->map;
	p[2] = t->w << 7 | v << 3 | (t->l & 1) << 2 | t->pfx;
	p[3] = t->opcode;
	return 4;
}

static unsigned put_evex(uint8_t *p, const struct tmpl *t, bool vvvv)
{
	unsigned v = vvvv ? rnd() & 15 : 15, aaa = t->mask ? 1 + rnd() % 7 : 0;
	unsigned z = t->mask && rnd() & 1;

	p[0] = 0x62;
	p[1] = (rnd() & 0xf0) | t->map;
	p[2] = t->w << 7 | v << 3 | 4 | t->pfx;
	p[3] = z << 7 | t->l << 5 | t->bcast << 4 | (vvvv ? rnd() & 8 : 8) | aaa;
	p[4] = t->opcode;
	return 5;
}

/* fill in what must hit the arena or the branch pad */
static void patch(struct insn *i)
{
	const ZydisDecodedInstruction *in = &i->in;
	uint8_t *b = i->bytes;

	for (int k = 0; k < in->operand_count_visible; k++) {
		const ZydisDecodedOperand *o = &i->op[k];
		uint64_t d = ARENA_ADDR + 1024 + rnd() % 1024;

		if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && o->imm.is_relative) {
			int32_t rel = PAD_OFF - in->length;

			memcpy(b + in->raw.imm[0].offset, &rel, in->raw.imm[0].size / 8);
		}
		if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || !in->raw.disp.size)
			continue;
		if (o->mem.base == ZYDIS_REGISTER_RIP || o->mem.base == ZYDIS_REGISTER_EIP)
			d -= CODE_ADDR + in->length;
		else if (o->mem.base != ZYDIS_REGISTER_NONE)
			continue;
		if (in->raw.disp.size >= 32)
			memcpy(b + in->raw.disp.offset, &d, in->raw.disp.size / 8);
	}
}

static bool decode(struct insn *i)
{
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&dec, i->bytes, sizeof(i->bytes), &i->in, i->op));
}

static bool build(struct insn *i, const struct tmpl *t)
{
	uint8_t b[48];
	unsigned n;
	bool vvvv = rnd() & 1;

	memset(b, 0, sizeof(b));
	n = t->enc == LEGACY ? put_legacy(b, t) : t->enc == VEX ? put_vex(b, t, vvvv) : put_evex(b, t, vvvv);
	put_modrm(b + n, t);
	memcpy(i->bytes, b, sizeof(i->bytes));
	if (!decode(i))
		return false;
	patch(i);
	return decode(i);
}

/* What would end or disturb the test itself, or is not a function of the state. */
static bool skip(const struct insn *i)
{
	switch (i->in.mnemonic) {
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_XRSTOR:
	case ZYDIS_MNEMONIC_XRSTOR64:
	case ZYDIS_MNEMONIC_XSAVE:
	case ZYDIS_MNEMONIC_XSAVE64:
	case ZYDIS_MNEMONIC_XSAVEC:
	case ZYDIS_MNEMONIC_XSAVEC64:
	case ZYDIS_MNEMONIC_XSAVEOPT:
	case ZYDIS_MNEMONIC_XSAVEOPT64:
	case ZYDIS_MNEMONIC_WRPKRU:
	case ZYDIS_MNEMONIC_MWAIT:
	case ZYDIS_MNEMONIC_MWAITX:
	case ZYDIS_MNEMONIC_UMWAIT:
	case ZYDIS_MNEMONIC_TPAUSE:
	case ZYDIS_MNEMONIC_XSETBV:
	case ZYDIS_MNEMONIC_CPUID:
	case ZYDIS_MNEMONIC_VMCALL:
	case ZYDIS_MNEMONIC_VMMCALL:
	case ZYDIS_MNEMONIC_ENCLU:
	case ZYDIS_MNEMONIC_STUI:
	case ZYDIS_MNEMONIC_CLUI:
	case ZYDIS_MNEMONIC_SENDUIPI:
	case ZYDIS_MNEMONIC_XBEGIN:
		return true;
	default:
		return false;
	}
}

static bool call_rsp(const struct insn *i)
{
	return i->in.mnemonic == ZYDIS_MNEMONIC_CALL && i->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       i->op[0].reg.value == ZYDIS_REGISTER_RSP; /* would push onto the code */
}

static const char *operand_name(const ZydisDecodedOperand *o)
{
	switch (o->type) {
	case ZYDIS_OPERAND_TYPE_MEMORY:
		return o->mem.type == ZYDIS_MEMOP_TYPE_VSIB ? "vm" : "m";
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		return "i";
	case ZYDIS_OPERAND_TYPE_REGISTER:
		break;
	default:
		return "?";
	}
	if (o->reg.value >= ZYDIS_REGISTER_AH && o->reg.value <= ZYDIS_REGISTER_BH)
		return "h";
	switch (ZydisRegisterGetClass(o->reg.value)) {
	case ZYDIS_REGCLASS_MMX:
		return "mm";
	case ZYDIS_REGCLASS_MASK:
		return "k";
	case ZYDIS_REGCLASS_XMM:
	case ZYDIS_REGCLASS_YMM:
	case ZYDIS_REGCLASS_ZMM:
		return "v";
	case ZYDIS_REGCLASS_SEGMENT:
		return "s";
	case ZYDIS_REGCLASS_X87:
		return "st";
	default:
		return "r";
	}
}

static void make_name(const struct insn *i, char *s, size_t size)
{
	static const char *const enc[] = {"", "", "xop ", "vex ", "evex ", "mvex "};
	uint64_t a = i->in.attributes;
	int n = snprintf(s, size, "%s%s%s%s", enc[i->in.encoding], a & ZYDIS_ATTRIB_HAS_LOCK ? "lock " : "",
			 a & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE) ? "rep "
												     : "",
			 ZydisMnemonicGetString(i->in.mnemonic));

	for (int k = 0; k < i->in.operand_count_visible && n < (int)size; k++) {
		const ZydisDecodedOperand *o = &i->op[k];

		if (o->encoding == ZYDIS_OPERAND_ENCODING_MASK)
			n += snprintf(s + n, size - n, " {%s}", o->reg.value == ZYDIS_REGISTER_K0 ? "" : "k");
		else
			n += snprintf(s + n, size - n, " %s%u", operand_name(o), o->size);
	}
}

static bool lift(struct insn *i)
{
	if (skip(i) || call_rsp(i) || (i->in.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED))
		return false;
	i->n = sem_lift(&i->in, i->op, CODE_ADDR, NULL, i->ir, SEM_LIFT_MAX, NULL);
	return i->n >= 0;
}

static void note(const struct insn *i, const struct tmpl *t)
{
	char name[96];
	unsigned h = 5381;
	struct form *f;
	int k;

	make_name(i, name, sizeof(name));
	for (const char *c = name; *c; c++)
		h = h * 33 + (uint8_t)*c;
	h %= BUCKETS;
	for (k = bucket[h]; k; k = form[k - 1].next)
		if (!strcmp(form[k - 1].name, name))
			break;
	if (!k) {
		if (nform == cform)
			form = realloc(form, (cform = cform * 2 + 64) * sizeof(*form));
		if (!form)
			abort();
		f = &form[nform++];
		memset(f, 0, sizeof(*f));
		strcpy(f->name, name);
		f->next = bucket[h];
		bucket[h] = k = nform;
	}
	f = &form[k - 1];
	if (f->nt < 8)
		f->t[f->nt++] = *t;
	else if (rnd() % ++f->seen < 8)
		f->t[rnd() & 7] = *t;
}

static void attempt(struct tmpl *t)
{
	static struct insn i;

	for (int k = 0; k < 3; k++)
		if (build(&i, t) && lift(&i))
			note(&i, t);
}

static void enumerate(struct tmpl *t)
{
	for (int op = 0; op < 256; op++)
		for (int x = 0; x < 4 * 2 * 2 * 8; x++) {
			t->opcode = op;
			t->pfx = x & 3;
			t->w = x >> 2 & 1;
			t->mem = x >> 3 & 1;
			t->reg = x >> 4;
			attempt(t);
		}
}

int gen_forms(void)
{
	struct tmpl t = {.enc = LEGACY};

	ZydisDecoderInit(&dec, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (t.map = 0; t.map < 4; t.map++)
		for (t.lock = 0; t.lock < 2; t.lock++)
			enumerate(&t);
	t.lock = 0;
	t.enc = VEX;
	for (t.map = 1; t.map < 4; t.map++)
		for (t.l = 0; t.l < 2; t.l++)
			enumerate(&t);
	t.enc = EVEX;
	for (t.map = 1; t.map < 4 && cpu_avx512; t.map++)
		for (t.l = 0; t.l < 3; t.l++)
			for (t.mask = 0; t.mask < 2; t.mask++)
				for (t.bcast = 0; t.bcast < 2; t.bcast++)
					enumerate(&t);
	return nform;
}

const char *gen_name(int f)
{
	return form[f].name;
}

bool gen_instance(int f, struct insn *i)
{
	char name[96];

	for (int k = 0; k < 200; k++) {
		if (!build(i, &form[f].t[rnd() % form[f].nt]) || !lift(i))
			continue;
		make_name(i, name, sizeof(name));
		if (!strcmp(name, form[f].name))
			return true;
	}
	return false;
}
