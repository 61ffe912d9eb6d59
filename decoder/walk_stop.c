/* SPDX-License-Identifier: MIT
 *
 * walk_stop.c - the end of a trace that a signal stopped between two marks (stop.bin)
 *
 *   stream  ── read as ever ──▶ lp_pos │ what the interrupted block had stored, then garbage
 *   program ───────────────────────────┼── blocks that log nothing ──▶ block with rip, up to rip
 *
 * The stream up to lp_pos is complete. Behind it the program ran any number of blocks that log nothing,
 * and part of the one that holds rip. Those are walked with a breakpoint in that block, before the first
 * op that may belong to rip's instruction or a later one. If the block logs, it is the first time it
 * comes up. If it does not (a loop whose exit can be computed), it is the time that the general registers
 * that code from there on reads are those of the stop.
 *
 * Records from lp_pos on are held back until the place is found. If it is not, they are dropped and the
 * trace ends at lp_pos: short, never wrong.
 */
#include <stdlib.h>
#include <string.h>
#include "sem_eval.h"
#include "walk.h"

#define NHELD (1u << 20) /* records held back at most */
#define NSTEP 32 /* ops between the last access before rip and the first after it */
#define NSEEN 64 /* blocks looked at for registers that are read */

struct past {
	struct inst *m; /* block with rip; NULL if rip is in none */
	uint32_t block, at; /* op the breakpoint is at */
	uint16_t h; /* its own handler */
	bool logs; /* the block logs */
	bool again; /* rip is its last instruction, which can lead to the block itself */
	uint32_t steps; /* ops behind the breakpoint that may be part of instructions before rip */
	bool found;
	uint32_t before; /* instructions of the block before rip */
	uint32_t start_mask; /* registers read from the block's start on */
	uint32_t mask[NSTEP + 1]; /* from op at + i on */
	struct bcount **counts; /* of all modules, as they were */
};

/* ---- registers that are read ------------------------------------------------------------------- */

struct seen {
	uint32_t op[NSEEN], n, mask;
};

static void reads(const struct sem_op *o, uint32_t written, struct seen *v)
{
	uint16_t src[3];
	struct sem_vec k;

	sem_srcs(o, src);
	for (int i = 0; i < 3; i++)
		if (src[i] < SEM_NGPR)
			v->mask |= 1u << src[i] & ~written;
	if (!sem_has_slot(o->op))
		return;
	memcpy(&k, o + 1, sizeof(k));
	if (k.count < SEM_NGPR)
		v->mask |= 1u << k.count & ~written;
}

/* General registers read before written on any way from op on, as far as jumps lead. */
static void live(const struct map *m, uint32_t op, uint32_t written, struct seen *v)
{
	for (uint32_t i = 0; i < v->n; i++)
		if (v->op[i] == op)
			return;
	if (v->n == NSEEN)
		return;
	v->op[v->n++] = op;
	for (; op < m->nop; op++) {
		const struct sem_op *o = &m->op[op];
		bool assigns = sem_is_value(o->op) || o->op == SEM_LOG || o->op == SEM_LOGSX ||
			       o->op == SEM_LOAD || o->op == SEM_LOADRO;

		if (o->op != SEM_BLOCK)
			reads(o, written, v);
		if (assigns && o->dst < SEM_NGPR)
			written |= 1u << o->dst;
		op += sem_has_slot(o->op);
		if (o->op <= SEM_BLOCK || o->op == SEM_RMARK)
			continue;
		if (o->op == SEM_JMP || o->op == SEM_JCC || o->op == SEM_JCC_LOG)
			live(m, SEM_TAKEN(o->imm), written, v);
		if (o->op == SEM_JCC || o->op == SEM_JCC_LOG)
			live(m, SEM_NEXT(o->imm), written, v);
		return;
	}
}

static uint32_t live_at(const struct map *m, uint32_t op)
{
	struct seen v = {.n = 0};

	live(m, op, 0, &v);
	return v.mask;
}

static bool same(const struct walker *w, const uint64_t *r, uint32_t mask)
{
	for (int i = 0; i < SEM_NGPR; i++)
		if (mask >> i & 1 && r[i] != w->proc->stop_at.gpr[i])
			return false;
	return true;
}

/* At the breakpoint: are the registers those of the stop, here or after some of the ops that may be part
 * of instructions before rip? */
