/* SPDX-License-Identifier: MIT
 *
 * flow_pt.c - control flow from a thread's Intel PT packets
 *
 *   pt-TID.bin ─▶ ptd: blocks, events, losses ─▶ pass: one at a time ─▶ asked-for instructions, with where control
 *                                                                     │ went; places where it was interrupted
 *                                                                     └ counters of keyframes
 *
 * An instruction that is asked about ends a block: a conditional or indirect jump, or a return. Where it went is
 * where the next block begins, or, if the thread was interrupted there, what the event says.
 *
 * Looking whether a signal came before the next asked-for instruction (`stops`) goes on to that one: what is found on
 * the way is kept (`ahead`), so that nothing is passed that is not meant to be.
 *
 * What a transaction executed is told when it has committed; that of one that was aborted is dropped: the log of it is undone, too, and
 * the walk never asks for it.
 *
 * What modules there are is known before the walk says so: their records are all there. All that do not replace
 * another are in the image from the beginning, so that a thread may run code that another one has loaded.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "flow.h"
#include "pt.h"

struct place { /* interrupted at ip, or before the instruction at alt was begun again; it went on elsewhere, at to */
	uint64_t ip, alt, to;
	bool call; /* by a system call */
};

struct span {
	uint64_t lo, hi;
	const struct ptmod *m; /* whose copy it is, NULL: code nobody asks about */
	bool traced; /* code of a module that has a copy */
};

enum {
	GO = 1,
	WAIT
}; /* pass: nothing to tell yet; the walk has to say more; else FLOW_OK: asked-for, FLOW_LOST, FLOW_END */

struct pt_flow {
	struct flow f;
	struct thread *t;
	struct ptcode *code;
	struct pt_image *image;
	struct ptstream s;
	struct pt_config cfg;
	uint32_t seg; /* being decoded */
	bool open; /* d is */
	struct ptd d;
	struct ptd_item it;
	bool have; /* it is not passed yet */
	bool jumped; /* end_ip's destination is not known yet */
	uint64_t end_ip; /* of the last block */
	struct span *span; /* ascending */
	uint32_t nspan, last;
	uint8_t *mapped; /* by record: it is in the image */
	bool out; /* left to the kernel at `from` */
	struct place from;
	/* found on the way to the next asked-for instruction: */
	struct {
		bool asked; /* got there */
		bool ptw; /* it is a ptwrite; next: its value */
		uint64_t ip, next;
		uint64_t tsc;
		uint32_t counter;
		int bad; /* FLOW_LOST, FLOW_END: did not */
		struct place *place;
		uint32_t nplace, cap;
	} ahead;
	struct { /* asked-for instructions within a transaction */
		struct told {
			uint64_t ip, next, tsc;
			bool ptw;
		} * v;
		uint32_t n, next, cap;
		bool on; /* it goes on; else they are to be told before anything is passed */
		bool undone; /* it was aborted, and the jump that the processor makes is still to come */
	} tx;
	bool peek; /* not answering: the walk may have more to say before it asks */
	bool unknown; /* in code that has no image, since the last block */
	uint64_t ovf; /* OVF packets before it */
	uint64_t time, before; /* of the last packets with branches, of those before: at_branch() */
	struct {
		uint64_t *
			at; /* where the log says that control came from code that was not followed, since the last answer */
		uint32_t n, next, cap;
	} told;
	uint32_t count, nbits; /* of the counter being passed: nbits branches of it */
};

/* ---- modules -------------------------------------------------------------------------------------- */

static void add_span(struct pt_flow *p, uint64_t lo, uint64_t hi, const struct ptmod *m, bool traced)
{
	uint32_t i = 0, k;

	for (k = 0; k < p->nspan; k++) /* what it lies over is gone */
		if (p->span[k].hi <= lo || p->span[k].lo >= hi)
			p->span[i++] = p->span[k];
	p->nspan = i;
	p->span = xrealloc(p->span, p->nspan + 1, sizeof(*p->span));
	for (i = p->nspan++; i && p->span[i - 1].lo > lo; i--)
		p->span[i] = p->span[i - 1];
	p->span[i] = (struct span){lo, hi, m, traced};
	p->last = 0;
}

