/* SPDX-License-Identifier: MIT
 *
 * rt_sigframe.c - handlers of the program within its trace
 *
 *   delivery    cut: the stream ends here for now ─▶ SIGNAL ─▶ the handler's own code and log …
 *   sigreturn   SIGRET ─▶ what the cut had covered, once more ─▶ on in the copy, as if nothing had happened
 *               RESUME ─▶ on at some instruction, when the handler has changed rip or a register
 *
 * What the program sees of an interruption is the kernel's ucontext, with its own registers and an
 * original address in it. What the copy needs on top (its position, borrowed registers, slots of the TCB,
 * logs that were not yet committed) is kept here under the ucontext's address. Nothing tells when a handler
 * is left by longjmp, so the places are used in turn, the oldest first. What is lost that way, or
 * never was there (a frame that the program built; one of the parent's, in a process that was made within a handler: its
 * stream does not say what was interrupted), is no harm: RESUME needs no more than the ucontext.
 *
 * rt_sigreturn is executed on a copy of the ucontext: the program's memory stays as it is.
 */
#include "rt.h"

#define NFRAMES 16 /* handlers within handlers that return to the very place */
#define NSEEN 256
#define PARTIAL 1024 /* bytes of log at once */
#define AHEAD 256 /* stored, but not counted yet by the instruction that was interrupted */
#define UC_WORDS (UC_SIZE / 8)
#define NEAR_FRAME (32 << 10) /* the kernel's frame: 16 KiB with all of the processor's state */

const uint8_t rt_uc_word[16] = {
	[R8] = UC_R8 / 8,   [R9] = UC_R9 / 8,	[R10] = UC_R10 / 8, [R11] = UC_R11 / 8,
	[R12] = UC_R12 / 8, [R13] = UC_R13 / 8, [R14] = UC_R14 / 8, [R15] = UC_R15 / 8,
	[RDI] = UC_RDI / 8, [RSI] = UC_RSI / 8, [RBP] = UC_RBP / 8, [RBX] = UC_RBX / 8,
	[RDX] = UC_RDX / 8, [RAX] = UC_RAX / 8, [RCX] = UC_RCX / 8, [RSP] = UC_RSP / 8};

struct frame {
	uint64_t gpr[16], rip, rflags; /* the program's: what it was shown */
	uint64_t raw[16], raw_rip, raw_flags;
	uint64_t r15, expect, spill[2], flags, resume, target; /* of the TCB */
	bool lp_in_r15;
	uint32_t off; /* from the log pointer to the stream's position */
	uint32_t bytes; /* of them these many are the region's own, in log[] */
	uint8_t log[PARTIAL + AHEAD];
};

struct rt_frames {
	uint32_t next, nseen;
	struct {
		uint64_t uc, rsp; /* of the interrupted code */
	} seen[NSEEN]; /* the decoder knows their callers */
	uint64_t uc[NFRAMES]; /* 0: free */
	struct frame f[NFRAMES];
};

/* Private memory of a thread: first its signal table, then this; from the other end its runtime stack. */
#define FRAMES_OFF ((sizeof(rt.sig) + 63) & ~63ull)
_Static_assert(FRAMES_OFF + sizeof(struct rt_frames) + (64 << 10) <= RT_PRIVATE, "room for the stack");

static struct rt_frames *own(const struct rt_tcb *t)
{
	return (void *)((uint64_t)t->sig_own + FRAMES_OFF);
}

static struct rt_frames *frames(struct rt_tcb *t)
{
	if (!t->frames) { /* what is there may be of an earlier thread */
		t->frames = own(t);
		memset(t->frames, 0, offsetof(struct rt_frames, f));
	}
	return t->frames;
}

/* the place for uc's frame, NULL if it has none */
static struct frame *find(struct rt_frames *s, uint64_t uc)
{
	for (uint32_t i = 0; i < NFRAMES; i++)
		if (s->uc[i] == uc)
			return &s->f[i];
	return NULL;
}

static struct frame *place(struct rt_frames *s, uint64_t uc)
{
	struct frame *f = find(s, uc); /* one that was left by longjmp */

	if (f)
		return f;
	s->uc[s->next] = uc;
	f = &s->f[s->next];
	s->next = (s->next + 1) % NFRAMES;
	return f;
}

/* Handlers that return do so in reverse order: the places are the same few then. */
static void drop(struct rt_frames *s, const struct frame *f)
{
	uint32_t i = (uint32_t)(f - s->f);

	s->uc[i] = 0;
	if ((i + 1) % NFRAMES == s->next)
		s->next = i;
}

/* What is around rsp. Where the kernel has just written its frame below, this page and those before it are there. */
static void window(struct run_signal *s, uint64_t uc, uint64_t rsp)
{
	uint64_t from = rsp - RUN_SIGNAL_BELOW, end = (rsp + RT_PAGE - 1) & ~(RT_PAGE - 1);
	bool near = uc < from && rsp - uc <= NEAR_FRAME, whole = end - from >= sizeof(s->stack);

	if (near && whole)
		memcpy(s->stack, (void *)from, sizeof(s->stack));
	else
		whole = !rt_copy_out(s->stack, from, sizeof(s->stack));
	s->nstack = whole ? sizeof(s->stack) : 0;
}

