/* SPDX-License-Identifier: MIT
 *
 * semtest_cmp.c - is what the IR says what the processor did?
 */
#include <stdio.h>
#include <string.h>
#include "semtest.h"
#include "trace.h"

int sabotage = -1;
uint8_t before[ARENA_SIZE];
char why[256];

bool wrong(const char *what, uint64_t got, uint64_t want)
{
	snprintf(why, sizeof(why), "%s: IR %#lx, processor %#lx", what, got, want);
	return false;
}

/* Flags the manuals leave undefined for these operands. Zydis gives those of the mnemonic. */
uint32_t undefined_flags(const struct insn *i)
{
	uint32_t u = i->in.cpu_flags ? i->in.cpu_flags->undefined & STATUS : 0;
	unsigned w = i->op[0].size / 8, n = 1, bits = 8 * w;
	int c = 1;

	switch (i->in.mnemonic) {
	case ZYDIS_MNEMONIC_SHLD:
	case ZYDIS_MNEMONIC_SHRD:
		c = 2; /* fall through */
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_SHR:
	case ZYDIS_MNEMONIC_SAR:
	case ZYDIS_MNEMONIC_ROL:
	case ZYDIS_MNEMONIC_ROR:
	case ZYDIS_MNEMONIC_RCL:
	case ZYDIS_MNEMONIC_RCR:
		n = i->op[c].type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? i->op[c].imm.value.u : ST->in[1];
		n &= w == 8 ? 63 : 31;
		break;
	default:
		return u;
	}
	if (!n)
		return 0;
	if (n == 1)
		return u & ~SEM_OF; /* OF is defined for shifts by one */
	u |= SEM_OF;
	if (n >= bits && i->in.mnemonic != ZYDIS_MNEMONIC_SAR)
		u |= i->in.mnemonic == ZYDIS_MNEMONIC_SHL || i->in.mnemonic == ZYDIS_MNEMONIC_SHR ? SEM_CF
												  : 0;
	return u;
}

static bool same_flags(const struct insn *i)
{
	uint64_t ir = (M.r[SEM_FC] & SEM_CF) | M.r[SEM_FR], cpu = ST->flags_out;
	uint64_t skip = undefined_flags(i) | (M.u[SEM_FC] ? SEM_CF : 0) | (M.u[SEM_FR] & ~1ull);

	if (!M.u[SEM_FR] && (M.r[SEM_FR] & ~(uint64_t)(STATUS & ~SEM_CF)))
		return wrong("FR has bits that are no flags", M.r[SEM_FR], 0);
	if (!M.u[SEM_FC] && M.r[SEM_FC] > 1)
		return wrong("FC is not 0 or 1", M.r[SEM_FC], 0);
	if ((ir ^ cpu) & STATUS & ~skip)
		return wrong("flags", ir & STATUS, cpu & STATUS);
	if (M.r[SEM_DF] != (cpu >> 10 & 1))
		return wrong("DF", M.r[SEM_DF], cpu >> 10 & 1);
	return true;
}

static bool same_regs(void)
{
	static char name[32];

	for (int k = 0; k < 16; k++)
		if ((M.r[k] ^ ST->out[k]) & ~M.u[k]) {
			snprintf(name, sizeof(name), "register %d", k);
			return wrong(name, M.r[k], ST->out[k]);
		}
	for (int v = 0; v < cpu_nvec(); v++)
		for (int l = 0; l < cpu_nlanes(); l++)
			if ((M.r[SEM_V(v, l)] ^ ST->vout[v][l]) & ~M.u[SEM_V(v, l)]) {
				snprintf(name, sizeof(name), "vector %d lane %d", v, l);
				return wrong(name, M.r[SEM_V(v, l)], ST->vout[v][l]);
			}
	for (int k = 0; k < 8 && cpu_avx512; k++)
		if ((M.r[SEM_K0 + k] ^ ST->kout[k]) & ~M.u[SEM_K0 + k])
			return wrong("mask register", M.r[SEM_K0 + k], ST->kout[k]);
	return true;
}

static bool recorded(uint64_t addr)
{
	for (int k = 0; k < M.nrec; k++)
		if (M.rec[k].kind == PTRACE_W && addr - M.rec[k].addr < M.rec[k].size)
			return true;
	return false;
}

static bool same_memory(void)
{
	if (!memcmp(before, ARENA, ARENA_SIZE) && !memcmp(before, M.mem, ARENA_SIZE))
		return true;
	for (unsigned k = 0; k < ARENA_SIZE; k++) {
		if ((M.mem[k] ^ ARENA[k]) & ~M.um[k])
			return wrong("memory byte", M.mem[k], ARENA[k]);
		if ((before[k] != ARENA[k] || before[k] != M.mem[k]) && !recorded(ARENA_ADDR + k))
			return wrong("byte changed outside W records, offset", k, k);
	}
	return true;
}