static void map_module(struct pt_flow *p, const struct modrec *rec)
{
	const struct ptmod *m = ptcode_module(p->code, rec);

	p->mapped[rec->m.index] = 1;
	ptcode_map(p->code, p->image, m);
	for (uint32_t i = 0; i < m->nsect; i++)
		add_span(p, m->sect[i].lo, m->sect[i].hi,
			 m->asked && m->sect[i].lo == m->m.copy_base ? m : NULL, m->asked != NULL);
}

static bool clashes(const struct proc *p, uint32_t index)
{
	const struct run_module *a = &p->mod[index].m;

	for (uint32_t i = 0; i < index; i++) {
		const struct run_module *b = &p->mod[i].m;

		if (b->kind &&
		    ((b->lo < a->hi && a->lo < b->hi) || (a->copy_base && a->copy_base == b->copy_base)))
			return true;
	}
	return false;
}

static void flow_module(struct flow *f, const struct modrec *rec)
{
	struct pt_flow *p = (struct pt_flow *)f;

	if (rec->m.kind && !p->mapped[rec->m.index])
		map_module(p, rec);
}

static const struct span *span_at(struct pt_flow *p, uint64_t ip)
{
	uint32_t lo = 0, hi = p->nspan;
	const struct span *s;

	if (p->last < p->nspan) {
		s = &p->span[p->last];
		if (ip >= s->lo && ip < s->hi)
			return s;
	}
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		s = &p->span[mid];
		if (ip < s->lo) {
			hi = mid;
		} else if (ip >= s->hi) {
			lo = mid + 1;
		} else {
			p->last = mid;
			return s;
		}
	}
	return NULL;
}

static bool known(void *ctx, uint64_t ip)
{
	return span_at(ctx, ip) != NULL;
}

static bool asked(struct pt_flow *p, uint64_t ip)
{
	const struct span *s = span_at(p, ip);
	uint64_t at;

	if (!s || !s->m)
		return false;
	at = ip - s->lo;
	return s->m->asked[at / 8] >> at % 8 & 1;
}

static bool valued(struct pt_flow *p, uint64_t ip)
{
	const struct span *s = span_at(p, ip);
	uint64_t at;

	if (!s || !s->m || !s->m->valued)
		return false;
	at = ip - s->lo;
	return s->m->valued[at / 8] >> at % 8 & 1;
}

/* ---- passing what was executed ----------------------------------------------------------------------- */

static int lose(struct pt_flow *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int lose(struct pt_flow *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->f.why, sizeof(p->f.why), fmt, ap);
	va_end(ap);
	p->jumped = false;
	p->out = false;
	p->unknown = false;
	p->nbits = 0;
	p->tx.n = p->tx.next = 0;
	p->tx.on = p->tx.undone = false;
	return FLOW_LOST;
}

static int next_segment(struct pt_flow *p)
{
	struct ptrace_error e = {0};
	bool first = !p->open && !p->seg;
	uint64_t at;

	if (p->open) {
		ptd_close(&p->d);
		ptstream_drop(&p->s, p->seg++);
		p->open = false;
	}
	if (p->seg == p->s.nseg) {
		snprintf(p->f.why, sizeof(p->f.why), "the processor's trace ends here%s%s",
			 p->s.why[0] ? ": " : "", p->s.why);
		return FLOW_END;
	}
	if (ptd_open(&p->d, &p->cfg, p->s.seg[p->seg].buf, p->s.seg[p->seg].size, p->image, known, p, 0,
		     &e)) {
		snprintf(p->f.why, sizeof(p->f.why), "%.190s", e.text);
		return FLOW_END;
	}
	p->open = true;
	if (!ptpkt_psb(&p->d.pkt, PTD_HEAD, &at)) { /* its first packet may begin in one of what is missing */
		p->d.pkt.pos = PTD_HEAD + p->s.seg[p->seg].size;
		p->d.synced = false;
	}
	return first ? GO : lose(p, "packets are missing: the buffer they were written to was full");
}

