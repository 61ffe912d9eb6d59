/* SPDX-License-Identifier: MIT
 *
 * walk_seek.c - where in the program a signal came
 *
 *   stream   … read as ever … ─▶ │ bytes that instruction rip has logged │ pause: the signal's event
 *   program  … ─▶ blocks that log nothing ─▶ rip, about to run          (run_signal.ahead, U)
 *
 * From the time the bytes before a pause are at hand there is a breakpoint at the first op of instruction
 * rip. It is the place when all but U bytes have been read. Where rip can come up again without a byte
 * read in between (a loop whose exit is computed), it is the time when the general registers that matter from
 * there on (walk_live.c; on the way that control takes: walk_again.c) are those of the signal, or the time that the signal says
 * (run_signal.visit). If they are the same another time, too, nobody can know; then, as always when the place is not found, the walk is lost.
 *
 * Other places, where the stream gives out:
 *
 *   a mark is due                        opaque code was interrupted, or a stub before its mark
 *   logs behind an instruction           the one before rip: it has run, they are not written yet
 *   logs and marks at a block's start    rip is the block's first instruction
 *                                        (the same two where a value is not in the log but recorded: walk.flow)
 *   the byte of a loop* or jrcxz         it has jumped, or not
 *
 * Where control flow is not in the log but recorded (walk.flow) the place may come up again and again with the same
 * registers. It is the time when the recording shows that the thread was interrupted where the signal says it was.
 *
 * A string instruction is interrupted between two of its elements: rip is its own, rcx what is left to do.
 */
#include <string.h>
#include "sem_eval.h"
#include "walk.h"

/* blocks begun since the last byte was read: a loop of so many turns without one is taken for endless */
#define IDLE_MAX (1ull << 33)

struct event {
	uint32_t mark;
	uint64_t arg;
	struct run_signal s;
} __attribute__((packed));
_Static_assert(sizeof(struct event) == SIG_EVENT, "mark, argument, structure");

bool walk_more(struct walker *w, size_t n)
{
	bool ok = true;

	while (ok && w->debt) { /* no byte can be read before it is paid: p is at the end */
		uint32_t k;

		ok = log_need(w->log, &w->p, &w->lim, 1);
		k = w->debt < (size_t)(w->lim - w->p) ? w->debt : (uint32_t)(w->lim - w->p);
		w->p += k;
		w->debt -= k;
	}
	ok = ok && log_need(w->log, &w->p, &w->lim, n);
	/* what comes behind the last of them is known before it is read: a signal, before anything else was logged? */
	if (ok && n < LOG_MIN)
		log_need(w->log, &w->p, &w->lim, n + 1);
	walk_key_check(w);
	seek_next(w);
	return ok;
}

/* instruction that begins at vaddr; false if there is none */
bool seek_insn(struct map *m, uint32_t vaddr, uint32_t *block, uint32_t *insn)
{
	const struct map_block *b = map_block_at(m, vaddr);
	uint32_t at;

	if (!b)
		return false;
	at = b->vaddr;
	for (*insn = 0; *insn < b->ninsn && at < vaddr; ++*insn)
		at += m->insnlen[b->insn + *insn];
	*block = b - m->block;
	return at == vaddr && *insn < b->ninsn;
}

static uint32_t logged(const struct map *m, uint32_t op)
{
	const struct sem_op *o = &m->op[op];
	struct sem_vec v;

	switch (o->op) {
	case SEM_LOG:
	case SEM_LOGSX:
		return o->w;
	case SEM_VCHK:
	case SEM_TSC:
		return 8;
	case SEM_RECVEC:
		memcpy(&v, o + 1, sizeof(v));
		return (v.mask == SEM_MASK_K	 ? v.mask_bytes
			: v.mask == SEM_MASK_VEC ? v.n * v.mask_bytes
						 : 0) +
		       v.n * v.idx_bytes;
	default:
		return 0;
	}
}

/* A call waits in the original text, with all that it logs written. */
static bool in_text(struct seek *k, const struct map_block *b)
{
	const struct map *m = k->m->map;
	uint32_t end = map_block_end(m, b->ops);

	if (k->insn + 1 != b->ninsn || (m->op[end].op != SEM_CALL && m->op[end].op != SEM_CALLX))
		return false;
	for (uint32_t op = k->op; op < end; op += 1 + sem_has_slot(m->op[op].op))
		k->ahead += logged(m, op);
	return true;
}

