/* SPDX-License-Identifier: MIT
 *
 * plan_sim.c - does the decoder's program recompute what the processor would do?
 *
 * For groups of a real module: execute the full lifted effect of the instructions (the "processor")
 * from random registers and memory along random paths, calls included, writing the bytes the plan
 * says the copy logs; then run the plan's ops (the "decoder") on those bytes alone, and compare the
 * access records. What the analysis may not rely on is made random on purpose: memory that is
 * written in ways the IR does not model, memory below rsp and behind passed pointers at calls,
 * caller-saved registers, flags and lanes after calls.
 *
 * With --cf=pt what the log does not say of branches and targets is handed over in order, as the processor's
 * trace would.
 *
 * plan_sim [-n RUNS] [-f NAME] [--cf=pt] [--break] FILE…     last line: `N passed, N failed`
 */
#include <stdio.h>
#include <stdlib.h>
#include "plan.h"
#include "sem_eval.h"

#define MEMBITS 16
#define MAXREC 40000
#define MAXFRAME 24
#define STACK 0x7ffd00000000ull

enum { EV_RESYNC, EV_RET };
struct event {
	int kind;
	uint32_t group, block;
	uint64_t rsp;
};
struct entry {
	uint32_t ip, x;
	uint64_t a, b, c;
};
struct frame {
	uint32_t group, block, next;
	uint64_t rsp, saved[16], ret;
};

static struct module *m;
static struct plan **plans;
static uint64_t rng = 88172645463325252ull, bias;
static uint64_t mem_addr[1 << MEMBITS], mem_val[1 << MEMBITS];
static uint32_t mem_used[1 << MEMBITS], nmem;
static uint8_t logbuf[1 << 20];
static uint32_t nlog, rlog;
static struct entry rec[2][MAXREC];
static uint32_t nrec[2];
static struct event ev[4096];
static uint32_t nev, rev;
static uint64_t flow[8192]; /* of branches: taken; of jumps and returns: where to */
static uint32_t nflow, rflow;
static uint64_t salt;
static bool broken_on_purpose;
static long returns, lost_register;
static const char *why;

static uint64_t rnd(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	return rng ^= rng << 17;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15ull;
	return (x ^ x >> 29) * 0xbf58476d1ce4e5b9ull;
}

/* words of memory: what was written, else the module's bytes, else a hash; small and round
 * numbers often, so that comparisons go both ways */
static uint64_t fresh(uint64_t a)
{
	uint64_t h = mix(a + salt), v = a - bias;
	const uint8_t *p = v < m->vaddr_hi ? elf_at(m, (uint32_t)v, 8) : NULL;

	if (p)
		memcpy(&v, p, 8);
	else
		v = h & 3 ? h >> 8 : h >> 60;
	return v;
}

static uint64_t *word(uint64_t a, bool make)
{
	uint32_t i = mix(a) >> (64 - MEMBITS);

	while (mem_addr[i] != a && mem_addr[i] != ~0ull)
		i = (i + 1) & ((1 << MEMBITS) - 1);
	if (mem_addr[i] == a)
		return &mem_val[i];
	if (!make || nmem > (1 << MEMBITS) - 1000)
		return NULL;
	mem_addr[i] = a;
	mem_val[i] = fresh(a);
	mem_used[nmem++] = i;
	return &mem_val[i];
}

/* the addresses of this machine are those that six bytes of the log give */
static uint64_t canon(uint64_t a)
{
	return sem_address(a);
}

static uint64_t load(uint64_t at, unsigned w)
{
	uint64_t a = canon(at), lo = a & ~7ull, sh = (a & 7) * 8, *p = word(lo, false),
		 v = (p ? *p : fresh(lo)) >> sh;

	if (sh && (a & 7) + w > 8) {
		p = word(lo + 8, false);
		v |= (p ? *p : fresh(lo + 8)) << (64 - sh);
	}
	return v & sem_mask(w);
}

static void store(uint64_t at, unsigned w, uint64_t v)
{
	uint64_t a = canon(at);

	for (unsigned i = 0; i < w; i++, v >>= 8) {
		uint64_t *p = word((a + i) & ~7ull, true), sh = ((a + i) & 7) * 8;

		if (p)
			*p = (*p & ~(0xffull << sh)) | (v & 0xff) << sh;
	}
}

