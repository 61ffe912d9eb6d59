/* SPDX-License-Identifier: MIT
 *
 * walk_sig.c - handlers of signals: what they interrupt is put aside, and goes on when they return
 *
 *   interrupted code ─▶ SIGNAL ─▶ handler … ─▶ SIGRET ─▶ the cut's bytes once more ─▶ the rest
 *                                          └─▶ RESUME ─▶ at some instruction, with new registers
 *                                          └─▶ longjmp: a RESYNC mark; what was interrupted never goes on
 *
 * What a recorded image's handlers had interrupted is handed on (walk_hand.c); the runtime has kept nothing of it, so they
 * end by RESUME.
 *
 * The frames of the interrupted code stay where they are, out of sight for the handler (walker.base), whose
 * stack may be another one. A handler that was left is noticed when control is back among them; SIGRET and RESUME
 * name theirs, and end those within it. Left for code that is not followed (a longjmp into a function that could not be
 * moved), it is noticed when the next signal's frame lies where its own was. The runtime sets tcb.expect to 0 for a handler and restores it behind.
 *
 * Memory: a handler can change what the interrupted function keeps on its stack only through a pointer to it,
 * and slots are not followed where one escapes (analyzer/sp.c). So shadow memory stays right.
 */
#include <stdlib.h>
#include <string.h>
#include "walk.h"

#define FRAME_SIZE 440 /* of the kernel's struct rt_sigframe, without the processor's state above it */
#define NSIG_MAX 4096 /* put aside at once; handlers that were left unnoticed among them */

struct aside {
	uint64_t r[WALK_NREGS];
	struct run_signal s;
	struct place at;
	struct xop *pc;
	struct inst *m;
	uint64_t expect, left, rep_done;
	struct run_back came;
	bool came_on;
	bool execing;
	uint32_t base, nframe;
	uint32_t bytes, debt; /* to be skipped when it goes on */
	uint32_t nsaved;
	uint8_t saved[LOG_MIN]; /* read on from these */
	bool handed; /* from another walk: only RESUME can end it */
};

/* The block that the place is in does not go on: what it was counted for and has not done. */
static void cut_block(struct walker *w, const struct place *at, int sign)
{
	const struct map_block *b = &at->m->map->block[at->block];
	uint64_t records = count_records(at->m->map, at->op, map_block_end(at->m->map, b->ops));

	w->st->instructions += (uint64_t)(int64_t)sign * (b->ninsn - at->insn);
	at->m->block[at->block].extra += (uint64_t)(int64_t)sign * records;
}

static int block_note(struct walker *w, struct ptrace_rec r)
{
	if (!w->o->blocks)
		return 0;
	r.kind = WALK_BLOCK;
	r.tid = w->index;
	*w->out++ = r;
	return w->out >= w->outlim ? flush(w) : 0;
}

/* no more instructions of the block from here on; the rest of them */
static int block_stops(struct walker *w, uint64_t ip)
{
	return block_note(w, (struct ptrace_rec){.ip = ip});
}

static int block_goes_on(struct walker *w, const struct place *at, uint64_t ip)
{
	const struct map_block *b = &at->m->map->block[at->block];
	const uint8_t *len = at->m->map->insnlen + b->insn + at->insn;

	return block_note(w,
			  (struct ptrace_rec){.ip = ip, .addr = (uintptr_t)len, .size = b->ninsn - at->insn});
}

static void drop(struct walker *w)
{
	struct aside *a = w->aside[--w->naside];

	if (a->at.begun)
		cut_block(w, &a->at, -1);
	w->base = a->base;
	free(a);
}

/* frames of what was interrupted are gone: its handler was left */
void sig_trim(struct walker *w)
{
	while (w->naside && w->nframe < w->aside[w->naside - 1]->nframe)
		drop(w);
}

/* A signal's frame at this address: those whose frames it lies on are gone, and what came while they were there. */
static void overwritten(struct walker *w, uint64_t frame)
{
	uint32_t i = 0;

	while (i < w->naside && w->aside[i]->s.frame - frame + FRAME_SIZE - 1 > 2 * (FRAME_SIZE - 1))
		i++;
	while (w->naside > i)
		drop(w);
}

static uint64_t distance(const struct walker *w, uint32_t from, uint32_t to, uint64_t rsp)
{
	uint64_t d = UINT64_MAX;

	for (uint32_t i = from; i < to; i++)
		if (w->frame[i].slot >= rsp && w->frame[i].slot - rsp < d)
			d = w->frame[i].slot - rsp;
	return d;
}

/* Control comes back from a longjmp with this rsp: to the stack whose frames it is among. */
void sig_longjmp(struct walker *w, uint64_t rsp)
{
	sig_trim(w);
	while (w->naside) {
		const struct aside *a = w->aside[w->naside - 1];

		if (distance(w, a->nframe, w->nframe, rsp) < distance(w, 0, a->nframe, rsp))
			break;
		drop(w);
	}
}

void sig_forget(struct walker *w)
{
	while (w->naside)
		drop(w);
}

void sig_finish(struct walker *w)
{
	seek_off(w);
	sig_forget(w);
	free(w->aside);
}