static bool matches(const struct walker *w)
{
	const struct past *p = w->past;
	uint64_t r[WALK_NREGS];

	memcpy(r, w->r, sizeof(r));
	for (uint32_t i = 0; i <= p->steps && p->at + i < p->m->map->nop; i++) {
		const struct sem_op *o = &p->m->map->op[p->at + i];

		if (same(w, r, p->mask[i]))
			return true;
		if (!sem_is_value(o->op))
			return false;
		r[o->dst] = sem_value(o, r, p->m->bias);
	}
	return false;
}

/* ---- the block with rip ------------------------------------------------------------------------ */

static bool logs_vector(const struct map *m, uint32_t op)
{
	struct sem_vec v;

	if (op + 1 >= m->nop)
		return false;
	memcpy(&v, &m->op[op + 1], sizeof(v));
	return v.mask == SEM_MASK_K || v.mask == SEM_MASK_VEC || v.idx_bytes;
}

static bool has_logs(const struct map *m, uint32_t op)
{
	for (; op < m->nop; op++)
		switch (m->op[op].op) {
		case SEM_LOG:
		case SEM_LOGSX:
		case SEM_VCHK:
		case SEM_TSC:
		case SEM_RMARK:
		case SEM_JCC_LOG:
		case SEM_IJMP_LOG:
			return true;
		case SEM_RECVEC:
			if (logs_vector(m, op))
				return true;
			op++;
			continue;
		case SEM_RECREP:
		case SEM_RECXS:
			op++;
			continue;
		default:
			if (m->op[op].op > SEM_BLOCK)
				return false;
		}
	return false;
}

/* the first op behind the block's last access before vaddr; *ip: that access's instruction, else as it was */
static uint32_t first_after(const struct map *m, uint32_t op, uint32_t vaddr, uint32_t *ip)
{
	uint32_t at = op + 1;

	for (op++; op < m->nop; op++) {
		const struct sem_op *o = &m->op[op];
		bool rec = o->op == SEM_REC || sem_has_slot(o->op);

		if (rec && SEM_REC_IP(o->imm) >= vaddr)
			break;
		op += sem_has_slot(o->op);
		if (rec)
			*ip = SEM_REC_IP(o->imm);
		if (rec || o->op == SEM_RMARK)
			at = op + 1;
		if (o->op > SEM_BLOCK && o->op != SEM_RMARK)
			break;
	}
	return at;
}

static bool leads_to_itself(const struct map *m, uint32_t first)
{
	uint32_t op = first;

	while (op + 1 < m->nop && (m->op[op].op <= SEM_BLOCK || m->op[op].op == SEM_RMARK))
		op += 1 + sem_has_slot(m->op[op].op);
	switch (m->op[op].op) {
	case SEM_JMP:
		return SEM_TAKEN(m->op[op].imm) == first;
	case SEM_JCC:
	case SEM_JCC_LOG:
		return SEM_TAKEN(m->op[op].imm) == first || SEM_NEXT(m->op[op].imm) == first;
	default:
		return m->op[op].op == SEM_IJMP || m->op[op].op == SEM_IJMP_LOG;
	}
}

static void find_block(struct walker *w, struct past *p)
{
	uint64_t rip = w->proc->stop_at.rip;
	struct inst *m = mod_at(w, rip);
	uint32_t vaddr = m ? (uint32_t)(rip - m->bias) : 0, at, prev = NONE32, access = NONE32;
	const struct map_block *b = m ? map_block_at(m->map, vaddr) : NULL;

	if (!b)
		return;
	at = b->vaddr;
	for (p->before = 0; p->before < b->ninsn && at < vaddr; p->before++) {
		prev = at;
		at += m->map->insnlen[b->insn + p->before];
	}
	if (at != vaddr || p->before == b->ninsn)
		return;
	p->m = m;
	p->block = b - m->map->block;
	p->again = p->before + 1 == b->ninsn && leads_to_itself(m->map, b->ops);
	p->logs = has_logs(m->map, b->ops + 1);
	p->at = first_after(m->map, b->ops, vaddr, &access);
	p->steps = access == prev ? 0 : NSTEP;
	p->start_mask = live_at(m->map, b->ops);
	for (uint32_t i = 0; i <= p->steps; i++)
		p->mask[i] = p->at + i < m->map->nop ? live_at(m->map, p->at + i) : 0;
}

/* ---- walking on -------------------------------------------------------------------------------- */