static void scramble(uint64_t a, uint32_t n)
{
	for (uint32_t i = 0; i < n && i < 4096; i++)
		store(a + i, 1, rnd());
}

static void put(const void *p, uint32_t n)
{
	if (nlog + n <= sizeof(logbuf)) {
		memcpy(logbuf + nlog, p, n);
		nlog += n;
	}
}

static void add(int side, uint32_t ip, uint32_t x, uint64_t a, uint64_t b, uint64_t c)
{
	if (nrec[side] < MAXREC)
		rec[side][nrec[side]++] = (struct entry){ip, x, canon(a), b, c};
}

static uint64_t hash(const uint8_t *p, uint32_t n)
{
	uint64_t h = n;

	for (uint32_t i = 0; i < n; i++)
		h = mix(h ^ p[i]);
	return h;
}

/* ---- the processor ------------------------------------------------------------------- */

static uint64_t R[SEM_NREGS];

static uint64_t value(const struct sem_op *o, const uint64_t *r)
{
	return o->op == SEM_UNK ? rnd() & (rnd() & 1 ? 0xf : ~0ull) : sem_value(o, r, bias);
}

static void full_rec(const struct sem_op *o, uint64_t *r)
{
	const struct sem_vec *v = (const struct sem_vec *)(o + 1);
	uint64_t a = sem_rec_addr(o, r);
	uint8_t lanes[64];

	if (o->op == SEM_REC) {
		add(0, SEM_REC_IP(o->imm), o->dst, a, 0, 0);
		if (SEM_REC_KIND(o->dst) == 1)
			scramble(a, SEM_REC_SIZE(o->dst));
	} else if (o->op == SEM_RECREP) {
		add(0, SEM_REC_IP(o->imm), v->kind, o->a == SEM_NONE ? 0 : r[o->a],
		    o->b == SEM_NONE ? 0 : r[o->b], r[v->count] ^ r[v->df] << 63);
		if (v->kind <= SEM_REP_STOS)
			scramble(r[o->b], r[v->count] < 512 ? (uint32_t)r[v->count] * o->w : 512);
	} else if (o->op == SEM_RECXS) {
		add(0, SEM_REC_IP(o->imm), o->dst, a, (uint32_t)r[v->count], (uint32_t)r[v->df]);
	} else {
		uint64_t h = 0;

		if (v->mask == SEM_MASK_K)
			h ^= hash((uint8_t *)&r[SEM_K0 + v->count], v->mask_bytes);
		if (v->mask == SEM_MASK_VEC) {
			memcpy(lanes, &r[SEM_V(v->count, 0)], 64);
			h ^= hash(lanes, v->n * v->mask_bytes);
		}
		if (v->mask != SEM_MASK_ALL && v->idx_bytes) {
			memcpy(lanes, &r[SEM_V(v->df, 0)], 64);
			h = mix(h) ^ hash(lanes, v->n * v->idx_bytes);
		}
		add(0, SEM_REC_IP(o->imm), o->dst, a, h, 0);
	}
}

static ZydisDecodedInstruction zi;
static ZydisDecodedOperand zo[ZYDIS_MAX_OPERAND_COUNT];

static uint64_t zreg(ZydisRegister r)
{
	if (r == ZYDIS_REGISTER_NONE)
		return 0;
	if (r == ZYDIS_REGISTER_RIP)
		return 0;
	return R[ZydisRegisterGetId(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r))];
}

static uint64_t operand_ea(const struct an_insn *ai, const struct plan_log *l)
{
	const ZydisDecodedOperand *o = &zo[l->reg];
	int64_t d = o->mem.disp.has_displacement ? o->mem.disp.value : 0;
	uint64_t a;

	if (o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && o->mem.base == ZYDIS_REGISTER_RSP)
		d = 0;
	if (zi.mnemonic == ZYDIS_MNEMONIC_POP && o->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT &&
	    o->mem.base == ZYDIS_REGISTER_RSP)
		d += 8;
	a = zreg(o->mem.base) + zreg(o->mem.index) * o->mem.scale + (uint64_t)d + (uint64_t)(int64_t)l->disp;
	if (o->mem.base == ZYDIS_REGISTER_RIP)
		a += bias + ai->vaddr + ai->len;
	return zi.address_width == 32 ? (uint32_t)a : a;
}

