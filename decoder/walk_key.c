/* SPDX-License-Identifier: MIT
 *
 * walk_key.c - a walk that has lost its way begins anew at a keyframe
 *
 *   recording   … ✗ lost ░░░░░░░ counter 7 … what follows can be decoded
 *   log         … ✗ ░░░░░░░░░░░░ keyframe 7 (struct run_key, before a chunk) …
 *
 * Both go on behind equal counters, never by position. Of what the walk knew nothing is left: registers come from the
 * keyframe, the stack's bytes and so the callers' frames, too; other memory is not known, and a value that would be
 * read from there is one more loss. Handlers under way are forgotten, and their return is one more loss.
 *
 * A keyframe is written in the chunk-full hook, and goes on in the copy behind a space check:
 *
 *   in a stub           before its mark and its logs
 *   at a block's start  before its logs
 *   in a long block     before an instruction
 */
#include <stdlib.h>
#include <string.h>
#include "sem_eval.h"
#include "walk.h"

#define BLOCK_ASKS (1u << 17) /* two for each instruction that a block can have (map_block.ninsn) */

/* where control is at a keyframe: *at, or at.mark; false if that cannot be a beginning */
static bool find_place(struct walker *w, const struct run_key *k, struct place *at)
{
	const struct map_leader *l;
	const struct map_block *b;
	struct map_xlat x;
	struct live live;
	uint32_t vaddr;

	*at = (struct place){.m = mod_at(w, k->rip)};
	if (!at->m || k->rip - at->m->bias > UINT32_MAX || k->copy - at->m->copy > UINT32_MAX)
		return false;
	vaddr = (uint32_t)(k->rip - at->m->bias);
	if (!map_xlat_at(at->m->map, (uint32_t)(k->copy - at->m->copy), &x) || x.vaddr != vaddr ||
	    !seek_insn(at->m->map, vaddr, &at->block, &at->insn))
		return false;
	b = &at->m->map->block[at->block];
	l = map_leader(at->m->map, vaddr);
	if (x.flags & MAP_X_STUB) {
		if (!l)
			return false;
		at->mark =
			l->flags >> 8 < at->m->map->nsite && at->m->map->site[l->flags >> 8].vaddr == vaddr;
		at->op = l->ops;
	} else if (at->insn) {
		at->op = map_insn_op(at->m->map, b, at->insn);
		at->begun = true;
	} else {
		at->op = b->ops;
		if (l && (l->flags & MAP_LEADER_RETURN) && l->ops == b->ops)
			return false; /* its first logs are the stub's */
	}
	if (at->mark)
		return true;
	walk_live(at->m->map, at->op, &live);
	return !live.lanes;
}

/* the walker as it would be at the start of a thread that begins at keyframe k */
static int begin(struct walker *w, const struct run_key *k)
{
	seek_off(w);
	sig_forget(w);
	w->nframe = w->base = 0;
	free(w->limbo);
	w->limbo = NULL;
	w->nlimbo = w->limbocap = 0;
	w->left = w->rep_done = 0;
	w->debt = 0;
	w->execing = w->at_mark = w->came.on = false;
	w->expect = k->expect;
	if (k->modules > w->proc->nmod)
		return lost(w, "a keyframe rests on %u module records, modules.bin has %u (damaged or cut)",
			    k->modules, w->proc->nmod);
	for (uint32_t i = 0; i < k->modules; i++)
		if (mod_apply(w, i))
			return 1;
	if (w->start_mem)
		mem_free(w->mem);
	else
		w->start_mem = w->mem; /* what is read-only in it stays right */
	w->mem = mem_new(NULL, w->o->memory);
	if (!mem_write(w->mem, k->stack, (const uint8_t *)(k + 1), k->stack_size))
		return lost(w, "shadow memory reached its bound (raise --memory)");
	memcpy(w->r, k->gpr, sizeof(k->gpr));
	w->r[SEM_FSBASE] = k->fsbase;
	w->r[SEM_FC] = k->rflags & 1;
	w->r[SEM_FR] = k->rflags & 0x8d4; /* OF SF ZF AF PF */
	w->r[SEM_DF] = k->rflags >> 10 & 1;
	if (walk_callers(w, k->rip + 1, k->gpr))
		return 1;
	w->start_top = w->nframe ? w->frame[0].slot : 0;
	return walk_time(w, k->tsc);
}