static bool same_control(const struct insn *i)
{
	bool jcc = i->in.meta.category == ZYDIS_CATEGORY_COND_BR;

	if (i->in.meta.branch_type == ZYDIS_BRANCH_TYPE_NONE)
		return true;
	if (jcc)
		return M.r[SEM_T0] == ST->taken || wrong("condition", M.r[SEM_T0], ST->taken);
	if (i->op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && i->in.mnemonic != ZYDIS_MNEMONIC_RET)
		return true;
	return M.r[SEM_T0] == CODE_ADDR + PAD_OFF || wrong("target", M.r[SEM_T0], CODE_ADDR + PAD_OFF);
}

static bool may_write_ok(const struct insn *i)
{
	uint32_t may, must;

	sem_gpr_sets(&i->in, i->op, &must, &may);
	for (int k = 0; k < 16; k++)
		if (ST->in[k] != ST->out[k] && !(may >> k & 1))
			return wrong("written but not in may: register", k, k);
	if ((ST->flags_in ^ ST->flags_out) & STATUS && !(may & SEM_F_FLAGS))
		return wrong("flags written but not in may", 0, 0);
	if (must & ~may)
		return wrong("must is not in may", must, may);
	return true;
}

/* What sem_lift.h promises of the list itself. */
bool shape_ok(const struct insn *i)
{
	bool defined[SEM_NREGS] = {false}, assigned[SEM_NREGS] = {false}, effects = false;

	for (int k = 0; k < i->n; k++) {
		const struct sem_op *o = &i->ir[k];
		bool is_rec = o->op == SEM_REC || sem_has_slot(o->op);
		uint16_t src[3];

		sem_srcs(o, src);
		for (int s = 0; s < 3; s++)
			if (src[s] >= SEM_T0 && src[s] <= SEM_TLAST && !defined[src[s]])
				return wrong("temporary used before it is set, op", k, src[s]);
			else if (src[s] >= SEM_NREGS && src[s] != SEM_NONE)
				return wrong("no such register, op", k, src[s]);
		if (is_rec && effects)
			return wrong("record after an assignment, op", k, 0);
		if ((o->op == SEM_LOAD || o->op == SEM_STORE) && o->a == SEM_NONE)
			return wrong("no address, op", k, 0);
		if (is_rec) {
			k += sem_has_slot(o->op);
			continue;
		}
		if (o->op == SEM_STORE) {
			effects = true;
			continue;
		}
		if (o->dst >= SEM_NREGS)
			return wrong("no destination, op", k, o->dst);
		defined[o->dst] = true;
		if (o->dst >= SEM_T0 && o->dst <= SEM_TLAST)
			continue;
		/* ah and al of one instruction: two steps */
		if (assigned[o->dst] && o->op != SEM_INS && o->op != SEM_INSH)
			return wrong("register assigned twice, op", k, o->dst);
		assigned[o->dst] = effects = true;
	}
	return true;
}

static void falsify(void)
{
	for (int k = 0; k < SEM_T0; k++)
		M.r[k] ^= 1;
}

static bool is_search(const struct insn *i)
{
	for (int k = 0; k < i->n; k++) {
		struct sem_vec v;

		if (i->ir[k].op != SEM_RECREP)
			continue;
		memcpy(&v, &i->ir[k + 1], sizeof(v));
		return v.kind == SEM_REP_CMPS || v.kind == SEM_REP_SCAS;
	}
	return false;
}

/* Repeated cmps and scas: with rcx known afterwards, all else must follow. */
static bool search_ok(const struct insn *i)
{
	uint64_t n = ST->in[1] - ST->out[1];
	int per = 0;

	for (int k = 0; k < i->n; k++)
		if (i->ir[k].op == SEM_RECREP)
			per = (i->ir[k].a != SEM_NONE) + (i->ir[k].b != SEM_NONE);
	if (!per || !is_search(i))
		return true;
	memcpy(ARENA, before, ARENA_SIZE);
	M.given = &ST->out[1];
	model_run(i);
	M.given = NULL;
	if ((uint64_t)M.nrec != n * per)
		return wrong("number of records", M.nrec, n * per);
	return same_regs();
}

int compare(const struct insn *i, int *sig)
{
	memcpy(before, ARENA, ARENA_SIZE);
	model_run(i);
	*sig = cpu_run();
	if (*sig)
		return -1;
	if (sabotage >= 0)
		for (int k = 0; k < i->n; k++)
			if (i->ir[k].op == sabotage)
				falsify();
	if (M.bad)
		return wrong("an access of the IR is outside the arena", 0, 0);
	return same_regs() && same_flags(i) && same_memory() && same_control(i) && may_write_ok(i) &&
	       search_ok(i);
}