static void write_log(const struct an_insn *ai, const struct plan_log *l)
{
	uint64_t v = 0;

	switch (l->what) {
	case LOG_REG:
	case LOG_PTW:
		if (l->w == 6) /* it is about to be used as an address, or near one */
			R[l->reg] = canon(R[l->reg]);
		if (l->what == LOG_REG)
			put(&R[l->reg], l->w);
		else if (nflow < sizeof(flow) / sizeof(*flow))
			flow[nflow++] = l->w > 4 ? R[l->reg] : (uint32_t)R[l->reg];
		break;
	case LOG_SETCC:
		v = sem_cond(l->reg, R[SEM_FC], R[SEM_FR]);
		put(&v, 1);
		break;
	case LOG_HOP: /* xbegin's: whoever knows */
		v = R[SEM_T0] = rnd() & 1;
		put(&v, 1);
		break;
	case LOG_EA:
		v = operand_ea(ai, l);
		put(&v, l->w);
		break;
	case LOG_KMASK:
		put(&R[SEM_K0 + l->reg], l->w);
		break;
	case LOG_VEC:
		put(&R[SEM_V(l->reg, 0)], l->w);
		break;
	case LOG_TARGET:
		put(&R[SEM_T0], l->w == 8 ? 8 : 4);
		break;
	}
}

/* what is logged of a transfer itself, after its other effects */
static bool of_transfer(const struct plan_log *l)
{
	return l->what == LOG_TARGET || l->what == LOG_HOP;
}

/* logs of instruction i at `when`; lp walks the list */
static void logs(const struct an_group *g, const struct plan *p, uint32_t i, uint8_t when, bool target)
{
	static uint32_t hint;
	uint32_t k = hint < p->nlog && hint && p->log[hint - 1].insn <= i ? hint : 0;

	if (k && p->log[k - 1].insn == i)
		k = 0;
	while (k < p->nlog && p->log[k].insn < i)
		k++;
	hint = k;
	for (; k < p->nlog && p->log[k].insn == i; k++)
		if (p->log[k].when == when && of_transfer(&p->log[k]) == target)
			write_log(&g->insn[i], &p->log[k]);
}

static void run_insn(const struct an_group *g, const struct plan *p, uint32_t i)
{
	static struct sem_op ops[SEM_LIFT_MAX];
	static ZydisDecoder d;
	const struct an_insn *ai = &g->insn[i];
	int n;

	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderDecodeFull(&d, elf_at(m, ai->vaddr, ai->len), ai->len, &zi, zo);
	logs(g, p, i, AT_BEFORE, false);
	n = sem_lift(&zi, zo, ai->vaddr, NULL, ops, SEM_LIFT_MAX, NULL);
	for (int k = 0; k < n && ai->flow != FLOW_SYSCALL; k++) {
		const struct sem_op *o = &ops[k];

		if (o->op == SEM_LOAD)
			R[o->dst] = o->a == SEM_FSBASE && !o->imm && o->w == 8
					    ? R[SEM_FSBASE]
					    : load(R[o->a] + (uint64_t)o->imm, o->w);
		else if (o->op == SEM_STORE)
			store(R[o->a] + (uint64_t)o->imm, o->w, R[o->b]);
		else if (o->op == SEM_REC || gr_has_slot2(o))
			full_rec(o, R);
		else
			R[o->dst] = value(o, R);
		k += gr_has_slot2(o);
	}
	logs(g, p, i, AT_AFTER, false);
}

static uint32_t block_at(const struct an_group *g, uint64_t addr)
{
	for (uint32_t i = 0; i < g->nblock; i++)
		if (bias + g->insn[g->block[i].first].vaddr == addr)
			return i;
	return AN_NONE;
}

