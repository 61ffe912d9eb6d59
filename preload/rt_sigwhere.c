/* SPDX-License-Identifier: MIT
 *
 * rt_sigwhere.c - where a signal found the thread, and what the program's registers are there
 *
 * rt_entry.S has labels around every stretch with a different answer: the other half of this contract. README.md has
 * the table of what the program is shown.
 */
#include "rt.h"

/* The hooks and the window below are left for a place that needs nothing of what they had done. */
static void raw(struct rt_intr *in, uint64_t rip, uint64_t lp)
{
	memcpy(in->raw, in->gpr, sizeof(in->raw));
	in->raw[R15] = lp;
	in->raw_rip = rip;
	in->raw_flags = in->rflags;
	in->lp = lp;
	in->lp_in_r15 = true;
}

/* the hooks have saved the registers */
static void saved(const struct rt_tcb *t, struct rt_intr *in)
{
	uint64_t rsp = in->gpr[RSP]; /* the program's wherever a signal can arrive */

	memcpy(in->gpr, t->sv.gpr, sizeof(in->gpr));
	in->gpr[RSP] = rsp;
}

/* about to go on at tcb.resume */
static void at_resume(struct rt_tcb *t, struct rt_intr *in, uint64_t lp)
{
	raw(in, t->t.resume, lp);
	in->gpr[R15] = lp;
	rt_xlat(t, in->gpr, t->t.resume, &in->rflags, &in->w);
}

void rt_resume_where(struct rt_tcb *t, struct rt_intr *in)
{
	memset(in, 0, sizeof(*in));
	memcpy(in->gpr, t->sv.gpr, sizeof(in->gpr));
	in->rflags = rt_rflags_hook(t);
	at_resume(t, in, t->t.lp);
}

/* the system call has been made, its mark is written */
static void called(struct rt_tcb *t, struct rt_intr *in, uint64_t lp)
{
	in->gpr[RCX] = t->t.target; /* as the instruction leaves it */
	at_resume(t, in, lp);
	in->w.rip = t->t.target;
	in->gpr[R15] = t->t.r15;
}

/* not yet made, or to be made once more: all over again from the hook's beginning */
static void uncalled(struct rt_tcb *t, struct rt_intr *in, uint64_t lp)
{
	raw(in, (uint64_t)rt_sys_entry, lp);
	in->w = (struct rt_where){t->t.target - 2, RUN_STOP_IN_HOOK, ~0u, 0, 0, 0, false};
	in->gpr[RCX] = t->t.target;
	in->gpr[R15] = t->t.r15;
}

static void in_full(struct rt_tcb *t, uint64_t rip, struct rt_intr *in)
{
	uint64_t lp = in->gpr[R15], rsp = in->gpr[RSP];

	if (rip >= (uint64_t)rt_full_regs) {
		lp = t->t.lp;
		saved(t, in);
	}
	if (rip >= (uint64_t)rt_full_saved)
		in->rflags = rt_rflags(in->rflags, t->sv.flags);
	if ((t->t.what & 0xff) == NONDET_XBEGIN) { /* all over again */
		t->t.what = 0;
	} else if (t->t.what) { /* an instruction that is still to be executed; tcb.resume is behind it */
		memcpy(t->sv.gpr, in->gpr, sizeof(in->gpr));
		t->sv.flags = rt_lahf(in->rflags);
		rt_nondet(t);
		memcpy(in->gpr, t->sv.gpr, sizeof(in->gpr));
		in->gpr[RSP] = rsp;
		in->rflags = rt_rflags(in->rflags, t->sv.flags);
	}
	at_resume(t, in, lp);
}

/* the event of untraced code that has come back: not yet written, to be written once more, or done */
static void in_back(struct rt_tcb *t, uint64_t rip, struct rt_intr *in)
{
	if (within(rip, rt_back_rax, rt_back_told))
		in->gpr[RAX] = t->sv.gpr[RAX];
	if (rip >= (uint64_t)rt_back_done) {
		at_resume(t, in, in->gpr[R15]);
		return;
	}
	at_resume(t, in, t->t.lp);
	in->raw_rip = (uint64_t)rt_back_entry;
}