static uint32_t find_rep(const struct map *m, const struct map_block *b, uint32_t insn)
{
	uint32_t end = map_insn_op(m, b, insn + 1);

	for (uint32_t op = map_insn_op(m, b, insn); op < end; op += 1 + sem_has_slot(m->op[op].op))
		if (m->op[op].op == SEM_RECREP)
			return op;
	return NONE32;
}

static void arm(struct walker *w)
{
	struct seek *k = &w->seek;
	struct inst *m = mod_at(w, k->s.rip);
	const struct map_block *b;

	k->ahead = k->s.ahead;
	if (!m || !seek_insn(m->map, (uint32_t)(k->s.rip - m->bias), &k->block, &k->insn))
		return;
	b = &m->map->block[k->block];
	k->m = m;
	k->op = map_insn_op(m->map, b, k->insn);
	if ((!m->code[b->ops].h && xlat_run(w, m, &m->code[b->ops])) ||
	    (k->s.where == RUN_STOP_IN_TEXT && !in_text(k, b))) {
		k->m = NULL;
		return;
	}
	k->rep = find_rep(m->map, b, k->insn);
	walk_live(m->map, k->op, &k->live);
	k->h = m->code[k->op].h;
	m->code[k->op].h = H_BREAK;
}

static void disarm(struct walker *w)
{
	struct seek *k = &w->seek;

	if (k->m)
		k->m->code[k->op].h = k->h;
	k->m = NULL;
}

void seek_off(struct walker *w)
{
	disarm(w);
	w->seek.on = false;
}

void seek_rearm(struct walker *w)
{
	if (!w->seek.on)
		return;
	disarm(w);
	if (!w->seek.bad)
		arm(w);
}

/* after bytes were read from the file: the next pause */
void seek_next(struct walker *w)
{
	struct seek *k = &w->seek;
	struct log_pause p;
	struct event e;

	if (!log_pause(w->log, &p)) {
		seek_off(w);
		return;
	}
	if (k->on && k->at.pos == p.pos)
		return;
	seek_off(w);
	*k = (struct seek){.on = true, .at = p};
	if (p.stop) {
		const struct run_stop_state *s = &w->proc->stop_at;

		k->s = (struct run_signal){.where = s->where, .ahead = s->ahead, .rip = s->rip, .ip = s->ip};
		memcpy(k->s.gpr, s->gpr, sizeof(k->s.gpr));
	} else if (log_peek(w->log, p.pos, &e, sizeof(e))) {
		k->s = e.s;
		k->bad = e.mark != (RUN_MARK_EVENT | RUN_EV_SIGNAL << RUN_MARK_ID_SHIFT) ||
			 e.arg != sizeof(e.s) || e.s.where > RUN_STOP_IN_TEXT || e.s.ahead > LOG_MIN ||
			 e.s.nstack > sizeof(e.s.stack);
	} else {
		k->bad = true;
	}
	if (!k->bad)
		arm(w);
}

/* ---- at the breakpoint ------------------------------------------------------------------------ */

/* how many elements a string instruction has done, from the registers; 0 if that does not explain them */
static uint64_t part_done(const struct walker *w)
{
	const struct seek *k = &w->seek;
	const struct sem_op *o = &k->m->map->op[k->rep];
	uint64_t r[SEM_NGPR], n = w->r[SEM_RCX] - k->s.gpr[SEM_RCX], step;

	memcpy(r, w->r, sizeof(r));
	step = n * (w->r[SEM_DF] ? 0 - (uint64_t)o->w : o->w);
	r[SEM_RCX] -= n;
	if (o->a != SEM_NONE)
		r[SEM_RSI] += step;
	if (o->b != SEM_NONE)
		r[SEM_RDI] += step;
	return n <= w->r[SEM_RCX] && live_same(&k->live, r, k->s.gpr) ? n : 0;
}