static void clobber(bool call)
{
	for (int i = 0; call && i < SEM_NGPR; i++)
		if (GR_CALLER_SAVED >> i & 1) {
			if (R[i] - R[SEM_RSP] < 0x10000 && rnd() & 1)
				scramble(R[i], 16);
			R[i] = rnd() & (rnd() & 1 ? 0xff : ~0ull);
		}
	for (int i = SEM_V0; i < SEM_NREGS; i++)
		R[i] = rnd();
	R[SEM_FC] = rnd() & 1;
	R[SEM_FR] = rnd() & 0x8d4;
	scramble(R[SEM_RSP] - 256, 256);
}

struct pos {
	uint32_t g, b;
};
static struct frame fr[MAXFRAME];
static uint32_t nfr;

/* control comes back to frame f's return site (rsp is right) */
static bool come_back(struct pos *at)
{
	const struct an_group *g;
	struct frame *f;
	uint8_t mark;

	if (!nfr)
		return false;
	f = &fr[--nfr];
	g = &m->group[f->group];
	at->g = f->group;
	at->b = f->block;
	if (glue_stub(m, g, at->b) == STUB_RESYNC) {
		ev[nev++] = (struct event){EV_RESYNC, at->g, at->b, R[SEM_RSP]};
		logs(g, plans[at->g], g->block[at->b].first, AT_RESYNC, false);
		return true;
	}
	if (glue_stub(m, g, at->b) == STUB_RETURN) {
		mark = 1 | (at->b & 0x1f) << 3;
		put(&mark, 1);
	}
	logs(g, plans[at->g], g->block[at->b].first, AT_STUB, false);
	return true;
}

/* opaque code ran and returned to the innermost frame */
static bool opaque_return(struct pos *at)
{
	clobber(true);
	if (!nfr)
		return false;
	R[SEM_RSP] = fr[nfr - 1].rsp;
	memcpy(&R[SEM_R12], &fr[nfr - 1].saved[12], 32);
	R[SEM_RBX] = fr[nfr - 1].saved[SEM_RBX];
	R[SEM_RBP] = fr[nfr - 1].saved[SEM_RBP];
	return come_back(at);
}

static bool do_call(struct pos *at, const struct an_group *g, const struct an_block *b, uint32_t insn)
{
	const struct an_callee *c = glue_callee(g, insn);

	if (b->succ[1] == AN_NONE || nfr == MAXFRAME || nev > 4000)
		return false;
	fr[nfr] = (struct frame){.group = at->g,
				 .block = b->succ[1],
				 .rsp = R[SEM_RSP] + 8,
				 .ret = bias + g->insn[insn].vaddr + g->insn[insn].len};
	memcpy(fr[nfr++].saved, R, 16 * 8);
	if (g->insn[insn].flow == FLOW_ICALL || glue_call(m, g, insn) == CALL_EXT)
		return opaque_return(at);
	at->g = c->group;
	at->b = c->block;
	return true;
}

static bool leave_for(struct pos *at, const struct an_group *g, uint32_t insn)
{
	const struct an_callee *c = glue_callee(g, insn);

	if (!c)
		return opaque_return(at);
	at->g = c->group;
	at->b = c->block;
	return true;
}

/* the op of a block's plan that asks where control went, or NULL */
static const struct sem_op *asks(uint32_t g, uint32_t b)
{
	const struct sem_op *o = plans[g]->op + plans[g]->blockop[b];

	while (o->op <= SEM_BLOCK || o->op == SEM_RMARK) {
		if (o->op == SEM_FLOW)
			return o;
		o += 1 + gr_has_slot2(o);
	}
	return o->op == SEM_JCC_FLOW ? o : NULL;
}

static void went(uint32_t g, uint32_t b)
{
	if (asks(g, b) && nflow < sizeof(flow) / sizeof(*flow))
		flow[nflow++] = asks(g, b)->op == SEM_FLOW ? R[SEM_T0] : R[SEM_T0] != 0;
}

