/* SPDX-License-Identifier: MIT
 *
 * semtest_model.c - evaluate a lifted instruction; every value has a mask of unknown bits
 *
 * An op with an unknown operand gives an unknown result, except where it clearly keeps bits
 * apart. So a known bit was computed from known bits only, and must agree with the processor.
 */
#include <string.h>
#include "semtest.h"
#include "trace.h"

struct model M;

static bool inside(uint64_t addr, uint64_t size)
{
	return addr >= ARENA_ADDR && addr + size <= ARENA_ADDR + ARENA_SIZE;
}

static uint64_t get(const uint8_t *bytes, uint64_t addr, unsigned w)
{
	uint64_t v = 0;

	memcpy(&v, bytes + (addr - ARENA_ADDR), w);
	return v;
}

static uint64_t m_load(void *ctx, uint64_t addr, unsigned w)
{
	(void)ctx;
	if (!inside(addr, w)) {
		M.bad = true;
		return 0;
	}
	return get(M.mem, addr, w);
}

static void m_store(void *ctx, uint64_t addr, unsigned w, uint64_t v)
{
	(void)ctx;
	if (inside(addr, w))
		memcpy(M.mem + (addr - ARENA_ADDR), &v, w);
	else
		M.bad = true;
}

static void add_rec(uint64_t addr, uint32_t size, uint32_t kind)
{
	if (M.nrec == sizeof(M.rec) / sizeof(M.rec[0])) {
		M.bad = true;
		return;
	}
	M.rec[M.nrec].addr = addr;
	M.rec[M.nrec].size = size;
	M.rec[M.nrec++].kind = kind;
}

static uint64_t vec_elem(unsigned v, unsigned i, unsigned bytes)
{
	uint64_t x = 0;

	memcpy(&x, (const uint8_t *)ST->vin[v] + i * bytes, bytes);
	return x;
}

static uint64_t active(const struct sem_vec *v)
{
	uint64_t all = v->n < 64 ? (1ull << v->n) - 1 : ~0ull, m = 0;

	if (v->mask == SEM_MASK_K)
		return ST->kin[v->count] & all;
	if (v->mask == SEM_MASK_ALL)
		return all;
	for (unsigned i = 0; i < v->n; i++)
		m |= (vec_elem(v->count, i, v->mask_bytes) >> (8 * v->mask_bytes - 1)) << i;
	return m;
}

static void rec_vec(const struct sem_op *o, const struct sem_vec *v, const uint64_t *r)
{
	unsigned size = SEM_REC_SIZE(o->dst), kind = SEM_REC_KIND(o->dst), pos = 0;
	uint64_t base = sem_rec_addr(o, r), m = active(v);

	if (v->flags & SEM_VEC_BCAST) {
		if (m)
			add_rec(base, size, kind);
		return;
	}
	for (unsigned i = 0; i < v->n; i++) {
		uint64_t a = base + (uint64_t)i * size;

		if (!(m >> i & 1))
			continue;
		if (v->idx_bytes)
			a = base + ((uint64_t)sem_sx(vec_elem(v->df, i, v->idx_bytes), v->idx_bytes)
				    << v->idx_scale);
		else if (v->flags & SEM_VEC_COMPRESS)
			a = base + (uint64_t)pos++ * size;
		add_rec(a, size, kind);
	}
}

static void rec_rep(const struct sem_op *o, const struct sem_vec *v, const uint64_t *r)
{
	uint64_t count = M.u[v->count] ? 0 : r[v->count]; /* unknown: cmps, scas, which only read */
	int64_t step = r[v->df] ? -(int64_t)o->w : o->w;

	for (uint64_t i = 0; i < count && i < 64; i++) {
		if (o->a != SEM_NONE)
			add_rec(r[o->a] + i * step, o->w, PTRACE_R);
		if (o->b != SEM_NONE)
			add_rec(r[o->b] + i * step, o->w,
				v->kind == SEM_REP_MOVS || v->kind == SEM_REP_STOS ? PTRACE_W : PTRACE_R);
	}
}