/* Where branches are not in the log, the recording says whether it was now. */
static bool by_flow(const struct walker *w)
{
	const struct seek *k = &w->seek;

	return (k->m->map->head->flags & MAP_F_PT) && k->s.where == RUN_STOP_IN_COPY && k->s.ip;
}

/* the recording says that it was now */
static bool stops(struct walker *w)
{
	return w->flow->ops->stops(w->flow, w->seek.s.ip,
				   w->back == w->pc && w->back_asked == w->flow->nasked);
}

int seek_break(struct walker *w, bool *taken)
{
	struct seek *k = &w->seek;
	struct place at = {k->m, k->block, k->insn, k->op, true, false};
	uint64_t done = 0;
	enum again again;
	uint32_t later;

	*taken = false;
	if ((size_t)(w->lim - w->p) != k->ahead || ++k->visit < k->s.visit)
		return 0;
	if (!live_same(&k->live, w->r, k->s.gpr)) {
		done = k->rep == NONE32 ? 0 : part_done(w);
		if (!done)
			return 0;
	}
	if (by_flow(w) && !stops(w))
		return 0;
	if (!done && !k->ahead && !k->s.visit) {
		if (k->nots) {
			k->nots--;
			return 0;
		}
		again = walk_again(w, &k->live, k->s.gpr, &later);
		if (again == AGAIN_LATER && !by_flow(w)) {
			k->nots = later - 1;
			return 0;
		}
		if (again == AGAIN_RECORDS)
			return lost(w, "a signal came in a loop that logs nothing, and each of its turns "
				       "looks the same");
	}
	if (!by_flow(w))
		walk_flow_signal(w, k->s.ip);
	*taken = true;
	if (done > w->rep_done && walk_rep_part(w, k->rep, done))
		return 1;
	return sig_take(w, &at) || walk_mark(w);
}

/* ---- where the stream gives out ---------------------------------------------------------------- */

static int no_place(struct walker *w)
{
	char buf[200];

	return lost(w, "a signal came at %s, the stream pauses elsewhere",
		    place(w, w->seek.s.rip, buf, sizeof(buf)));
}

/* the pause is none, or nothing can be told of it */
static int bad_pause(struct walker *w)
{
	log_pass(w->log, &w->lim);
	seek_off(w);
	if (!need(w, SIG_EVENT) && !log_clean(w->log)) /* killed when it was about to say */
		return log_ended(w);
	return lost(w, "a cut without its signal");
}

/* instruction of block b that op belongs to */
static uint32_t insn_of(const struct map *m, const struct map_block *b, uint32_t op)
{
	uint32_t at = map_insn_op(m, b, 0), i = 0;

	while (i + 1 < b->ninsn && op >= at + m->insnops[b->insn + i])
		at += m->insnops[b->insn + i++];
	return i;
}

/* logs, a mark and a jump: what a stub writes before its block. Else pc is in a block. */
static bool in_stub(const struct map *m, uint32_t op)
{
	while (map_stub_op(&m->op[op]))
		op++;
	for (uint32_t i = op; i--;) /* a block's own logs may end at its jump, too */
		if (m->op[i].op == SEM_BLOCK)
			return map_block_end(m, i) < op;
	return true;
}

/* Fills *at if rip fits where pc is. 2: a value that the registers of the signal give: go on. */
static int fits(struct walker *w, struct place *at)
{
	const struct map *m = w->m->map;
	uint32_t op = w->pc - w->m->code, rip = (uint32_t)(w->seek.s.rip - w->m->bias), code = m->op[op].op;
	const struct map_block *b;
	uint32_t next, i;

	*at = (struct place){.m = w->m, .op = op};
	if (w->seek.s.rip - w->m->bias > UINT32_MAX)
		return 1;
	if (code == SEM_BLOCK) /* the return mark before it: xlat.c */
		return m->block[m->op[op].imm].vaddr != rip;
	if (map_stub_op(&m->op[op]) && in_stub(m, op)) {
		i = map_block_of(m, op);
		return i == NONE32 || m->block[i].vaddr != rip;
	}
	b = block_here(w);
	if (!b)
		return 1;
	at->block = b - m->block;
	at->begun = true;
	if (code == SEM_JCC_LOG) {
		uint32_t t = map_block_of(m, SEM_TAKEN(m->op[op].imm)),
			 n = map_block_of(m, SEM_NEXT(m->op[op].imm));

		at->insn = b->ninsn;
		return (t == NONE32 || m->block[t].vaddr != rip) && (n == NONE32 || m->block[n].vaddr != rip);
	}
	if (!map_value_op(&m->op[op]) && code != SEM_TSC)
		return 1;
	if (op < map_insn_op(m, b, 0))
		return b->vaddr != rip;
	at->insn = insn_of(m, b, op) + 1;
	next = b->vaddr;
	for (i = 0; i < at->insn; i++)
		next += m->insnlen[b->insn + i];
	if (next != rip)
		return 1;
	i = find_rep(m, b, at->insn - 1);
	return i != NONE32 && i > op ? 2 : 0;
}