/* the block's control transfer; false: the run ends here */
static bool transfer(struct pos *at)
{
	const struct an_group *g = &m->group[at->g];
	const struct an_block *b = &g->block[at->b];
	uint32_t insn = b->first + b->n - 1, to = b->succ[1], before = nlog;
	const struct sem_op *o;

	switch (g->insn[insn].flow) {
	case FLOW_JCC:
		went(at->g, at->b);
		logs(g, plans[at->g], insn, AT_BEFORE, true);
		if (R[SEM_T0]) {
			if (b->succ[0] == AN_NONE)
				return leave_for(at, g, insn);
			to = b->succ[0];
		}
		break;
	case FLOW_JMP:
		if (b->succ[0] == AN_NONE)
			return leave_for(at, g, insn);
		to = b->succ[0];
		break;
	case FLOW_IJMP:
		if (glue_jump(m, g, at->b) == JUMP_LEAVES) {
			/* a target is logged where the jump may switch stacks (longjmp): no frame to go on in */
			logs(g, plans[at->g], insn, AT_BEFORE, true);
			if (asks(at->g, at->b))
				return false;
			return b->table == AN_NONE && nlog == before ? opaque_return(at) : false;
		}
		/* the last op of the block is the one before the next block's programs: look for a log */
		o = plans[at->g]->op + plans[at->g]->blockop[at->b];
		while (o->op != SEM_IJMP && o->op != SEM_IJMP_LOG)
			o += 1 + gr_has_slot2(o);
		if (o->op == SEM_IJMP_LOG || o[-1].op == SEM_LOG || o[-1].op == SEM_FLOW) {
			const struct an_table *t = &g->table[b->table];

			R[SEM_T0] = bias + g->insn[g->block[t->target[rnd() % t->ntarget]].first].vaddr;
		}
		logs(g, plans[at->g], insn, AT_BEFORE, true);
		went(at->g, at->b);
		to = block_at(g, R[SEM_T0]);
		break;
	case FLOW_CALL:
	case FLOW_ICALL:
		return do_call(at, g, b, insn);
	case FLOW_RET:
		logs(g, plans[at->g], insn, AT_BEFORE, true);
		went(at->g, at->b);
		if (nfr && g->sum->lifo && R[SEM_RSP] != fr[nfr - 1].rsp)
			why = "return with another rsp";
		if (!nfr || R[SEM_T0] != fr[nfr - 1].ret || R[SEM_RSP] != fr[nfr - 1].rsp)
			return false;
		returns++;
		for (int r = 0; r < 16; r++) /* that callers' callees keep them is checked, not assumed */
			if ((GR_CALLEE_SAVED & ~g->sum->maywrite) >> r & 1 && R[r] != fr[nfr - 1].saved[r])
				return lost_register++, false;
		return come_back(at);
	case FLOW_SYSCALL:
		R[SEM_RAX] = rnd() & 0xfff;
		R[SEM_RCX] = bias + g->insn[insn].vaddr + g->insn[insn].len;
		R[SEM_R11] = rnd();
		put(&R[SEM_RAX], 8);
		break;
	case FLOW_HALT:
		return false;
	default:
		break;
	}
	at->b = to;
	return to != AN_NONE;
}

static void processor(struct pos at)
{
	for (int steps = 0; steps < 400 && nrec[0] < MAXREC - 1000; steps++) {
		const struct an_group *g = &m->group[at.g];
		const struct an_block *b = &g->block[at.b];
		const struct plan *p = plans[at.g];

		logs(g, p, b->first, AT_BLOCK, false);
		for (uint32_t i = b->first; i < b->first + b->n; i++)
			run_insn(g, p, i);
		if (!transfer(&at))
			return;
	}
}

/* ---- the decoder ---------------------------------------------------------------------- */

static uint64_t D[SEM_NREGS];

static bool take(void *p, uint32_t n)
{
	memset(p, 0, 8);
	if (rlog + n > nlog)
		return false;
	memcpy(p, logbuf + rlog, n);
	rlog += n;
	return true;
}