/* what group records write is unknown */
static void forget(int from)
{
	for (int i = from; i < M.nrec; i++)
		if (M.rec[i].kind == PTRACE_W && inside(M.rec[i].addr, M.rec[i].size))
			memset(M.um + (M.rec[i].addr - ARENA_ADDR), 0xff, M.rec[i].size);
}

static void m_rec(void *ctx, const struct sem_op *o, const uint64_t *r)
{
	struct sem_vec v;
	int from = M.nrec;

	(void)ctx;
	if (o->op == SEM_REC) {
		add_rec(sem_rec_addr(o, r), SEM_REC_SIZE(o->dst), SEM_REC_KIND(o->dst));
		return;
	}
	memcpy(&v, o + 1, sizeof(v));
	if (o->op == SEM_RECVEC)
		rec_vec(o, &v, r);
	else if (o->op == SEM_RECREP)
		rec_rep(o, &v, r);
	forget(from);
}

static uint64_t unknown(const struct sem_op *o)
{
	uint64_t a = o->a == SEM_NONE ? 0 : M.u[o->a], b = o->b == SEM_NONE ? 0 : M.u[o->b], c;
	uint16_t t = sem_third(o);

	switch (o->op) {
	case SEM_UNK:
		return M.given && o->dst >= SEM_T0 && o->dst <= SEM_TLAST ? 0 : ~0ull;
	case SEM_IMM:
	case SEM_MODADDR:
		return 0;
	case SEM_MOV:
		return a & sem_mask(o->w);
	case SEM_INS:
		return (a & ~sem_mask(o->w)) | (b & sem_mask(o->w));
	case SEM_INSH:
		return (a & ~0xff00ull) | (b & 0xff) << 8;
	case SEM_SEL:
		c = M.u[t];
		return c ? ~0ull : M.r[t] ? a : b;
	case SEM_OR:
	case SEM_XOR:
		return (a | b) & sem_mask(o->w);
	case SEM_AND:
		if (o->b == SEM_NONE)
			return a & (uint64_t)o->imm & sem_mask(o->w);
		break;
	default:
		break;
	}
	return a || b || (t != SEM_NONE && M.u[t]) ? ~0ull : 0;
}

static void m_step(void *ctx, const struct sem_op *o)
{
	(void)ctx;
	if (sem_is_value(o->op) || o->op == SEM_UNK) {
		M.u[o->dst] = unknown(o);
	} else if (o->op == SEM_LOAD) {
		uint64_t addr = M.r[o->a] + (uint64_t)o->imm;

		M.u[o->dst] = M.u[o->a] || !inside(addr, o->w) || get(M.um, addr, o->w) ? ~0ull : 0;
	} else if (o->op == SEM_STORE) {
		uint64_t addr = M.r[o->a] + (uint64_t)o->imm;

		if (inside(addr, o->w))
			memset(M.um + (addr - ARENA_ADDR), M.u[o->b] & sem_mask(o->w) ? 0xff : 0, o->w);
	}
}

static uint64_t m_unk(void *ctx, const struct sem_op *o)
{
	(void)ctx;
	(void)o;
	return M.given ? *M.given : 0;
}

void model_run(const struct insn *i)
{
	static const struct sem_env env = {
		.load = m_load, .store = m_store, .rec = m_rec, .unk = m_unk, .step = m_step};

	memset(M.r, 0, sizeof(M.r));
	memset(M.u, 0, sizeof(M.u));
	memset(M.um, 0, sizeof(M.um));
	memcpy(M.mem, ARENA, ARENA_SIZE);
	memcpy(M.r, ST->in, sizeof(ST->in));
	M.r[SEM_FC] = ST->flags_in & SEM_CF;
	M.r[SEM_FR] = ST->flags_in & (SEM_PF | SEM_AF | SEM_ZF | SEM_SF | SEM_OF);
	M.r[SEM_DF] = ST->flags_in >> 10 & 1;
	M.r[SEM_FSBASE] = M.fsbase;
	memcpy(&M.r[SEM_V0], ST->vin, sizeof(ST->vin));
	memcpy(&M.r[SEM_K0], ST->kin, sizeof(ST->kin));
	M.nrec = 0;
	M.bad = false;
	sem_run(i->ir, i->n, M.r, &env);
}