static int go_on(struct walker *w, const struct run_key *k)
{
	struct place at;

	if (begin(w, k))
		return 1;
	if (!find_place(w, k, &at))
		return lost(w, "keyframe %u is at a place where no walk can begin", k->counter);
	w->m = at.m;
	w->pc = at.m->code + at.op;
	seek_next(w);
	if (at.mark)
		return walk_mark(w);
	return at.begun ? sig_enter(w, &at, k->rip) : 0;
}

/* The first place that is asked about on the way from op on, where it is the only one; else 0 */
static uint64_t first_asked(const struct inst *m, uint32_t op)
{
	const struct sem_op *o;

	for (uint32_t n = 0; n < m->map->nop && op < m->map->nop; n++) {
		o = &m->map->op[op];
		switch (o->op) {
		case SEM_FLOW:
		case SEM_JCC_FLOW:
		case SEM_PTW:
		case SEM_PTWSX:
			return m->copy + SEM_FLOW_AT(o->a, o->b);
		case SEM_JMP:
			op = SEM_TAKEN(o->imm);
			continue;
		}
		if (o->op > SEM_BLOCK && o->op != SEM_RMARK)
			return 0; /* a call, a return, a mark: who knows */
		op += 1 + sem_has_slot(o->op);
	}
	return 0;
}

/* Is k behind what the walk has decoded, up to where it asked and got no answer? What the recording lost may have been the
 * answer only, and the keyframe be before the question: at stream position `pos` the walk may have passed it, as nothing
 * tells it of keyframes. What came next then was that question. */
static bool is_ahead(struct walker *w, const struct run_key *k, uint64_t at, uint64_t pos)
{
	struct place to;
	uint64_t ip;

	if (at > pos)
		return true;
	if (!w->asked || !find_place(w, k, &to))
		return false;
	ip = first_asked(to.m, to.op);
	return ip && ip != w->asked;
}

/* the next keyframe that the log and the recording both have; NULL if there is none */
static const struct run_key *next_key(struct walker *w)
{
	uint64_t pos = log_pos(w->log, w->p), at;
	const struct run_key *k = NULL;
	uint32_t counter;

	while (!w->flow->ops->resync(w->flow, &counter)) {
		if (!k || k->counter < counter)
			k = log_resync(w->log, counter, &w->p, &w->lim);
		if (!k)
			return NULL;
		log_key(w->log, &at);
		if (k->counter == counter && is_ahead(w, k, at, pos))
			return k;
	}
	return NULL;
}

/* From stream position pos, at time tsc (0: not known), on to position `to` at to_tsc nothing is decoded. */
static void left_out(struct walker *w, uint64_t pos, uint64_t tsc, uint64_t to, uint64_t to_tsc)
{
	w->res->lost_bytes += to > pos ? to - pos : 0;
	w->res->lost_tsc += tsc && to_tsc > tsc ? to_tsc - tsc : 0;
}

/* The rest of the thread is lost. */
static void rest(struct walker *w, uint64_t pos, uint64_t tsc)
{
	uint64_t end, at;

	if (w->flow == flow_none() || log_why(w->log))
		return;
	w->st->log_bytes_used += pos;
	w->p = w->lim = NULL;
	at = log_rest(w->log, &end);
	left_out(w, pos, tsc, at, end);
}

/* walk_from_key - after a loss: true if the walk goes on, with what was lost counted */
bool walk_from_key(struct walker *w)
{
	while (w->end == WALK_LOST) {
		uint64_t from = log_pos(w->log, w->p), tsc = w->flow->tsc;
		const struct run_key *k = next_key(w);

		if (!k) {
			rest(w, from, tsc);
			return false;
		}
		if (!w->res->losses++)
			memcpy(w->res->loss, w->res->why, sizeof(w->res->loss));
		w->asked = 0;
		left_out(w, from, tsc, log_pos(w->log, w->p), k->tsc);
		w->key = k->counter;
		w->key_asked = w->flow->nasked;
		w->ask = w->flow;
		w->end = 0;
		if (!go_on(w, k))
			return true;
	}
	return false;
}

/* A chunk with a keyframe begins. The recording cannot have come further. It may be behind, since it is only followed to the
 * last place that was asked about, and log is read before the block that it belongs to asks: by what a block can
 * ask, however many keyframes that is. */
void walk_key_check(struct walker *w)
{
	uint64_t pos;
	const struct run_key *k = log_key(w->log, &pos);

	if (!k || k->counter == w->key)
		return;
	if (w->flow->counter >= w->key)
		w->key_asked = w->flow->nasked;
	w->key = k->counter;
	if (w->flow->counter > w->key || w->flow->nasked - w->key_asked > BLOCK_ASKS)
		w->ask = flow_astray();
}