static int stopped(struct walker *w, const struct place *at)
{
	if (at->begun) {
		w->st->instructions -= at->m->map->block[at->block].ninsn - at->insn;
		if (block_stops(w, w->seek.s.rip))
			return 1;
	}
	w->end = WALK_STOP;
	w->res->arg = w->proc->stop_at.reason;
	return 1;
}

static int push(struct walker *w, const struct place *at, const struct run_signal *s, uint32_t bytes,
		const uint8_t *saved, size_t nsaved)
{
	struct aside *a;

	sig_trim(w);
	overwritten(w, s->frame);
	if (w->naside == NSIG_MAX)
		return lost(w, "more than %u signals within each other", NSIG_MAX);
	a = xcalloc(1, sizeof(*a));
	memcpy(a->r, w->r, sizeof(a->r));
	a->s = *s;
	a->at = *at;
	a->pc = w->pc;
	a->m = w->m;
	a->expect = w->expect;
	a->left = w->left;
	a->came = w->came.r;
	a->came_on = w->came.on;
	a->execing = w->execing;
	a->rep_done = w->rep_done;
	a->base = w->base;
	a->nframe = w->nframe;
	a->bytes = bytes;
	a->debt = w->debt;
	a->nsaved = (uint32_t)nsaved;
	memcpy(a->saved, saved, nsaved);
	w->aside = xrealloc(w->aside, w->naside + 1, sizeof(*w->aside));
	w->aside[w->naside++] = a;
	w->base = w->nframe;
	w->expect = w->left = w->rep_done = 0;
	w->debt = 0;
	w->execing = w->came.on = false;
	w->pc = NULL;
	return at->begun ? block_stops(w, s->rip) : 0;
}

/* At the pause's place: its signal's event, then the handler's first mark. */
int sig_take(struct walker *w, const struct place *at)
{
	struct run_signal s = w->seek.s;
	const uint8_t *from = w->p;
	size_t n = w->lim - w->p;
	uint32_t bytes = w->seek.at.bytes;

	if (w->seek.at.stop)
		return stopped(w, at);
	if (n > LOG_MIN)
		return lost(w, "%zu bytes of the log are left where a signal came", n);
	if (push(w, at, &s, bytes, from, n))
		return 1;
	w->p = w->lim;
	log_pass(w->log, &w->lim);
	seek_off(w);
	if (!need(w, SIG_EVENT))
		return log_ended(w);
	w->p += SIG_EVENT;
	seek_next(w);
	return 0;
}

/* RUN_EV_SIGNAL in place of a system call's mark, its argument read */
int sig_at_call(struct walker *w)
{
	const struct map_block *b = block_here(w);
	struct place at = {.m = w->m, .op = w->pc - w->m->code, .begun = b != NULL};
	struct run_signal s;

	if (!need(w, sizeof(s)))
		return log_ended(w);
	memcpy(&s, w->p, sizeof(s));
	if (s.where != RUN_STOP_IN_HOOK)
		return lost(w, "a signal without its cut");
	w->p += sizeof(s);
	walk_flow_signal(w, s.ip);
	if (b) {
		at.block = b - w->m->map->block;
		at.insn = b->ninsn ? b->ninsn - 1u : 0;
	}
	return push(w, &at, &s, 0, w->p, 0);
}

/* n bytes that stand in the stream once more; what is not there yet is w->debt */
static void skip(struct walker *w, uint32_t n)
{
	while (n) {
		uint32_t k = n < LOG_MIN ? n : LOG_MIN;

		if (!need(w, k))
			k = (uint32_t)(w->lim - w->p);
		if (!k)
			break;
		w->p += k;
		n -= k;
	}
	w->debt = n;
}

static struct aside *find(struct walker *w, uint64_t frame)
{
	uint32_t i = w->naside;

	sig_trim(w);
	while (i && w->aside[i - 1]->s.frame != frame)
		i--;
	while (i && w->naside > i)
		drop(w);
	return i ? w->aside[i - 1] : NULL;
}

/* takes the newest off the pile: the walker is as it was there */
static void restore(struct walker *w)
{
	struct aside *a = w->aside[--w->naside];

	memcpy(w->r, a->r, sizeof(w->r));
	w->pc = a->pc;
	w->m = a->m;
	w->expect = a->expect;
	w->left = a->left;
	w->execing = a->execing;
	w->rep_done = a->rep_done;
	frame_cut(w, a->nframe);
	w->base = a->base;
	w->came.r = a->came;
	w->came.on = a->came_on;
	w->at_mark = a->at.mark || a->came_on;
	w->back = w->pc;
	w->back_asked = w->flow->nasked;
}

/* RUN_EV_SIGRET */
int sig_return(struct walker *w, uint64_t frame)
{
	struct aside *a = find(w, frame);
	int k = 0;

	if (!a || a->handed)
		return lost(w, "the end of a signal handler that is not known (frame %#llx)",
			    (unsigned long long)frame);
	restore(w);
	skip(w, a->bytes + a->debt);
	if (w->debt > a->debt)
		k = log_why(w->log) || !log_clean(w->log) /* damaged; killed */
			    ? log_ended(w)
			    : lost(w, "what a signal interrupted is not in the stream once more");
	else if (a->nsaved)
		log_unread(w->log, &w->p, a->saved, a->nsaved);
	if (!k && a->at.begun)
		k = block_goes_on(w, &a->at, a->s.rip);
	free(a);
	return k;
}