static bool dec_rec(const struct sem_op *o)
{
	const struct sem_vec *v = (const struct sem_vec *)(o + 1);
	uint64_t h = 0, a = sem_rec_addr(o, D);
	uint32_t n;

	if (o->op == SEM_REC) {
		add(1, SEM_REC_IP(o->imm), o->dst, a, 0, 0);
	} else if (o->op == SEM_RECREP) {
		add(1, SEM_REC_IP(o->imm), v->kind, o->a == SEM_NONE ? 0 : D[o->a],
		    o->b == SEM_NONE ? 0 : D[o->b], D[v->count] ^ D[v->df] << 63);
	} else if (o->op == SEM_RECXS) {
		add(1, SEM_REC_IP(o->imm), o->dst, a, (uint32_t)D[v->count], (uint32_t)D[v->df]);
	} else {
		if (v->mask != SEM_MASK_ALL) {
			n = v->mask == SEM_MASK_VEC ? v->n * v->mask_bytes : v->mask_bytes;
			if (v->mask == SEM_MASK_REG) {
				h = hash((const uint8_t *)&D[v->count], n);
			} else {
				if (rlog + n > nlog)
					return false;
				h = hash(logbuf + rlog, n);
				rlog += n;
			}
			n = v->n * v->idx_bytes;
			if (n && rlog + n > nlog)
				return false;
			if (n)
				h = mix(h) ^ hash(logbuf + rlog, n);
			rlog += n;
		}
		add(1, SEM_REC_IP(o->imm), o->dst, a, h, 0);
	}
	return true;
}

static struct frame df[MAXFRAME + 1];
static uint32_t ndf;

static bool dec_mark(uint32_t *g, uint32_t *at)
{
	if (rev < nev) {
		struct event *e = &ev[rev++];

		*g = e->group;
		*at = plans[*g]->entryop[e->block];
		D[SEM_RSP] = e->rsp;
		return true;
	}
	return false;
}

static bool dec_return(uint32_t *g, uint32_t *at, bool opaque)
{
	struct frame *f;

	if (!ndf)
		return false;
	f = &df[--ndf];
	*g = f->group;
	*at = f->next;
	for (int r = 0; r < 16; r++)
		if (GR_CALLEE_SAVED >> r & 1)
			D[r] = f->saved[r];
	if (opaque)
		D[SEM_RSP] = f->rsp;
	if (*at != AN_NONE && plans[*g]->op[*at].op == SEM_JMPX)
		return dec_mark(g, at);
	return true;
}

static void target(uint32_t *g, uint32_t *at, uint32_t to)
{
	if (to & 0x80000000u) {
		const struct an_callee *c = &m->group[*g].callee[to & 0x7fffffff];

		*g = c->group;
		to = plans[*g]->blockop[c->block];
	}
	*at = to;
}