/* the last block's jump went to ip. true: it was asked about */
static bool arrive(struct pt_flow *p, uint64_t ip)
{
	const struct run_pt_info *i = &p->s.info;
	uint64_t at = p->end_ip - i->counter_branch;

	p->jumped = false;
	if (i->counter == RUN_PT_BRANCHES && at < RUN_PT_COUNTER_BITS * (uint64_t)i->counter_stride) {
		uint32_t bit = (uint32_t)(at / i->counter_stride);

		if (at % i->counter_stride) /* a block may end anywhere */
			return false;
		p->nbits = bit == 0 ? 0 : p->nbits;
		if (bit != p->nbits)
			return false;
		p->count = p->count << 1 | (ip != p->end_ip + 2); /* over the nop behind the jump: 1 */
		if (++p->nbits == RUN_PT_COUNTER_BITS)
			p->ahead.counter = p->count;
		return false;
	}
	p->ahead.ip = p->end_ip;
	p->ahead.next = ip;
	p->ahead.ptw = false;
	return asked(p, p->end_ip);
}

static void left_for_good(struct pt_flow *p, uint64_t to)
{
	p->from.to = to;
	if (p->ahead.nplace == p->ahead.cap) {
		p->ahead.cap = p->ahead.cap ? 2 * p->ahead.cap : 16;
		p->ahead.place = xrealloc(p->ahead.place, p->ahead.cap, sizeof(*p->ahead.place));
	}
	p->ahead.place[p->ahead.nplace++] = p->from;
}

/* A ptwrite: of a copy, the runtime's with a keyframe's counter, or the program's own, which is nobody's question.
 * Its place tells (FUP), never its turn. */
static int pass_ptwrite(struct pt_flow *p, const struct pt_event *e)
{
	const struct run_pt_info *i = &p->s.info;
	uint64_t ip = e->variant.ptwrite.ip;

	if (p->jumped && p->end_ip != ip && arrive(p, ip))
		return FLOW_OK; /* comes once more, with the jump done */
	p->have = false;
	if (i->counter == RUN_PT_PTWRITE && (e->ip_suppressed || ip == i->counter_ptw) &&
	    e->variant.ptwrite.size == 4)
		p->ahead.counter = (uint32_t)e->variant.ptwrite.payload;
	if (e->ip_suppressed || !valued(p, ip))
		return GO;
	p->ahead.ip = ip;
	p->ahead.next = e->variant.ptwrite.payload;
	p->ahead.ptw = true;
	return FLOW_OK;
}

static void note_time(struct pt_flow *p, uint64_t tsc)
{
	if (tsc > p->time) {
		p->before = p->time;
		p->time = tsc;
	}
	if (p->before > p->ahead.tsc)
		p->ahead.tsc = p->before;
}

/* A branch waits in the processor until its packet is full, while packets that tell the time go out (SDM Vol. 3, "TNT
 * packets"). So the time in front of its packet may be later than it was executed; what the packet before had is not. */
static void at_branch(struct pt_flow *p)
{
	uint64_t tsc;

	if (pt_blk_time(p->d.blk, &tsc, NULL, NULL) >= 0)
		note_time(p, tsc);
}

/* Coming from the kernel no branch waits. */
static void at_enabled(struct pt_flow *p, const struct pt_event *e)
{
	if (!e->has_tsc)
		return;
	note_time(p, e->tsc);
	p->ahead.tsc = p->time;
}

/* A transaction begins, or ends (MODE.TSX). Nested ones are nobody's business. */
static int pass_transaction(struct pt_flow *p, const struct pt_event *e)
{
	if (e->variant.tsx.aborted) {
		p->jumped = false;
		p->tx.n = p->tx.next = 0;
		p->tx.undone = true;
	} else if (!e->ip_suppressed && !e->status_update && p->jumped && arrive(p, e->variant.tsx.ip)) {
		return FLOW_OK; /* comes once more, with the jump done */
	}
	p->tx.on = e->variant.tsx.speculative;
	p->have = false;
	return GO;
}

