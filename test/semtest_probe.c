/* SPDX-License-Identifier: MIT
 *
 * semtest_probe.c - questions that take further runs of the instruction
 *
 *   use_def_ok   do registers that are said not to be read have no influence?
 *   guard_ok     are the first and last byte of the records the first and last accessed?
 */
#include <signal.h>
#include <string.h>
#include "semtest.h"
#include "trace.h"

/* Results that depend on more than the state. */
bool is_pure(const struct insn *i)
{
	switch (i->in.mnemonic) {
	case ZYDIS_MNEMONIC_RDTSC:
	case ZYDIS_MNEMONIC_RDTSCP:
	case ZYDIS_MNEMONIC_RDRAND:
	case ZYDIS_MNEMONIC_RDSEED:
	case ZYDIS_MNEMONIC_RDPID:
	case ZYDIS_MNEMONIC_RDPRU:
	case ZYDIS_MNEMONIC_RDPKRU:
	case ZYDIS_MNEMONIC_XGETBV:
	case ZYDIS_MNEMONIC_RDPMC:
		return false;
	default:
		return true;
	}
}

/* Change all that is not read: the written results must stay, the rest pass through. Flags whose
 * value is undefined are left out. */
bool use_def_ok(const struct insn *i)
{
	uint32_t must, may, read = sem_gpr_sets(&i->in, i->op, &must, &may), undef = undefined_flags(i);
	struct cpu_state old = *ST;
	int sig;

	memcpy(ARENA, before, ARENA_SIZE);
	for (int k = 0; k < 16; k++)
		if (!(read >> k & 1))
			ST->in[k] = rnd();
	/* with rsp wild, whatever the system does to a running thread can end in SIGSEGV */
	if (!(read >> SEM_RSP & 1))
		ST->in[SEM_RSP] = ARENA_ADDR + 1024 + rnd() % 2048;
	if (!(read & SEM_F_FLAGS))
		ST->flags_in ^= rnd() & STATUS;
	sig = cpu_run();
	if (sig)
		return wrong("faults after a change of registers not in read, signal", read, sig);
	for (int k = 0; k < 16; k++) {
		if (!(may >> k & 1) && ST->out[k] != ST->in[k])
			return wrong("use-def: not passed through: register", k, k);
		if ((may >> k & 1) && ST->out[k] != old.out[k])
			return wrong(must >> k & 1 ? "read set too small for register"
						   : "must set or read set wrong for register",
				     k, k);
	}
	if ((must & SEM_F_FLAGS) && (ST->flags_out ^ old.flags_out) & STATUS & ~undef)
		return wrong("read set too small for flags", ST->flags_out, old.flags_out);
	memcpy(ST, &old, sizeof(old));
	return true;
}

static bool can_fault(const struct insn *i)
{
	switch (i->in.mnemonic) {
	case ZYDIS_MNEMONIC_LDMXCSR:
	case ZYDIS_MNEMONIC_VLDMXCSR: /* fault on what they load */
	case ZYDIS_MNEMONIC_FXRSTOR:
	case ZYDIS_MNEMONIC_FXRSTOR64:
	case ZYDIS_MNEMONIC_CLFLUSH:
	case ZYDIS_MNEMONIC_CLFLUSHOPT:
	case ZYDIS_MNEMONIC_CLWB:
		return false;
	default:
		break;
	}
	for (int k = 0; k < i->n; k++)
		if (i->ir[k].op == SEM_REC && SEM_REC_KIND(i->ir[k].dst) == PTRACE_P)
			return false;
	return true;
}

/* The address operand that can be aimed: explicit, with a base register, the only one. */
static const ZydisDecodedOperand *aimed(const struct insn *i)
{
	const ZydisDecodedOperand *m = NULL;

	for (int k = 0; k < i->in.operand_count; k++) {
		const ZydisDecodedOperand *o = &i->op[k];

		if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.type == ZYDIS_MEMOP_TYPE_AGEN)
			continue;
		if (m || o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
			return NULL;
		m = o;
	}
	if (!m || m->mem.base == ZYDIS_REGISTER_NONE || m->mem.base == ZYDIS_REGISTER_RIP ||
	    m->mem.base == ZYDIS_REGISTER_EIP || m->mem.base == m->mem.index)
		return NULL;
	return m;
}

/* Run with the operand moved by `delta`; all else equal. */
static int moved(const struct insn *i, uint64_t seed, uint64_t at)
{
	rnd_seed = seed;
	gen_state(i, at);
	return cpu_run();
}

/* Masked blocks: trace.h has one record of the block where processors look at fewer bytes; and
 * masked vextract checks all bytes but writes those of active elements. */
static bool coarse(const struct insn *i)
{
	bool masked = i->in.avx.mask.reg > ZYDIS_REGISTER_K0 && i->in.avx.mask.reg <= ZYDIS_REGISTER_K7;

	return masked &&
	       (i->in.avx.broadcast.is_static || strstr(ZydisMnemonicGetString(i->in.mnemonic), "vextract"));
}

bool guard_ok(const struct insn *i)
{
	uint64_t seed = rnd() | 1, base = ARENA_ADDR + 1024, end = ARENA_ADDR + ARENA_SIZE;
	uint64_t lo = ~0ull, hi = 0, up, down;
	bool any;

	if (!aimed(i) || !can_fault(i) || coarse(i) || i->in.mnemonic == ZYDIS_MNEMONIC_BT ||
	    i->in.mnemonic == ZYDIS_MNEMONIC_BTS || i->in.mnemonic == ZYDIS_MNEMONIC_BTR ||
	    i->in.mnemonic == ZYDIS_MNEMONIC_BTC)
		return true;
	if (moved(i, seed, base))
		return true;
	model_run(i);
	for (int k = 0; k < M.nrec; k++) {
		if (M.rec[k].addr < lo)
			lo = M.rec[k].addr;
		if (M.rec[k].addr + M.rec[k].size > hi)
			hi = M.rec[k].addr + M.rec[k].size;
	}
	if (!M.nrec)
		return !moved(i, seed, end + 1024) || wrong("accesses memory but has no record", 0, 0);
	any = !moved(i, seed, base + 1); /* does not ask for alignment */
	up = end - hi;
	down = lo - ARENA_ADDR;
	if ((any || up % 64 == 0) && moved(i, seed, base + up) == SIGSEGV)
		return wrong("accesses beyond the end of its records", hi - base, 0);
	if (any && !moved(i, seed, base + up + 1))
		return wrong("does not access the end of its records", hi - base, 0);
	if ((any || down % 64 == 0) && moved(i, seed, base - down) == SIGSEGV)
		return wrong("accesses before the start of its records", lo - base, 0);
	if (any && !moved(i, seed, base - down - 1))
		return wrong("does not access the start of its records", lo - base, 0);
	if (!any && !moved(i, seed, base + ((up + 63) & ~63ull)))
		return up % 64 == 0 || wrong("does not access the last bytes of its records", hi - base, 0);
	return true;
}