/* most calls: registers are where they were but for rax, rcx and flags */
static void in_fast(struct rt_tcb *t, uint64_t rip, struct rt_intr *in)
{
	uint64_t lp = in->gpr[R15];

	if (rip < (uint64_t)rt_sys_after) {
		if (rip >= (uint64_t)rt_sys_nr && rip != (uint64_t)rt_sys_call)
			in->gpr[RAX] = t->sv.nr;
		if (rip >= (uint64_t)rt_sys_flags)
			in->rflags = rt_rflags(in->rflags, t->sv.flags);
		if (within(rip, rt_sys_early, rt_sys_ready))
			in->gpr[RDX] = t->sv.gpr[RDX];
		uncalled(t, in, lp);
		return;
	}
	if (within(rip, rt_sys_late, rt_sys_late_end)) {
		in->gpr[RDX] = t->sv.gpr[RDX];
		memcpy(&in->gpr[RAX], (void *)(lp + 16), 8);
	}
	if (rip < (uint64_t)rt_sys_logged) {
		t->t.lp = lp;
		rt_called(t, (uint32_t)t->sv.nr, in->gpr[RAX]);
		lp = t->t.lp;
	}
	called(t, in, lp);
}

/* A recording may have found only now that the call cannot be replayed: another TCB then, or NULL, with which the
 * program goes on in its original text. */
static struct rt_tcb *done(struct rt_tcb *t, struct rt_intr *in)
{
	bool record = rt.how == RT_RECORD;
	uint64_t rsp = in->gpr[RSP];
	int r = rt_syscall_post(t);

	if (!record || rt.how == RT_RECORD)
		return t;
	if (r != RT_DO_LEAVE)
		return rt.main;
	memcpy(in->gpr, rt_out.gpr, sizeof(in->gpr));
	in->gpr[RSP] = rsp;
	in->rflags = rt_rflags(in->rflags, rt_out.flags);
	in->w = (struct rt_where){rt_out.rip, RUN_STOP_IN_TEXT, ~0u, 0, 0, 0, false};
	return NULL;
}

static struct rt_tcb *in_slow(struct rt_tcb *t, uint64_t rip, struct rt_intr *in)
{
	uint64_t rax = in->gpr[RAX];
	bool real = rip >= (uint64_t)rt_finish_end;

	if (rip < (uint64_t)rt_slow_saved) {
		in->gpr[RAX] = t->sv.nr;
		in->rflags = rt_rflags(in->rflags, t->sv.flags);
		uncalled(t, in, in->gpr[R15]);
		return t;
	}
	if (rip >= (uint64_t)rt_real_after) {
		if (rip < (uint64_t)rt_real_done)
			t->sv.gpr[RAX] = rax;
		t = done(t, in);
		if (!t)
			return NULL;
	}
	saved(t, in);
	in->rflags = rt_rflags(in->rflags, t->sv.flags);
	if (rip < (uint64_t)rt_finish || (real && rip < (uint64_t)rt_real_after)) {
		rt_syscall_undo(t, real);
		uncalled(t, in, t->t.lp);
	} else {
		called(t, in, t->t.lp);
	}
	return t;
}

/* On the way into a handler that an earlier signal leads to: with registers as the kernel gave them, all of
 * which its frame tells. */
static void in_window(struct rt_tcb *t, struct rt_intr *in)
{
	uint64_t uc = in->gpr[RSP] + 8, rsp = in->gpr[RSP];

	for (int i = 0; i < 16; i++)
		in->gpr[i] = ((const uint64_t *)uc)[rt_uc_word[i]];
	in->gpr[RSP] = rsp;
	in->gpr[RDI] = *(const uint32_t *)(uc + UC_SIZE); /* si_signo */
	in->gpr[RSI] = uc + UC_SIZE;
	in->gpr[RDX] = uc;
	in->gpr[RAX] = 0;
	raw(in, t->t.target, t->t.lp);
	in->raw[R15] = in->gpr[R15];
	in->lp_in_r15 = false;
	rt_xlat(t, in->gpr, t->t.target, &in->rflags, &in->w);
}

struct rt_tcb *rt_sig_look(struct rt_tcb *t, const uint64_t *uc, struct rt_intr *in)
{
	uint64_t rip = uc[MC_RIP];

	in->ip = rip;
	in->visit = 0;
	in->rflags = uc[MC_EFLAGS];
	for (int i = 0; i < 16; i++)
		in->gpr[i] = uc[rt_uc_word[i]];
	if (within(rip, rt_full_entry, rt_full_end)) {
		in_full(t, rip, in);
	} else if (within(rip, rt_back_entry, rt_back_end)) {
		in_back(t, rip, in);
	} else if (within(rip, rt_sys_entry, rt_sys_end)) {
		in_fast(t, rip, in);
	} else if (within(rip, rt_sig_open, rt_sig_open_end)) {
		in_window(t, in);
	} else if (within(rip, rt_text_lo, rt_text_hi)) {
		return in_slow(t, rip, in);
	} else {
		bool log = rt_in_ring(in->gpr[R15]);

		raw(in, rip, log ? in->gpr[R15] : t->t.lp);
		in->raw[R15] = in->gpr[R15];
		in->lp_in_r15 = log;
		rt_xlat(t, in->gpr, rip, &in->rflags, &in->w);
	}
	return t;
}