static void say(struct rt_tcb *t, int sig, uint64_t uc, const struct rt_intr *in)
{
	struct run_signal s = {.signo = (uint32_t)sig, .frame = uc};

	s.where = (uint16_t)in->w.where;
	s.ahead = in->w.ahead;
	s.rip = in->w.rip;
	s.ip = in->ip;
	s.rflags = in->rflags;
	s.visit = in->visit;
	memcpy(s.gpr, in->gpr, sizeof(s.gpr));
	window(&s, uc, in->gpr[RSP]);
	rt_event_with(t, RUN_EV_SIGNAL, sizeof(s), &s, sizeof(s));
}

static void keep(struct rt_tcb *t, uint64_t uc, const struct rt_intr *in, uint32_t off, uint32_t bytes)
{
	struct frame *f;

	if (bytes > PARTIAL) { /* returns by RESUME */
		f = find(frames(t), uc);
		if (f)
			drop(t->frames, f);
		return;
	}
	f = place(frames(t), uc);
	memcpy(f->gpr, in->gpr, sizeof(f->gpr));
	f->rip = in->w.rip;
	f->rflags = in->rflags;
	memcpy(f->raw, in->raw, sizeof(f->raw));
	f->raw_rip = in->raw_rip;
	f->raw_flags = in->raw_flags;
	f->r15 = t->t.r15;
	f->expect = t->t.expect;
	f->spill[0] = t->t.spill[0];
	f->spill[1] = t->t.spill[1];
	f->flags = t->t.flags;
	f->resume = t->t.resume;
	f->target = t->t.target;
	f->lp_in_r15 = in->lp_in_r15;
	f->off = off;
	f->bytes = bytes;
	if (f->lp_in_r15)
		memcpy(f->log, (void *)(in->lp + off - bytes), bytes + AHEAD);
}

/* Whose entry's or return's mark is still to come has callers that the decoder does not know: untraced code, a stub. */
static void note_stack(struct rt_frames *s, uint64_t uc, const struct rt_intr *in)
{
	for (uint32_t i = 0; i < NSEEN; i++)
		if (s->seen[i].uc == uc)
			s->seen[i].uc = 0;
	if (in->w.where == RUN_STOP_IN_TEXT || in->w.stub)
		return;
	s->seen[s->nseen % NSEEN].uc = uc;
	s->seen[s->nseen++ % NSEEN].rsp = in->gpr[RSP];
}

/* Cut and event are written, tcb.lp is behind them. The log pointer of a region may be put back behind bytes
 * that are no longer its own, and even before the chunk (map_xlat.off): only those behind tcb.lp, where the region went
 * on, are cut out. */
uint32_t rt_frame_enter(struct rt_tcb *t, int sig, uint64_t uc, const struct rt_intr *in)
{
	uint64_t pos = in->lp + in->w.off, at = in->lp > t->t.lp ? in->lp : t->t.lp;
	struct rt_frames *s = frames(t);
	bool cut = in->w.where != RUN_STOP_IN_HOOK;
	uint32_t bytes = (uint32_t)(pos - at), reason;

	if (cut)
		rt_cut(t, at, bytes);
	keep(t, uc, in, in->w.off, bytes);
	__atomic_store_n(&t->t.lp, pos, __ATOMIC_RELEASE);
	reason = rt_ring_room(t);
	if (reason) {
		if (cut)
			rt_cut_undo(t);
		t->t.lp = in->lp;
		return reason;
	}
	say(t, sig, uc, in);
	note_stack(s, uc, in);
	t->t.expect = 0; /* no call of the program's leads to the handler: its entry logs rsp */
	return 0;
}

static bool stack_told(struct rt_frames *s, uint64_t frame, uint64_t rsp)
{
	for (uint32_t i = 0; i < NSEEN; i++)
		if (s->seen[i].uc == frame && s->seen[i].rsp == rsp)
			return true;
	return false;
}

/* Another stack than the signal's, with callers that the decoder cannot know. */
static void take_stack(struct run_resume *r)
{
	uint64_t rsp = r->gpr[RSP], below = rsp & (RT_PAGE - 1), word;

	if (rt_copy_out(&word, rsp, sizeof(word)))
		return;
	r->stack = rsp - (below < 128 ? below : 128); /* the red zone (psABI 3.2.2) */
	r->stack_size = rt_stack_size(r->stack);
}

