/* SPDX-License-Identifier: MIT
 *
 * semtest_state.c - a random state in which an instruction's operands are in the arena
 *
 * Registers and memory are random with many boundary values; then the registers that address
 * memory are set so that the operand is where it should be, and the few values that decide
 * whether something interesting happens (compare-and-exchange, division, branches) are helped.
 */
#include <string.h>
#include "semtest.h"

static int gpr(ZydisRegister r)
{
	ZydisRegister big = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);

	return big >= ZYDIS_REGISTER_RAX && big <= ZYDIS_REGISTER_R15 ? (int)big - (int)ZYDIS_REGISTER_RAX
								      : -1;
}

static uint64_t somewhere(void)
{
	uint64_t off = 1024 + rnd() % 1024;

	return ARENA_ADDR + (rnd() & 1 ? off & ~63ull : off);
}

static uint64_t seg_base(const ZydisDecodedOperand *o)
{
	return o->mem.segment == ZYDIS_REGISTER_FS ? M.fsbase : 0;
}

static void small_indices(unsigned v, bool wide)
{
	for (int l = 0; l < 8; l++) {
		int32_t a = (int)(rnd() % 129) - 64, b = (int)(rnd() % 129) - 64;

		ST->vin[v][l] = wide ? (uint64_t)(int64_t)a : (uint32_t)a | (uint64_t)(uint32_t)b << 32;
	}
}

static bool wide_index(ZydisMnemonic m)
{
	const char *s = ZydisMnemonicGetString(m);

	/* v[p](gather|scatter)[dq][dq] or [dq]p[sd]: the letter after the verb */
	s = strstr(s, "gather") ? strstr(s, "gather") + 6 : strstr(s, "scatter") + 7;
	return *s == 'q';
}

/* Make the operand's address `target`. */
static void aim(const struct insn *i, const ZydisDecodedOperand *o, uint64_t target)
{
	int b = gpr(o->mem.base), x = gpr(o->mem.index);
	uint64_t scale = o->mem.scale, want = target - seg_base(o);
	bool a32 = i->in.address_width == 32;

	if (o->mem.disp.has_displacement)
		want -= (uint64_t)o->mem.disp.value;
	if (o->mem.type == ZYDIS_MEMOP_TYPE_VSIB) {
		small_indices(ZydisRegisterGetId(o->mem.index), wide_index(i->in.mnemonic));
		x = -1;
	}
	if (b < 0) {
		if (x >= 0) /* displacement is in the arena already */
			ST->in[x] = (rnd() % 65 - 32) & (a32 ? 0xffffffff : ~0ull);
		return;
	}
	if (i->in.mnemonic == ZYDIS_MNEMONIC_XLAT)
		x = -1, want -= ST->in[0] & 0xff;
	if (x == b) {
		ST->in[b] = want / (1 + scale);
	} else {
		if (x >= 0) {
			ST->in[x] = rnd() % 65 - 32;
			want -= ST->in[x] * scale;
		}
		ST->in[b] = want;
	}
	if (a32) {
		ST->in[b] = (uint32_t)ST->in[b] | rnd() << 32;
		if (x >= 0 && x != b)
			ST->in[x] = (uint32_t)ST->in[x] | rnd() << 32;
	}
}

static void fill(void)
{
	uint64_t *a = (uint64_t *)ARENA;

	for (int k = 0; k < 16; k++)
		ST->in[k] = rnd_value();
	ST->in[4] = ARENA_ADDR + 2048 + rnd() % 64 * 8;
	for (int k = 0; k < 32; k++)
		a[128 + rnd() % 256] = rnd_value();
	for (int k = 0; k < 8; k++)
		ST->kin[k] = rnd() & 1 ? rnd() : rnd_value();
	for (int k = 0; k < 32; k++)
		ST->vin[k][rnd() & 7] = rnd_value();
	ST->flags_in = 0x202 | (rnd() & (SEM_CF | SEM_PF | SEM_AF | SEM_ZF | SEM_SF | SEM_OF));
	if (!(rnd() & 3))
		ST->flags_in |= 0x400;
}

static void poke(uint64_t addr, uint64_t v, unsigned w)
{
	if (addr >= ARENA_ADDR && addr + w <= ARENA_ADDR + ARENA_SIZE)
		memcpy((void *)(uintptr_t)addr, &v, w);
}