static int pass_event(struct pt_flow *p)
{
	const struct pt_event *e = &p->it.event;

	switch (e->type) {
	case ptev_async_branch:
	case ptev_async_disabled: {
		bool undone = p->tx.undone;
		uint64_t from = e->type == ptev_async_branch ? e->variant.async_branch.from
							     : e->variant.async_disabled.at;

		p->tx.undone = false;
		if (undone && e->type == ptev_async_branch)
			break; /* to the fallback */
		if (p->jumped && arrive(p, from))
			return FLOW_OK; /* comes once more, with the jump done */
		p->from = (struct place){.ip = from, .alt = from};
		p->out = true;
		if (e->type == ptev_async_branch) {
			left_for_good(p, e->variant.async_branch.to);
			p->out = false;
		}
		break;
	}
	case ptev_disabled:
		if (p->jumped && asked(p, p->end_ip)) {
			p->have = false;
			return lose(p, "the trace ends in the jump at 0x%llx", (unsigned long long)p->end_ip);
		}
		p->jumped = false;
		/* a system call: the kernel puts the place behind it, or that of the call itself, into a signal's frame */
		p->from = (struct place){.ip = p->end_ip + 2, .alt = p->end_ip, .call = true};
		p->out = true;
		break;
	case ptev_enabled:
		at_enabled(p, e);
		if (p->out && e->variant.enabled.ip != p->from.ip && e->variant.enabled.ip != p->from.alt)
			left_for_good(p, e->variant.enabled.ip);
		p->out = false;
		break;
	case ptev_overflow:
		p->have = false;
		return lose(p, "the processor lost packets (OVF)");
	case ptev_ptwrite:
		return pass_ptwrite(p, e);
	case ptev_tsx:
		return pass_transaction(p, e);
	default:
		break;
	}
	p->have = false;
	return GO;
}

/* --- code without an image: made at run time, or not in a file any more ---
 *
 * What it executed cannot be told. Its packets are passed, up to the address at which known code goes on; they are all its own
 * if known code was entered by a packet: an indirect jump or call, a return (none is compressed), an interrupt. A direct
 * jump leaves none, and what known code did behind it would be taken for the other's. So where control came must be
 * what the log says, too. */
static bool is_unknown(const struct pt_flow *p)
{
	return p->it.lost.err == -pte_nomap && !(p->s.info.flags & RUN_PT_RETC) && p->d.moved;
}

/* Known code goes on at ip: GO, lost, or WAIT: the walk has not come to where the log says so. */
static int back_in_known(struct pt_flow *p, uint64_t ip)
{
	const struct span *s = span_at(p, ip);

	if (p->d.pkt.novf != p->ovf)
		return lose(p, "the processor lost packets (OVF)");
	if (p->d.by == ppt_tip_pge || (p->d.by == ppt_tip && s && !s->traced)) {
		p->unknown = false;
		return GO;
	}
	while (p->d.by == ppt_tip && p->told.next < p->told.n) {
		if (p->told.at[p->told.next++] != ip)
			continue;
		p->unknown = false;
		return GO;
	}
	if (p->peek)
		return WAIT;
	return lose(p, "code that is in no file led to 0x%llx, on a way that left no packet",
		    (unsigned long long)ip);
}