static uint32_t resume(struct rt_tcb *t, uint64_t *uc, uint64_t frame)
{
	struct run_resume r = {.frame = frame, .rip = uc[UC_RIP / 8], .rflags = uc[UC_EFLAGS / 8]};
	const struct rt_module *m = rt_mod_traced(r.rip);
	struct rt_spot s;
	uint32_t reason;

	if (m && !rt_xlat_to(m, (uint32_t)(r.rip - m->bias), &s)) {
		/* no instruction that we know; its bytes may be there all the same */
		if (!rt.stopped && rt_xlat_patched(m, (uint32_t)(r.rip - m->bias)))
			return RUN_STOP_SIGNAL;
		m = NULL;
	}
	reason = rt_ring_room(t);
	if (reason)
		return reason;
	for (int i = 0; i < 16; i++)
		r.gpr[i] = uc[rt_uc_word[i]];
	if (m && frame && !stack_told(frames(t), frame, r.gpr[RSP]))
		take_stack(&r);
	if (!t->th.rec) { /* a recording has nothing to say to a decoder */
		rt_event_with(t, RUN_EV_RESUME, sizeof(r) + r.stack_size, &r, sizeof(r));
		rt_log(t, (void *)r.stack, r.stack_size);
	}
	if (!m)
		return 0;
	t->t.r15 = r.gpr[R15];
	if (s.r15_reg < 16) {
		t->t.spill[s.spill] = r.gpr[s.r15_reg];
		uc[rt_uc_word[s.r15_reg]] = r.gpr[R15];
	}
	uc[rt_uc_word[R15]] = t->t.lp - s.off;
	uc[UC_RIP / 8] = m->copy + s.copy_off;
	return 0;
}

static bool enter(struct rt_tcb *t, uint64_t *uc, bool called)
{
	uint64_t rip = uc[UC_RIP / 8];
	const struct rt_module *m = rt_mod_traced(rip);
	struct rt_spot s;

	if (!m || !rt_xlat_to(m, (uint32_t)(rip - m->bias), &s) || (s.keeps && !called) || resume(t, uc, 0))
		return false;
	t->t.expect = 0;
	return true;
}

bool rt_enter(struct rt_tcb *t, uint64_t *uc)
{
	return enter(t, uc, false);
}

bool rt_enter_called(struct rt_tcb *t, uint64_t *uc)
{
	return enter(t, uc, true);
}

void rt_enter_anyway(struct rt_tcb *t, uint64_t *uc)
{
	resume(t, uc, 0);
}

static bool unchanged(const struct frame *f, const uint64_t *uc)
{
	for (int i = 0; i < 16; i++)
		if (uc[rt_uc_word[i]] != f->gpr[i])
			return false;
	return uc[UC_RIP / 8] == f->rip && uc[UC_EFLAGS / 8] == f->rflags;
}

static uint32_t back(struct rt_tcb *t, const struct frame *f, uint64_t *uc, uint64_t frame)
{
	uint32_t reason = rt_ring_room(t);

	if (reason)
		return reason;
	rt_event(t, RUN_EV_SIGRET, frame);
	for (int i = 0; i < 16; i++)
		uc[rt_uc_word[i]] = f->raw[i];
	uc[UC_RIP / 8] = f->raw_rip;
	uc[UC_EFLAGS / 8] = f->raw_flags;
	if (f->lp_in_r15) {
		t->th.copied = 1;
		memcpy((void *)t->t.lp, f->log, f->bytes + AHEAD);
		uc[rt_uc_word[R15]] = t->t.lp + f->bytes - f->off;
	}
	t->t.r15 = f->r15;
	t->t.spill[0] = f->spill[0];
	t->t.spill[1] = f->spill[1];
	t->t.flags = f->flags;
	t->t.resume = f->resume;
	t->t.target = f->target;
	return 0;
}

static void __attribute__((noreturn)) real_sigreturn(const uint64_t *uc)
{
	__asm__ volatile("mov %0, %%rsp\n\tmov $15, %%eax\n\tsyscall" : : "r"(uc) : "memory");
	__builtin_unreachable();
}

/* uc: what the frame at that address says, or what it said; then what t goes on with */
uint32_t rt_frame_leave(struct rt_tcb *t, uint64_t *uc, uint64_t frame)
{
	struct frame *f = find(frames(t), frame);
	uint64_t expect = f ? f->expect : 0;
	uint32_t reason = f && unchanged(f, uc) ? back(t, f, uc, frame) : resume(t, uc, frame);

	if (reason)
		return reason;
	t->t.expect = expect;
	if (f)
		drop(t->frames, f);
	return 0;
}

/* the system call, made by the program's restorer (or by hand): rsp points to the ucontext */
int rt_sigreturn(struct rt_tcb *t)
{
	uint64_t uc[UC_WORDS], frame = t->sv.gpr[RSP];
	struct frame *f = find(frames(t), frame);
	int err = f ? 0 : rt_copy_out(uc, frame, UC_SIZE);
	uint32_t reason;

	if (err == -EFAULT)
		return RT_DO_REAL; /* and so will the program find it */
	if (f || err)
		memcpy(uc, (void *)frame, UC_SIZE);
	if (rt.how == RT_RECORD)
		rt_record_sigreturn(t, uc);
	while ((reason = rt_frame_leave(t, uc, frame))) {
		if (rt_stop_here(t, reason))
			return rt_stop_leave(t, reason, t->t.target - 2);
		/* with others in the copies: all the same, but the log is thrown away */
	}
	if (rt.how == RT_REPLAY)
		rt_replay_signal(t, REC_AT_SIGRETURN, &uc[UC_SIGMASK / 8]);
	t->th.calling = 0;
	real_sigreturn(uc);
}