/* The walk ends where a signal came, which the image that goes on has a handler for: it is there, with the registers
 * that the signal found. false: it ends elsewhere. */
bool sig_undo(struct walker *w, uint64_t rip)
{
	struct aside *a = w->naside ? w->aside[w->naside - 1] : NULL;

	if (!a || w->pc || a->handed || a->s.rip != rip || a->nframe != w->nframe)
		return false;
	restore(w);
	w->came.on = false;
	w->pc = NULL; /* nothing goes on here: what of its block has run is counted now */
	memcpy(w->r, a->s.gpr, sizeof(a->s.gpr));
	if (a->at.begun)
		cut_block(w, &a->at, -1);
	free(a);
	return true;
}

struct aside **sig_give(const struct walker *w)
{
	struct aside **to = xcalloc(w->naside, sizeof(*to));

	for (uint32_t i = 0; i < w->naside; i++) {
		struct aside *a = xcalloc(1, sizeof(*a)), *from = w->aside[i];

		memcpy(a->r, from->r, sizeof(a->r));
		a->s = from->s;
		if (!from->at.begun && !from->handed)
			a->s.rip = 0; /* more is to be read there than RESUME tells */
		a->base = from->base;
		a->nframe = from->nframe;
		a->handed = true;
		to[i] = a;
	}
	return to;
}

void sig_handed(struct walker *w, struct aside **aside, uint32_t n, uint32_t base)
{
	free(w->aside);
	w->aside = aside;
	w->naside = n;
	w->base = base;
}

static void set_registers(struct walker *w, const struct run_resume *r)
{
	memcpy(w->r, r->gpr, sizeof(r->gpr));
	w->r[SEM_FC] = r->rflags & 1;
	w->r[SEM_FR] = r->rflags & 0x8d4; /* OF SF ZF AF PF */
	w->r[SEM_DF] = r->rflags >> 10 & 1;
}

static int translated(struct walker *w, const struct place *at)
{
	return !w->pc->h && xlat_run(w, w->m, at->m->code + at->m->map->block[at->block].ops);
}

int sig_enter(struct walker *w, const struct place *at, uint64_t ip)
{
	if (translated(w, at))
		return 1;
	cut_block(w, at, 1);
	return block_goes_on(w, at, ip);
}

/* RUN_EV_RESUME, its argument read: so many bytes */
int sig_resume(struct walker *w, uint64_t size)
{
	struct place at = {.begun = true};
	bool whole = w->whole, handed = w->handed, told = handed;
	struct run_resume r;
	struct aside *a;
	struct live live;
	uint64_t was = 0;
	char buf[200];

	w->whole = w->handed = false;
	if (!need(w, sizeof(r)))
		return log_ended(w);
	memcpy(&r, w->p, sizeof(r));
	if (size < sizeof(r) || size - sizeof(r) != r.stack_size || r.stack + r.stack_size < r.stack)
		return lost(w, "an event with %llu bytes", (unsigned long long)size);
	w->p += sizeof(r);
	a = r.frame ? find(w, r.frame) : NULL;
	if (a) {
		restore(w);
		was = a->at.begun || a->handed ? a->s.rip : 0;
		told = a->handed && a->s.rip &&
		       a->s.gpr[SEM_RSP] == r.gpr[SEM_RSP]; /* rip 0: its mark was due */
		if (a->at.begun)
			cut_block(w, &a->at, -1);
		free(a);
	} else if (w->left) {
		walk_place_opaque(w, w->left);
	}
	w->left = w->rep_done = 0;
	w->debt = 0;
	w->came.on = false;
	if (!handed)
		frame_drop(w, r.gpr[SEM_RSP]);
	if (r.stack_size && walk_stack(w, r.stack, r.stack_size))
		return 1;
	if (r.stack_size && !told && walk_callers(w, r.rip + 1, r.gpr))
		return 1;
	set_registers(w, &r);
	at.m = mod_at(w, r.rip);
	w->at_mark = !at.m || !seek_insn(at.m->map, (uint32_t)(r.rip - at.m->bias), &at.block, &at.insn);
	if (w->at_mark)
		return 0;
	at.op = map_insn_op(at.m->map, &at.m->map->block[at.block], at.insn);
	walk_live(at.m->map, at.op, &live);
	if ((live.lanes || (live.memory && !r.stack_size && !whole)) && !handed && r.rip != was)
		return lost(w, "control went on at %s, where more than the general registers matters",
			    place(w, r.rip, buf, sizeof(buf)));
	w->m = at.m;
	w->pc = at.m->code + at.op;
	if (handed && w->counted && at.m->map->op[at.op].op == SEM_SYSCALL)
		return translated(w, &at); /* the image before has come to it, and counted it */
	return sig_enter(w, &at, r.rip);
}