static void help_bits(const struct insn *i)
{
	int r;

	switch (i->in.mnemonic) {
	case ZYDIS_MNEMONIC_BT:
	case ZYDIS_MNEMONIC_BTS:
	case ZYDIS_MNEMONIC_BTR:
	case ZYDIS_MNEMONIC_BTC:
		break;
	default:
		return;
	}
	if (i->op[0].type != ZYDIS_OPERAND_TYPE_MEMORY || i->op[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return;
	r = gpr(i->op[1].reg.value);
	if (r != gpr(i->op[0].mem.base) && r != gpr(i->op[0].mem.index))
		ST->in[r] = ((rnd() % 4001 - 2000) & sem_mask(i->op[1].size / 8)) |
			    (i->op[1].size < 64 ? rnd() << i->op[1].size : 0);
}

static void help_branch(const struct insn *i, uint64_t target)
{
	uint64_t pad = CODE_ADDR + PAD_OFF;

	if (i->in.mnemonic == ZYDIS_MNEMONIC_RET)
		poke(ST->in[4], pad, 8);
	if (i->in.mnemonic != ZYDIS_MNEMONIC_CALL && i->in.mnemonic != ZYDIS_MNEMONIC_JMP)
		return;
	if (i->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER)
		ST->in[gpr(i->op[0].reg.value)] = pad;
	else if (i->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY)
		poke(target, pad, 8);
}

static bool addresses(const ZydisDecodedOperand *o, int reg)
{
	return gpr(o->mem.base) == reg || gpr(o->mem.index) == reg;
}

static void help(const struct insn *i, uint64_t target)
{
	unsigned w = i->op[0].size / 8;
	uint64_t rax = ST->in[0];

	switch (i->in.mnemonic) {
	case ZYDIS_MNEMONIC_CMPXCHG:
		if (rnd() & 1 && i->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY)
			poke(target, rax, w);
		else if (rnd() & 1 && gpr(i->op[0].reg.value) > 0)
			ST->in[gpr(i->op[0].reg.value)] ^=
				(ST->in[gpr(i->op[0].reg.value)] ^ rax) & sem_mask(w);
		break;
	case ZYDIS_MNEMONIC_CMPXCHG8B:
	case ZYDIS_MNEMONIC_CMPXCHG16B:
		poke(target, rax, w / 2);
		if (rnd() & 1)
			poke(target + w / 2, ST->in[2], w / 2);
		break;
	case ZYDIS_MNEMONIC_DIV:
	case ZYDIS_MNEMONIC_IDIV:
		if (i->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    (addresses(&i->op[0], 0) || addresses(&i->op[0], 2)))
			break;
		ST->in[2] = rnd() & 1 ? 0 : rnd() & 1 ? ST->in[2] >> 48 : (uint64_t)((int64_t)rax >> 63);
		if (w == 1)
			ST->in[0] = (rax & 0x7f) | (rnd() & 7) << 8 | rnd() << 16;
		break;
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFQ:
		poke(ST->in[4], (rnd() & 0xcd5) | 0x202, 8); /* no TF, AC, NT */
		break;
	default:
		break;
	}
}

void gen_state(const struct insn *i, uint64_t target)
{
	bool rep = i->in.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
	uint64_t at = target ? target : somewhere();

	fill();
	if (i->in.mnemonic == ZYDIS_MNEMONIC_LEAVE || i->in.mnemonic == ZYDIS_MNEMONIC_ENTER)
		ST->in[5] = ARENA_ADDR + 2048 + rnd() % 64 * 8;
	if (rep)
		ST->in[1] = rnd() % 9;
	help_bits(i);
	for (int k = i->in.operand_count - 1; k >= 0; k--) {
		const ZydisDecodedOperand *o = &i->op[k];
		bool stack = o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && gpr(o->mem.base) == 4;

		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->mem.type != ZYDIS_MEMOP_TYPE_AGEN && !stack &&
		    i->in.mnemonic != ZYDIS_MNEMONIC_LEAVE)
			aim(i, o, at);
	}
	help(i, at);
	help_branch(i, at);
}