static int pass(struct pt_flow *p)
{
	if (!p->open) {
		int rc = next_segment(p);

		if (rc != GO)
			return rc;
	}
	if (!p->have)
		ptd_next(&p->d, &p->it);
	p->have = true;
	switch (p->it.kind) {
	case PTD_BLOCK:
		if (p->unknown) {
			int rc = back_in_known(p, p->it.block.ip);

			if (rc != GO)
				return rc;
		}
		if (p->jumped && arrive(p, p->it.block.ip))
			return FLOW_OK;
		p->end_ip = p->it.block.end_ip;
		p->jumped = true;
		p->have = false;
		return GO;
	case PTD_EVENT:
		return pass_event(p);
	case PTD_LOST:
		/* jumped to where no code is known: the jump itself is */
		if (p->jumped && p->it.lost.err == -pte_nomap && arrive(p, p->it.lost.ip))
			return FLOW_OK;
		p->have = false;
		if (is_unknown(p)) {
			p->unknown = true;
			p->ovf = p->d.pkt.novf;
			p->out = false;
			return GO;
		}
		if (p->unknown && !p->it.lost.err)
			return GO; /* more of it */
		if (p->it.lost.err == -pte_nomap && p->s.info.flags & RUN_PT_RETC &&
		    !span_at(p, p->it.lost.ip))
			return lose(p,
				    "the code at 0x%llx is in no file: with PTRACE_PT_RETC=0 what follows "
				    "such code can be told",
				    (unsigned long long)p->it.lost.ip);
		return lose(p, "packets and code do not fit at 0x%llx, byte %llu of the packets: %s",
			    (unsigned long long)p->it.lost.ip, (unsigned long long)p->it.lost.offset,
			    p->it.lost.err ? pt_errstr(pt_errcode(p->it.lost.err))
					   : "a return to a call before");
	case PTD_END:
		p->have = false;
		return next_segment(p);
	}
	return FLOW_END;
}

/* ---- the walk's side ------------------------------------------------------------------------------------ */

/* There is an asked-for instruction in what pass() has just passed. Within a transaction it is kept. */
static void found(struct pt_flow *p)
{
	at_branch(p);
	p->ahead.asked = !p->tx.on;
	if (!p->tx.on)
		return;
	if (p->tx.n == p->tx.cap) {
		p->tx.cap = p->tx.cap ? 2 * p->tx.cap : 64;
		p->tx.v = xrealloc(p->tx.v, p->tx.cap, sizeof(*p->tx.v));
	}
	p->tx.v[p->tx.n++] = (struct told){p->ahead.ip, p->ahead.next, p->ahead.tsc, p->ahead.ptw};
}

/* the next one of a transaction that has committed; false: there is none */
static bool committed(struct pt_flow *p)
{
	const struct told *t = &p->tx.v[p->tx.next];

	if (p->tx.on || p->tx.next == p->tx.n)
		return false;
	p->ahead.ip = t->ip;
	p->ahead.next = t->next;
	p->ahead.ptw = t->ptw;
	p->ahead.tsc = t->tsc;
	p->ahead.asked = true;
	if (++p->tx.next == p->tx.n)
		p->tx.n = p->tx.next = 0;
	return true;
}

/* on to the next asked-for instruction, unless that is reached already */
static int look(struct pt_flow *p)
{
	while (!p->ahead.asked && !p->ahead.bad && !committed(p)) {
		int rc = pass(p);

		if (rc == WAIT)
			return rc;
		if (rc == FLOW_OK)
			found(p);
		else if (rc != GO)
			p->ahead.bad = rc;
	}
	return p->ahead.bad;
}

static int answer(struct flow *f, uint64_t ip, bool ptw, uint64_t *next)
{
	struct pt_flow *p = (struct pt_flow *)f;
	int rc = look(p);

	f->nasked++;
	p->told.n = p->told.next = 0;
	p->ahead.nplace = 0;
	f->counter = p->ahead.counter;
	if (p->ahead.tsc)
		f->tsc = p->ahead.tsc;
	if (rc)
		return rc;
	if (p->ahead.ip != ip || p->ahead.ptw != ptw)
		return p->ahead.bad = lose(p, "the walk is at 0x%llx, the processor was at 0x%llx",
					   (unsigned long long)ip, (unsigned long long)p->ahead.ip);
	p->ahead.asked = false;
	*next = p->ahead.next;
	return FLOW_OK;
}

static int flow_branch(struct flow *f, uint64_t ip, uint64_t *next)
{
	return answer(f, ip, false, next);
}

static int flow_value(struct flow *f, uint64_t ip, uint64_t *v)
{
	return answer(f, ip, true, v);
}

