/* SPDX-License-Identifier: MIT
 *
 * walk_loop.c - the decoder's inner loop: threaded code, one computed goto an op
 *
 * What the loop touches all the time lives in locals; SAVE writes them back before a call into
 * the rare parts, LOAD fetches what those changed. Handlers of frequent value ops are
 * specialised by width and form: the op's definition (sem_eval.h) is folded with both constant,
 * so there is still one definition of what an op computes.
 */
#if defined(__GNUC__) && !defined(__clang__)
/* Every handler must keep its own indirect jump, or the processor predicts one for all: these passes
 * merge the jumps, and make them too long to be copied back. It is a factor of two to three. */
#pragma GCC optimize("no-gcse", "no-crossjumping", "no-tree-vectorize", "no-tree-slp-vectorize")
#endif

#include <string.h>
#include "walk.h"

/* Folding needs the definitions inlined at every handler; left to itself gcc calls the large ones. */
#define inline inline __attribute__((always_inline))
#include "sem_eval.h"
#undef inline

#define SAVE (w->pc = pc, w->p = p, w->lim = lim, w->out = out)
#define LOAD (pc = w->pc, p = w->p, lim = w->lim, out = w->out, m = w->m, code = m->code, bias = m->bias)
#define GO goto *tab[pc->h]
#define NEXT                                                                                                 \
	do {                                                                                                 \
		pc++;                                                                                        \
		GO;                                                                                          \
	} while (0)
#define SLOW(call)                                                                                           \
	do {                                                                                                 \
		SAVE;                                                                                        \
		if (unlikely(call))                                                                          \
			return w->end;                                                                       \
		LOAD;                                                                                        \
	} while (0)
#define NEED(n)                                                                                              \
	do {                                                                                                 \
		if (unlikely((size_t)(lim - p) <= (n))) {                                                    \
			SAVE;                                                                                \
			if (!walk_more(w, n)) {                                                              \
				if (seek_dry(w))                                                             \
					return w->end;                                                       \
				LOAD;                                                                        \
				GO;                                                                          \
			}                                                                                    \
			LOAD;                                                                                \
		}                                                                                            \
	} while (0)

/* after an answer: the recording may know a later time */
#define FLOW_TIME                                                                                            \
	do {                                                                                                 \
		if (unlikely(w->ask->tsc != w->flow_time))                                                   \
			SLOW(walk_flow_time(w));                                                             \
	} while (0)

/* value op with everything but the operands constant */
#define FOLD(OP, W, x, y) sem_alu(&(const struct sem_op){.op = SEM_##OP, .w = (W)}, x, y, 0)
#define DO_R(OP, W)                                                                                          \
	h_##OP##_R##W : r[pc->dst] = FOLD(OP, W, r[pc->a], r[pc->b]);                                        \
	NEXT;
#define DO_I(OP, W)                                                                                          \
	h_##OP##_I##W : r[pc->dst] = FOLD(OP, W, r[pc->a], (uint64_t)pc->imm);                               \
	NEXT;
#define DO_U(OP, W)                                                                                          \
	h_##OP##_U##W : r[pc->dst] = FOLD(OP, W, r[pc->a], 0);                                               \
	NEXT;
#define DO_VALUE(OP)                                                                                         \
	DO_R(OP, 1) DO_R(OP, 2) DO_R(OP, 4) DO_R(OP, 8) DO_I(OP, 1) DO_I(OP, 2) DO_I(OP, 4) DO_I(OP, 8)
#define DO_UNARY(OP) DO_U(OP, 1) DO_U(OP, 2) DO_U(OP, 4) DO_U(OP, 8)
#define DO_COND(CC)                                                                                          \
	h_COND##CC : r[pc->dst] = sem_cond(CC, r[pc->a], r[pc->b]);                                          \
	NEXT;

#define READ(T)                                                                                              \
	({                                                                                                   \
		T v_;                                                                                        \
		memcpy(&v_, p, sizeof(v_));                                                                  \
		p += sizeof(v_);                                                                             \
		v_;                                                                                          \
	})
#define DO_LOG(NAME, T, CAST)                                                                                \
	h_##NAME : NEED(sizeof(T));                                                                          \
	r[pc->dst] = (uint64_t)(CAST)READ(T);                                                                \
	NEXT;