/* one op at *at of group *g; false ends the run */
static bool dec_op(uint32_t *g, uint32_t *at)
{
	const struct plan *p = plans[*g];
	const struct sem_op *o = &p->op[*at];
	uint8_t byte;
	uint64_t v;

	*at += 1 + gr_has_slot2(o);
	switch (o->op) {
	case SEM_BLOCK:
		return true;
	case SEM_LOG:
	case SEM_LOGSX:
		if (!take(&v, o->w))
			return false;
		D[o->dst] = o->op == SEM_LOG ? v : o->w == 6 ? canon(v) : (uint64_t)sem_sx(v, o->w);
		return true;
	case SEM_LOAD:
	case SEM_LOADRO:
		D[o->dst] = load(D[o->a] + (uint64_t)o->imm, o->w);
		return true;
	case SEM_STORE:
		store(D[o->a] + (uint64_t)o->imm, o->w, D[o->b]);
		return true;
	case SEM_REC:
	case SEM_RECVEC:
	case SEM_RECREP:
	case SEM_RECXS:
		return dec_rec(o);
	case SEM_TSC:
		return take(&v, 8);
	case SEM_VCHK:
		if (take(&v, 8) && rec[1][nrec[1] - 1 - o->imm].a != canon(v))
			why = "verify log differs";
		return true;
	case SEM_JMP:
		target(g, at, SEM_TAKEN(o->imm));
		return true;
	case SEM_JCC_LOG:
		if (!take(&v, 1))
			return false;
		byte = (uint8_t)v;
		if (byte > 1)
			why = "branch byte";
		target(g, at, byte ? SEM_TAKEN(o->imm) : SEM_NEXT(o->imm));
		return true;
	case SEM_PTW:
	case SEM_PTWSX:
		if (rflow == nflow)
			return false;
		v = flow[rflow++];
		D[o->dst] = o->op == SEM_PTW ? v & sem_mask(o->w)
			    : o->w == 6	     ? canon(v)
					     : (uint64_t)sem_sx(v, o->w);
		return true;
	case SEM_FLOW:
		if (rflow == nflow)
			return false;
		D[o->dst] = flow[rflow++];
		return true;
	case SEM_JCC_FLOW:
		if (rflow == nflow)
			return false;
		target(g, at, flow[rflow++] ? SEM_TAKEN(o->imm) : SEM_NEXT(o->imm));
		return true;
	case SEM_JCC:
		target(g, at, D[o->a] ? SEM_TAKEN(o->imm) : SEM_NEXT(o->imm));
		return true;
	case SEM_IJMP:
	case SEM_IJMP_LOG:
		if (o->op == SEM_IJMP_LOG && !take(&v, 4))
			return false;
		if (o->op == SEM_IJMP_LOG)
			v = (uint32_t)(v - bias) + bias;
		else
			v = D[o->a];
		v = block_at(&m->group[*g], v);
		if (v == AN_NONE)
			return false;
		*at = p->blockop[v];
		return true;
	case SEM_CALL:
	case SEM_CALLX:
		if (ndf == MAXFRAME)
			return false;
		df[ndf] = (struct frame){.group = *g, .next = SEM_NEXT(o->imm), .rsp = D[SEM_RSP] + 8};
		memcpy(df[ndf++].saved, D, 16 * 8);
		if (o->op == SEM_CALLX)
			return dec_return(g, at, true);
		target(g, at, SEM_TAKEN(o->imm));
		return true;
	case SEM_JMPX:
		return dec_return(g, at, true);
	case SEM_RET:
	case SEM_RETX:
		return o->op == SEM_RETX && o->dst == SEM_RETX_JUMP ? false : dec_return(g, at, false);
	case SEM_SYSCALL:
		if (!take(&D[SEM_RAX], 8))
			return false;
		*at = SEM_NEXT(o->imm);
		D[SEM_R11] = rnd();
		return true;
	case SEM_HALT:
		return false;
	case SEM_RMARK:
		if (!take(&v, 1))
			return false;
		if (v != (uint64_t)(1 | (o->imm & 0x1f) << 3))
			why = "return mark";
		return true;
	default:
		D[o->dst] = sem_value(o, D, bias);
		return true;
	}
}

static void decoder(struct pos at)
{
	uint32_t g = at.g, pc = plans[g]->entryop[at.b];

	for (uint32_t n = 0; n < 4000000 && !why && nrec[1] < nrec[0]; n++)
		if (!dec_op(&g, &pc))
			return;
}

/* ---- */

static void forget(void)
{
	for (uint32_t i = 0; i < nmem; i++)
		mem_addr[mem_used[i]] = ~0ull;
	nmem = 0;
}