static bool flow_stops(struct flow *f, uint64_t ip, bool back)
{
	struct pt_flow *p = (struct pt_flow *)f;
	uint32_t seen = 0;
	int rc;

	for (;;) {
		for (; seen < p->ahead.nplace; seen++) {
			const struct place *at = &p->ahead.place[seen];

			if (at->ip != ip && at->alt != ip && !(back && at->call && at->to != ip))
				continue;
			p->ahead.nplace -= seen + 1;
			memmove(p->ahead.place, at + 1, p->ahead.nplace * sizeof(*at));
			return true;
		}
		if (p->ahead.asked || p->ahead.bad || committed(p))
			return false;
		p->peek = true;
		rc = pass(p);
		p->peek = false;
		switch (rc) {
		case GO:
			break;
		case WAIT:
			return false;
		case FLOW_OK:
			found(p);
			break;
		case FLOW_LOST:
			p->ahead.bad = FLOW_LOST;
			break;
		default:
			p->ahead.bad = FLOW_END;
		}
	}
}

static void flow_entered(struct flow *f, uint64_t at)
{
	struct pt_flow *p = (struct pt_flow *)f;

	if (p->s.info.flags & RUN_PT_RETC)
		return; /* of no use then: is_unknown() */
	if (p->told.n == p->told.cap) {
		p->told.cap = p->told.cap ? 2 * p->told.cap : 64;
		p->told.at = xrealloc(p->told.at, p->told.cap, sizeof(*p->told.at));
	}
	p->told.at[p->told.n++] = at;
}

static bool flow_more(struct flow *f)
{
	struct pt_flow *p = (struct pt_flow *)f;

	int rc;

	p->peek = true;
	rc = look(p);
	p->peek = false;
	return !rc && !p->ahead.nplace;
}

static int flow_resync(struct flow *f, uint32_t *counter)
{
	struct pt_flow *p = (struct pt_flow *)f;
	int rc = p->ahead.bad == FLOW_END ? FLOW_END : GO;

	p->ahead.asked = false;
	p->ahead.bad = 0;
	p->ahead.counter = 0;
	p->nbits = 0;
	p->tx.n = p->tx.next = 0;
	while (rc != FLOW_END && !p->ahead.counter) {
		rc = pass(p);
		if (rc == FLOW_LOST)
			p->ahead.counter = 0;
	}
	p->ahead.nplace = 0;
	if (rc == FLOW_END) {
		p->ahead.bad = FLOW_END;
		return FLOW_END;
	}
	at_branch(p);
	if (p->ahead.tsc)
		f->tsc = p->ahead.tsc;
	*counter = f->counter = p->ahead.counter;
	return FLOW_OK;
}

static void flow_close(struct flow *f)
{
	struct pt_flow *p = (struct pt_flow *)f;

	if (p->open)
		ptd_close(&p->d);
	ptstream_close(&p->s);
	pt_image_free(p->image);
	free(p->span);
	free(p->mapped);
	free(p->ahead.place);
	free(p->told.at);
	free(p->tx.v);
	free(p);
}

static const struct flow_ops ops = {
	.branch = flow_branch,
	.value = flow_value,
	.stops = flow_stops,
	.more = flow_more,
	.resync = flow_resync,
	.entered = flow_entered,
	.module = flow_module,
	.close = flow_close,
};

struct flow *flow_open_pt(struct thread *t, struct ptrace_error *e)
{
	struct pt_flow *p = xcalloc(1, sizeof(*p));
	const struct proc *proc = t->proc;
	char *path = t->pub.again ? xprintf("%s/pt-%u.%u.bin", proc->dir, t->pub.tid, t->pub.again)
				  : xprintf("%s/pt-%u.bin", proc->dir, t->pub.tid);

	p->f.ops = &ops;
	p->t = t;
	p->mapped = xcalloc(proc->nmod, 1);
	p->code = ptcode_of(proc->run);
	p->image = pt_image_alloc(NULL);
	if (ptstream_open(&p->s, path, e) || !p->code || !p->image) {
		err_set(e, PTRACE_IO, "no memory for an image of the program");
		flow_close(&p->f);
		free(path);
		return NULL;
	}
	free(path);
	ptstream_config(&p->s, &p->cfg);
	for (uint32_t i = 0; i < proc->nmod; i++)
		if (proc->mod[i].m.kind && !clashes(proc, i))
			map_module(p, &proc->mod[i]);
	return &p->f;
}