#define EMIT()                                                                                               \
	do {                                                                                                 \
		*out++ = (struct ptrace_rec){.ip = bias + SEM_REC_IP(pc->imm),                               \
					     .addr = r[pc->a] + (r[B_REG(pc->b)] << B_SHIFT(pc->b)) +        \
						     (int64_t)SEM_REC_DISP(pc->imm),                         \
					     .size = SEM_REC_SIZE(pc->dst),                                  \
					     .tid = tid,                                                     \
					     .kind = SEM_REC_KIND(pc->dst)};                                 \
	} while (0)

#define L_E(n) &&h_##n,
#define L_EV(op) H_W(L_E, op, R) H_W(L_E, op, I)
#define L_EU(op) H_W(L_E, op, U)
#define L_EC(cc) &&h_COND##cc,

/* memory that cannot change: the map's bytes, else the start dump; 0 ok */
static int load_ro(struct walker *w, uint64_t addr, unsigned n, uint64_t *v)
{
	struct inst *m;

	*v = 0;
	if (likely(addr - w->rolo < w->ron && n <= w->ron - (addr - w->rolo))) {
		memcpy(v, w->ro + (addr - w->rolo), n);
		return 0;
	}
	m = mod_at(w, addr);
	if (m) {
		uint64_t run;
		const uint8_t *b = map_rodata(m->map, addr - m->bias, n, &run);

		if (b) {
			w->ro = b;
			w->rolo = addr;
			w->ron = run;
			memcpy(v, b, n);
			return 0;
		}
		if (n == 8 && map_roaddress(m->map, addr - m->bias, v)) {
			*v += m->bias;
			return 0;
		}
	}
	if (mem_load(w->start_mem ? w->start_mem : w->mem, addr, n, v))
		return 0;
	w->st->unknown++;
	return lost(w, "read-only memory at %#llx is in no map and not in the start state",
		    (unsigned long long)addr);
}

static int load(struct walker *w, uint64_t addr, unsigned n, uint64_t *v)
{
	struct inst *m;

	if (likely(mem_load(w->mem, addr, n, v)))
		return 0;
	m = mod_at(w, addr);
	if (m) {
		const uint8_t *b = map_rodata(m->map, addr - m->bias, n, NULL);

		if (b) {
			*v = 0;
			memcpy(v, b, n);
			return 0;
		}
	}
	w->st->unknown++;
	return lost(w, "the %u bytes at %#llx are needed and not known", n, (unsigned long long)addr);
}

static int store(struct walker *w, uint64_t addr, unsigned n, uint64_t v)
{
	if (likely(mem_store(w->mem, addr, n, v)))
		return 0;
	return lost(w, "shadow memory reached its bound (raise --memory)");
}

/* the low w bytes; if w is negative, sign-extended */
static inline uint64_t ptw_value(uint64_t v, int w)
{
	if (w > 0)
		return v & sem_mask((unsigned)w);
	return w == -6 ? sem_address(v & sem_mask(6)) : (uint64_t)sem_sx(v, (unsigned)-w);
}

static int block_record(struct walker *w, const struct bcount *count)
{
	const struct map_block *b = &w->m->map->block[count - w->m->block];

	*w->out++ = (struct ptrace_rec){.ip = w->m->bias + b->vaddr,
					.size = b->ninsn,
					.kind = WALK_BLOCK,
					.addr = (uint64_t)(uintptr_t)(w->m->map->insnlen + b->insn),
					.tid = w->index};
	return 0;
}