static bool run(uint32_t gi, uint32_t bi, long seed)
{
	const struct an_group *g = &m->group[gi];
	struct pos at = {gi, bi};
	uint64_t fs = 0x7f0011223300ull;

	rng = mix(m->group[gi].insn[0].vaddr * 64 + bi + ((uint64_t)seed << 40)) |
	      1; /* reproducible one by one */
	salt = rnd();
	forget();
	nflow = rflow = 0;
	nlog = rlog = nrec[0] = nrec[1] = nev = rev = nfr = ndf = 0;
	why = NULL;
	for (int i = 0; i < SEM_NREGS; i++) {
		R[i] = rnd() & (rnd() & 1 ? 0x3f : ~0ull);
		D[i] = rnd();
	}
	R[SEM_RSP] = D[SEM_RSP] = STACK + 8;
	R[SEM_DF] = D[SEM_DF] = 0;
	R[SEM_FC] = rnd() & 1;
	R[SEM_FR] = rnd() & 0x8d4;
	R[SEM_FSBASE] = D[SEM_FSBASE] = fs;
	R[SEM_GSBASE] = D[SEM_GSBASE] = 0;
	logs(g, plans[gi], g->block[bi].first, glue_stub(m, g, bi) == STUB_ENTRY ? AT_ENTRY : AT_RESYNC,
	     false);
	processor(at);
	if (broken_on_purpose && nlog)
		logbuf[rnd() % nlog] ^= 1;
	forget();
	decoder(at);
	for (uint32_t k = 0; k < nrec[0] && !why; k++)
		if (k >= nrec[1] || memcmp(&rec[0][k], &rec[1][k], sizeof(struct entry)))
			why = k >= nrec[1] ? "records missing" : "record differs";
	if (why && !broken_on_purpose) {
		uint32_t k = 0;

		while (k < nrec[0] && k < nrec[1] && !memcmp(&rec[0][k], &rec[1][k], sizeof(struct entry)))
			k++;
		printf("%s %s entry %x: %s, record %u ip %x: %llx, decoder ip %x: %llx (log %u of %u)\n",
		       m->path, g->name ? g->name : "?", g->insn[g->block[bi].first].vaddr, why, k,
		       k < nrec[0] ? rec[0][k].ip : 0, (unsigned long long)(k < nrec[0] ? rec[0][k].a : 0),
		       k < nrec[1] ? rec[1][k].ip : 0, (unsigned long long)(k < nrec[1] ? rec[1][k].a : 0),
		       rlog, nlog);
	}
	return !why;
}

/* by name, or by the address of its first instruction */
static bool named(const struct an_group *g, const char *s)
{
	return (g->name && !strcmp(g->name, s)) || g->insn[0].vaddr == strtoul(s, NULL, 16);
}

int main(int argc, char **argv)
{
	long pass = 0, fail = 0, runs = 4, records = 0, bytes = 0;
	uint32_t mode = 0;
	const char *only = NULL;
	char err[200];

	memset(mem_addr, 0xff, sizeof(mem_addr));
	for (int a = 1; a < argc; a++) {
		if (!strcmp(argv[a], "-n") && a + 1 < argc) {
			runs = atol(argv[++a]);
			continue;
		}
		if (!strcmp(argv[a], "-f") && a + 1 < argc) {
			only = argv[++a];
			continue;
		}
		if (!strcmp(argv[a], "--break")) {
			broken_on_purpose = true;
			continue;
		}
		if (!strcmp(argv[a], "--cf=pt")) {
			mode |= MAP_F_PT;
			continue;
		}
		if (!strcmp(argv[a], "--ptwrite")) {
			mode |= MAP_F_PTW | MAP_F_BUDGET(3);
			continue;
		}
		m = elf_open(argv[a], err, sizeof(err));
		if (!m || discover(m, 1, err, sizeof(err)) < 0 || plan_summaries(m, mode, 1) < 0) {
			printf("%s: %s\n", argv[a], err);
			return 1;
		}
		bias = m->pie ? 0x555500000000ull : 0;
		plans = calloc(m->ngroup + 1, sizeof(*plans));
		for (uint32_t i = 0; i < m->ngroup; i++)
			if (m->group[i].reason == MAP_OK) {
				plans[i] = plan_group(m, &m->group[i], mode | (i & 1 ? MAP_F_VERIFY : 0));
				if (!plans[i]) {
					printf("%s %x: no plan\n", argv[a], m->group[i].insn[0].vaddr);
					fail++;
					m->group[i].reason = MAP_R_LIMIT;
				}
			}
		for (uint32_t i = 0; i < m->ngroup; i++) {
			const struct an_group *g = &m->group[i];

			if (g->reason != MAP_OK || (only && !named(g, only)))
				continue;
			for (uint32_t b = 0; b < g->nblock; b++)
				for (long k = 0; k < runs && plans[i]->entryop[b] != AN_NONE; k++) {
					if (!(g->block[b].flags & AN_B_ENTRY))
						break;
					if (run(i, b, k))
						pass++;
					else
						fail++;
					records += nrec[1];
					bytes += nlog;
				}
		}
	}
	printf("records %ld, log bytes %ld, returns %ld, with a changed saved register %ld\n", records, bytes,
	       returns, lost_register);
	printf("%ld passed, %ld failed\n", pass, fail);
	return fail != 0;
}