static bool at_time(const struct walker *w)
{
	return w->m->map->op[w->pc - w->m->code].op == SEM_TSC;
}

/* A value is due that is not in the log: was the thread interrupted before its ptwrite? Then the recording has not come to
 * it. Of what stands in an instruction's own copy before it, the breakpoint knows. */
int seek_value(struct walker *w, bool *taken)
{
	struct seek *k = &w->seek;
	struct place at;

	*taken = false;
	if (k->bad || k->s.where != RUN_STOP_IN_COPY || !k->s.ip || k->ahead || w->p != w->lim || !stops(w))
		return 0;
	if (fits(w, &at))
		return no_place(w);
	*taken = true;
	return sig_take(w, &at) || walk_mark(w);
}

/* pc needs bytes, and there are none: 0 to go on at pc */
int seek_dry(struct walker *w)
{
	struct seek *k = &w->seek;
	struct place at;
	int f;

	if (!k->on)
		return log_ended(w);
	if (k->bad)
		return bad_pause(w);
	if (w->pc->h == H_JMPX_LINK || (w->m->count && w->m->count[w->pc - w->m->code].h == H_JMPX_LINK)) {
		if (w->m->count)
			w->m->count[w->pc - w->m->code].n--; /* has read nothing */
		walk_leave(w); /* its mark would be here: the jump led elsewhere */
		return walk_mark(w);
	}
	/* the time is stored in halves */
	f = k->s.where == RUN_STOP_IN_COPY && !k->ahead && (w->p == w->lim || at_time(w)) ? fits(w, &at) : 1;
	if (f == 1)
		return no_place(w);
	if (f == 2) { /* rep cmps, scas: rcx behind it, which the copy had not stored yet */
		w->r[w->pc->dst] = k->s.gpr[SEM_RCX];
		w->debt += 8;
		w->pc++;
		return 0;
	}
	walk_flow_signal(w, k->s.ip);
	return sig_take(w, &at) || walk_mark(w);
}

/* a mark is due, and there is none: 0 to read the next one */
int seek_dry_mark(struct walker *w)
{
	struct seek *k = &w->seek;
	struct place at = {.mark = true};

	if (!k->on)
		return log_ended(w);
	if (k->bad)
		return bad_pause(w);
	if (k->m && (k->s.where == RUN_STOP_IN_TEXT || k->insn))
		return no_place(w);
	walk_flow_signal(w, k->s.ip);
	return sig_take(w, &at);
}

/* The log just ends: who recorded it was killed. Whatever was executed up to the next instruction that a recording of
 * control flow shows is known all the same, as long as it takes nothing from the log. */
static bool goes_on(struct walker *w)
{
	struct seek *k = &w->seek;

	if (w->back_asked != w->flow->nasked)
		k->idle = 0;
	w->back_asked = w->flow->nasked;
	return k->idle++ < 1u << 20 && w->flow->ops->more(w->flow);
}

/* A block begins and no byte is left; what runs after the last one of a log that just ends is not known, unless it is
 * recorded. */
int seek_block(struct walker *w)
{
	struct seek *k = &w->seek;
	uint64_t max = w->o->idle ? w->o->idle : IDLE_MAX;

	if (need(w, 1))
		return 0;
	if (!k->on)
		return goes_on(w) ? 0 : log_ended(w);
	if (k->bad)
		return bad_pause(w);
	return k->idle++ < max ? 0 : no_place(w);
}