int walk_loop(struct walker *w)
{
	static const void *const tab[H_N] = {&&h_XLAT, H_VALUE(L_EV) H_UNARY(L_EU) H_CC(L_EC) H_OTHER(L_E)};
	uint64_t *const r = w->r;
	const uint32_t tid = w->index & (PTRACE_MAX_THREADS - 1);
	uint64_t bias, v, next;
	int k;
	struct xop *pc, *code;
	const uint8_t *p, *lim;
	struct ptrace_rec *out;
	struct inst *m;
	struct frame *f;

	LOAD;
	GO;

h_XLAT:
	SLOW(xlat_run(w, m, pc));
	GO;

	H_VALUE(DO_VALUE)
	H_UNARY(DO_UNARY)
	H_CC(DO_COND)
h_IMM:
	r[pc->dst] = (uint64_t)pc->imm;
	NEXT;
h_LEA:
	r[pc->dst] = r[pc->a] + (r[B_REG(pc->b)] << B_SHIFT(pc->b)) + (uint64_t)pc->imm;
	NEXT;
h_SEL:
	r[pc->dst] = r[(uint16_t)pc->imm] ? r[pc->a] : r[pc->b];
	NEXT;
h_GENERIC:
	r[pc->dst] = sem_value(&m->map->op[pc - code], r, bias);
	NEXT;

	DO_LOG(LOG1, uint8_t, uint64_t)
	DO_LOG(LOG2, uint16_t, uint64_t)
	DO_LOG(LOG4, uint32_t, uint64_t)
	DO_LOG(LOG8, uint64_t, uint64_t)
	DO_LOG(LOGSX1, int8_t, int64_t)
	DO_LOG(LOGSX2, int16_t, int64_t)
	DO_LOG(LOGSX4, int32_t, int64_t)
h_LOGSX6:
	NEED(6);
	v = READ(uint32_t);
	r[pc->dst] = sem_address(v | (uint64_t)READ(uint16_t) << 32);
	NEXT;

h_REC:
	EMIT();
	NEXT;
h_REC_ROOM: /* in blocks with more records than BLOCK leaves room for */
	EMIT();
	if (unlikely(out >= w->outlim))
		SLOW(flush(w));
	NEXT;
h_RECVEC:
	SLOW(walk_recvec(w));
	pc += 2;
	GO;
h_RECREP:
	SLOW(walk_recrep(w));
	pc += 2;
	GO;
h_RECXS:
	SLOW(walk_recxs(w));
	pc += 2;
	GO;
h_VCHK:
	NEED(8);
	v = READ(uint64_t);
	w->st->checked++;
	if (unlikely((uint64_t)pc->imm >= REC_KEEP || out[-1 - pc->imm].addr != v)) {
		p -= 8;
		SLOW(walk_vchk(w, (uint64_t)pc->imm));
	}
	NEXT;

h_TSC:
	NEED(8);
	v = READ(uint64_t);
	SLOW(walk_time(w, v));
	NEXT;

h_LOAD:
	SLOW(load(w, r[pc->a] + (uint64_t)pc->imm, pc->b, &v));
	r[pc->dst] = v;
	NEXT;
h_STORE:
	SLOW(store(w, r[pc->a] + (uint64_t)pc->imm, pc->dst, r[pc->b]));
	NEXT;
h_LOADRO:
	SLOW(load_ro(w, r[pc->a] + (uint64_t)pc->imm, pc->b, &v));
	r[pc->dst] = v;
	NEXT;

h_BLOCK:
	if (unlikely(out >= w->outlim))
		SLOW(flush(w));
	if (unlikely(lim == p))
		SLOW(seek_block(w)); /* what ran after the last byte of a log that just ends is not known */
	((struct bcount *)(uintptr_t)pc->imm)->n++;
	NEXT;
h_BLOCKREC:
	if (unlikely(out >= w->outlim))
		SLOW(flush(w));
	if (unlikely(lim == p))
		SLOW(seek_block(w));
	((struct bcount *)(uintptr_t)pc->imm)->n++;
	SLOW(block_record(w, (struct bcount *)(uintptr_t)pc->imm));
	NEXT;

h_JMP:
	pc = code + SEM_TAKEN(pc->imm);
	GO;
h_JCC_LOG:
	NEED(1);
	if (unlikely(*p > 1)) {
		SLOW(lost(w, "a branch outcome of %u", *p));
	}
	pc = code + (*p++ ? SEM_TAKEN(pc->imm) : SEM_NEXT(pc->imm));
	GO;
h_JCC_FLOW:
	v = m->copy + SEM_FLOW_AT(pc->a, pc->b);
	k = w->ask->ops->branch(w->ask, v, &next);
	if (unlikely(k)) {
		SLOW(walk_flow_gone(w, k));
		GO;
	}
	FLOW_TIME;
	pc = code + (next - v != pc->dst ? SEM_TAKEN(pc->imm) : SEM_NEXT(pc->imm));
	GO;
h_FLOW:
	k = w->ask->ops->branch(w->ask, m->copy + SEM_FLOW_AT(pc->a, pc->b), &next);
	if (unlikely(k)) {
		SLOW(walk_flow_gone(w, k));
		GO;
	}
	FLOW_TIME;
	r[pc->dst] = next;
	NEXT;
h_PTW:
	if (unlikely(w->seek.on)) {
		bool taken;

		SLOW(seek_value(w, &taken));
		if (taken)
			GO;
	}
	k = w->ask->ops->value(w->ask, m->copy + SEM_FLOW_AT(pc->a, pc->b), &v);
	if (unlikely(k)) {
		SLOW(walk_flow_gone(w, k));
		GO;
	}
	FLOW_TIME;
	r[pc->dst] = ptw_value(v, (int)pc->imm);
	NEXT;
h_JCC:
	pc = code + (r[pc->a] ? SEM_TAKEN(pc->imm) : SEM_NEXT(pc->imm));
	GO;
h_IJMP:
	if (pc->dst)
		w->expect = r[SEM_RSP];
	SLOW(walk_ijmp(w, r[pc->a], (uint32_t)pc->imm));
	GO;
h_IJMP_LOG:
	NEED(4);
	v = bias + (uint32_t)(READ(uint32_t) - (uint32_t)bias);
	SLOW(walk_ijmp(w, v, (uint32_t)pc->imm));
	GO;

h_CALL:
	if (unlikely(w->nframe == w->capframe)) {
		SLOW(frame_push(w, m, SEM_NEXT(pc->imm), pc->dst, pc->b));
	} else {
		f = &w->frame[w->nframe++];
		f->slot = r[SEM_RSP];
		f->pc = code + SEM_NEXT(pc->imm);
		f->m = m;
		f->saved[0] = r[SEM_RBX];
		f->saved[1] = r[SEM_RBP];
		memcpy(f->saved + 2, r + SEM_R12, 4 * sizeof(*r));
		f->flags = pc->dst;
		f->check = pc->b;
	}
	pc = code + SEM_TAKEN(pc->imm);
	GO;
h_CALLX:
	SLOW(frame_push(w, m, SEM_NEXT(pc->imm), pc->dst, pc->b));
	w->expect = r[SEM_RSP];
	w->left = here(w);
	SLOW(walk_mark(w));
	GO;
h_JMPX_LINK:
	NEED(1);
	if (likely(*p == RUN_MARK_LINK)) {
		p++;
		pc = code + SEM_TAKEN(pc->imm);
		GO;
	}
	if (m->count)
		m->count[pc - code].n--; /* has read nothing */
h_JMPX:
	SAVE;
	walk_leave(w);
	SLOW(walk_mark(w));
	GO;
h_RET:
	f = w->frame + w->nframe - 1;
	if (likely(w->nframe && f->slot == r[SEM_RSP] - 8 && !(f->flags & (FR_OPAQUE | FR_RESYNC)))) {
		w->nframe--;
		r[SEM_RBX] = f->saved[0];
		r[SEM_RBP] = f->saved[1];
		memcpy(r + SEM_R12, f->saved + 2, 4 * sizeof(*r));
		pc = f->pc;
		if (unlikely(f->m != m)) {
			w->m = m = f->m;
			code = m->code;
			bias = m->bias;
		}
		GO;
	}
	SLOW(frame_return(w, r[SEM_RSP] - 8 - (uint64_t)pc->imm));
	GO;
h_RETX:
	w->expect = r[SEM_RSP] - 7;
	SLOW(frame_switch(w, r[SEM_RSP] - 8 - (uint64_t)pc->imm, r[pc->a]));
	GO;
h_SYSCALL:
	SLOW(walk_syscall(w));
	GO;
h_HALT:
	SAVE;
	walk_leave(w); /* where code runs on into what is not relocated, the copy jumps there */
	SLOW(walk_mark(w));
	GO;
h_COUNT : {
	struct opcount *c = &m->count[pc - code];

	c->n++;
	goto *tab[c->h];
}
h_BREAK : {
	uint16_t h = w->seek.h;
	bool taken;

	SLOW(seek_break(w, &taken));
	if (!taken)
		goto *tab[h];
	GO;
}
h_RMARK:
	if (likely(lim != p && *p == (uint8_t)pc->imm)) {
		p++;
		NEXT;
	}
	SLOW(walk_rmark(w));
	GO;
}