static int break_at(struct walker *w, struct past *p)
{
	struct xop *x = &p->m->code[p->m->map->block[p->block].ops];

	if (!x->h && xlat_run(w, p->m, x))
		return 1;
	p->h = p->m->code[p->at].h;
	p->m->code[p->at].h = H_BREAK;
	return 0;
}

/* from here on records are held back */
static int hold(struct walker *w, struct past *p)
{
	struct ptrace_rec *buf;

	if (flush(w))
		return 1;
	buf = xcalloc(REC_KEEP + NHELD, sizeof(*buf));
	memcpy(buf, w->buf, REC_KEEP * sizeof(*buf));
	free(w->buf);
	w->buf = buf;
	w->out = buf + REC_KEEP;
	w->outlim = buf + REC_KEEP + NHELD - REC_ROOM;
	p->counts = xcalloc(w->ninst, sizeof(*p->counts));
	for (uint32_t i = 0; i < w->ninst; i++) {
		size_t n = w->inst[i]->map->nblock + 1;

		p->counts[i] = xcalloc(n, sizeof(**p->counts));
		memcpy(p->counts[i], w->inst[i]->block, n * sizeof(**p->counts));
	}
	w->past = p;
	return 0;
}

static int found(struct walker *w)
{
	w->past->found = true;
	w->end = WALK_STOP;
	return 1;
}

/* A block begins and the stream has no byte left. */
int stop_block(struct walker *w)
{
	const struct run_stop_state *s = &w->proc->stop_at;
	const struct bcount *count = (const struct bcount *)(uintptr_t)w->pc->imm;
	struct past *p = w->past;

	if (need(w, 1))
		return 0;
	if (!p) {
		if (!w->proc->async || log_why(w->log) || !log_at_limit(w->log) || w->p != w->lim)
			return log_ended(w);
		p = xcalloc(1, sizeof(*p));
		find_block(w, p);
		if ((!p->m && s->where != RUN_STOP_IN_TEXT) || (p->m && break_at(w, p)) || hold(w, p)) {
			free(p);
			return w->end == WALK_CANCELLED ? 1 : log_ended(w);
		}
	}
	if (w->m != p->m || count - p->m->block != p->block || !p->logs)
		return 0;
	if (p->again && same(w, w->r, p->start_mask))
		return found(w); /* its logs are before lp_pos: it is the end of this block's last turn */
	log_past(w->log, &w->lim);
	return 0;
}

/* At the breakpoint; its own op is next if this returns 0. */
int stop_break(struct walker *w)
{
	return w->past->logs || matches(w) ? found(w) : 0;
}

uint16_t stop_handler(const struct walker *w)
{
	return w->past->h;
}

/* Behind lp_pos a mark or a value would be next. A program stopped in opaque code went there. */
void stop_ended(struct walker *w)
{
	unsigned h = w->pc ? w->pc->h : 0;

	w->past->found = !w->past->m && (h == H_CALLX || h == H_JMPX || h == H_JMPX_LINK || h == H_HALT ||
					 h == H_RET || h == H_RETX || h == H_IJMP);
	w->end = WALK_STOP;
}

/* the block that was stopped in has not run to its end */
static void cut_block(struct walker *w, const struct past *p)
{
	const struct map_block *b = &p->m->map->block[p->block];

	w->st->instructions -= b->ninsn - p->before;
	for (struct ptrace_rec *r = w->out; w->o->blocks && r-- > w->buf + REC_KEEP;)
		if (r->kind == WALK_BLOCK) {
			r->size = p->before;
			break;
		}
}

/* The walk is over: keeps what was held back, or not. */
void stop_finish(struct walker *w)
{
	struct past *p = w->past;

	if (!p)
		return;
	w->past = NULL;
	if (p->m)
		p->m->code[p->at].h = p->h;
	if (p->found) {
		/* not where it was found at the start of another turn */
		if (p->m && w->pc == p->m->code + p->at)
			cut_block(w, p);
	} else if (w->end != WALK_CANCELLED) {
		w->end = WALK_STOP;
		w->out = w->buf + REC_KEEP;
		w->pc = NULL;
		for (uint32_t i = 0; i < w->ninst; i++)
			memcpy(w->inst[i]->block, p->counts[i],
			       (w->inst[i]->map->nblock + 1) * sizeof(*w->inst[i]->block));
	}
	w->res->arg = w->proc->stop_at.reason;
	for (uint32_t i = 0; i < w->ninst; i++)
		free(p->counts[i]);
	free(p->counts);
	free(p);
}
