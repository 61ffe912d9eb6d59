/* SPDX-License-Identifier: MIT
 *
 * rt_sig.c - signals
 *
 * For every handler the program installs, the kernel gets rt_sig_entry, with every signal in
 * its mask; what the program reads back is its own. A delivery:
 *
 *   kernel ─▶ rt_sig_entry ─▶ rt_signal(): where was the thread? its state translated into the ucontext
 *      ─▶ rt_frame_enter(): logged, and what the copy needs put aside ─▶ the program's handler,
 *         on the kernel's frame, with the mask the kernel would have set
 *      ─▶ the program's restorer ─▶ rt_sigreturn (rt_sigframe.c)
 *
 * Where that cannot be (the restorer is not traced, a vfork child) the first delivery stops the trace cleanly.
 *
 * SIGTRAP is ours from the start, for the int3 that fill dead bytes of relocated code.
 */
#include "rt.h"

#define SIGTRAP 5
#define SA_SIGINFO 4u
#define SA_NODEFER 0x40000000u
#define SA_RESETHAND 0x80000000u
#define SA_RESTART 0x10000000u
#define SA_RESTORER 0x04000000u
#define SI_KERNEL 0x80
#define ARCH_SET_GS_OP 0x1001

/* the ucontext, as eight-byte words */
#define MC_RIP (UC_RIP / 8)
#define MC_EFLAGS (UC_EFLAGS / 8)
#define MC_MASK (UC_SIGMASK / 8)

static long ksig(int sig, const struct rt_ksig *act, struct rt_ksig *old)
{
	return rt_sc(__NR_rt_sigaction, sig, act, old, 8);
}

/* what the kernel gets in place of the program's action */
static struct rt_ksig mine(const struct rt_ksig *like)
{
	struct rt_ksig k = *like;

	k.handler = (uint64_t)rt_sig_entry;
	k.mask = ~0ull;
	k.flags |= SA_SIGINFO; /* without it the kernel does not fill in the siginfo we look at */
	if (like->handler <= 1) { /* SIGTRAP is ours when the program has no handler for it */
		k.flags = SA_SIGINFO | SA_RESTORER | SA_RESTART;
		k.restorer = (uint64_t)rt_restorer;
	}
	return k;
}

/* Handlers that are there already: of libraries that were initialised before this one. In a forked child, whose
 * table may have been cleared, those that are ours stay. */
int rt_sig_init(void)
{
	for (int i = 1; i <= 64; i++) {
		struct rt_sigview *v = &rt.sig[i];
		struct rt_ksig k;

		if (rt_err(ksig(i, NULL, &k)) || (v->ours && k.handler == (uint64_t)rt_sig_entry))
			continue;
		v->act = v->last = k;
		v->ours = k.handler > 1 || i == SIGTRAP;
		if (!v->ours)
			continue;
		k = mine(&k);
		ksig(i, &k, NULL);
	}
	return 0;
}

void rt_sig_restore(struct rt_sigview *sig)
{
	for (int i = 1; i <= 64; i++) {
		struct rt_ksig cur;

		if (!sig[i].ours)
			continue;
		sig[i].ours = 0;
		/* SA_RESETHAND: the kernel may have reset it */
		if (!rt_err(ksig(i, NULL, &cur)) && cur.handler == (uint64_t)rt_sig_entry)
			ksig(i, &sig[i].act, NULL);
	}
}

/* What the program reads: its own where the kernel's is ours. SA_RESETHAND leaves ours with SIG_DFL. */
static void shown(const struct rt_sigview *v, struct rt_ksig *k)
{
	uint64_t handler = k->handler;

	if (!v->ours || (handler != (uint64_t)rt_sig_entry && handler != 0))
		return;
	*k = v->act;
	if (!handler)
		k->handler = 0;
}

/* the view of an action from before the kernel has it until after it has not: others take signals meanwhile */
static long replace(struct rt_sigview *v, int sig, const struct rt_ksig *want, struct rt_ksig *prev)
{
	bool ours = want->handler > 1 || sig == SIGTRAP;
	struct rt_ksig k = ours ? mine(want) : *want, cur;
	struct rt_sigview was = *v;
	long r;

	if (want->handler > 1) {
		v->act = v->last = *want;
		v->ours = 1;
	}
	r = ksig(sig, &k, prev);
	if (rt_err(r)) {
		*v = was;
		return r;
	}
	shown(&was, prev);
	v->act = *want;
	v->ours = ours;
	if (want->handler > 1 && !rt_err(ksig(sig, NULL, &cur))) { /* without what the kernel does not know */
		v->act.flags &= cur.flags;
		v->act.mask &= cur.mask;
	}
	return r;
}

/* rt_sigaction of the program */
long rt_sig_action(struct rt_tcb *t, long sig, uint64_t act, uint64_t old, uint64_t size)
{
	struct rt_ksig want, prev;
	int err = act ? rt_copy_out(&want, act, sizeof(want)) : 0;
	long r;

	if (size != 8 || sig < 1 || sig > 64 || err == -EFAULT)
		return rt_sc(__NR_rt_sigaction, sig, act, old, size); /* fails */
	if (err)
		memcpy(&want, (void *)act, sizeof(want));
	if (act) {
		r = replace(&t->sig[sig], (int)sig, &want, &prev);
	} else {
		r = ksig((int)sig, NULL, &prev);
		shown(&t->sig[sig], &prev);
	}
	if (rt_err(r) || !old)
		return r;
	err = rt_copy_in(old, &prev, sizeof(prev));
	if (err == -EFAULT)
		return err;
	if (err)
		memcpy((void *)old, &prev, sizeof(prev));
	return 0;
}

static bool within(uint64_t rip, const char *lo, const char *hi)
{
	return rip >= (uint64_t)lo && rip < (uint64_t)hi;
}

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
	in->w = (struct rt_where){t->t.target - 2, RUN_STOP_IN_HOOK, ~0u, 0, 0, 0};
	in->gpr[RCX] = t->t.target;
	in->gpr[R15] = t->t.r15;
}

static void in_full(struct rt_tcb *t, uint64_t rip, struct rt_intr *in)
{
	uint64_t lp = in->gpr[R15];

	if (rip >= (uint64_t)rt_full_regs) {
		lp = t->t.lp;
		saved(t, in);
	}
	if (rip >= (uint64_t)rt_full_saved)
		in->rflags = rt_rflags(in->rflags, t->sv.flags);
	at_resume(t, in, lp);
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

static void in_slow(struct rt_tcb *t, uint64_t rip, struct rt_intr *in)
{
	uint64_t rax = in->gpr[RAX];
	bool real = rip >= (uint64_t)rt_finish_end;

	if (rip < (uint64_t)rt_slow_saved) {
		in->gpr[RAX] = t->sv.nr;
		in->rflags = rt_rflags(in->rflags, t->sv.flags);
		uncalled(t, in, in->gpr[R15]);
		return;
	}
	if (rip >= (uint64_t)rt_real_after) {
		if (rip < (uint64_t)rt_real_done)
			t->sv.gpr[RAX] = rax;
		rt_syscall_post(t);
	}
	saved(t, in);
	in->rflags = rt_rflags(in->rflags, t->sv.flags);
	if (rip < (uint64_t)rt_finish || (real && rip < (uint64_t)rt_real_after)) {
		rt_syscall_undo(t, real);
		uncalled(t, in, t->t.lp);
	} else {
		called(t, in, t->t.lp);
	}
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

/* where the signal found the thread, from the ucontext as the kernel filled it in */
static void look(struct rt_tcb *t, const uint64_t *uc, struct rt_intr *in)
{
	uint64_t rip = uc[MC_RIP];

	in->ip = rip;
	in->rflags = uc[MC_EFLAGS];
	for (int i = 0; i < 16; i++)
		in->gpr[i] = uc[rt_uc_word[i]];
	if (within(rip, rt_full_entry, rt_full_end)) {
		in_full(t, rip, in);
	} else if (within(rip, rt_sys_entry, rt_sys_end)) {
		in_fast(t, rip, in);
	} else if (within(rip, rt_sig_open, rt_sig_open_end)) {
		in_window(t, in);
	} else if (within(rip, rt_text_lo, rt_text_hi)) {
		in_slow(t, rip, in);
	} else {
		bool log = rt_in_ring(in->gpr[R15]);

		raw(in, rip, log ? in->gpr[R15] : t->t.lp);
		in->raw[R15] = in->gpr[R15];
		in->lp_in_r15 = log;
		rt_xlat(t, in->gpr, rip, &in->rflags, &in->w);
	}
}

static void put(uint64_t *uc, const uint64_t *gpr, uint64_t rip, uint64_t rflags)
{
	for (int i = 0; i < 16; i++)
		uc[rt_uc_word[i]] = gpr[i];
	uc[MC_RIP] = rip;
	uc[MC_EFLAGS] = rflags;
}

/* the address of the unexpected entry when this is one of our int3, else 0 */
static uint64_t unexpected(int sig, const int *info, uint64_t rip)
{
	const struct rt_module *m = sig == SIGTRAP && info[2] == SI_KERNEL ? rt_mod_traced(rip - 1) : NULL;

	return m && rt_xlat_patched(m, (uint32_t)(rip - 1 - m->bias)) ? rip - 1 : 0;
}

static struct rt_tcb *tcb_now(void)
{
	struct rt_tcb *t;

	__asm__ volatile("mov %%gs:%c1, %0" : "=r"(t) : "i"(T_SELF));
	return t;
}

/* The trace ends. true: the program goes on in its original text; false: it has others in the copies, and its log is
 * thrown away */
static bool stop(struct rt_tcb *t, uint32_t reason, int sig, const struct rt_intr *in)
{
	struct run_stop_state st;

	memset(&st, 0, sizeof(st));
	memcpy(st.gpr, in->gpr, sizeof(st.gpr));
	st.async = reason != RUN_STOP_UNEXPECTED && in->w.where != RUN_STOP_IN_HOOK;
	st.signo = reason == RUN_STOP_SIGNAL ? sig : 0;
	st.rip = in->w.rip;
	st.where = (uint16_t)in->w.where;
	st.module = in->w.module;
	st.copy_off = in->w.copy_off;
	st.bytes = in->w.off;
	st.ahead = in->w.ahead;
	st.ip = in->ip;
	st.rflags = in->rflags;
	t->t.lp = in->lp;
	if (!rt_stop_at(t, reason, &st))
		return false;
	rt_stop(t, reason, &st);
	rt_sig_restore(t->sig);
	rt_sc(__NR_arch_prctl, ARCH_SET_GS_OP, 0);
	return true;
}

/* An int3 of ours. Whoever jumped here and gave r15 back led out of traced code: a mark is due, and it goes on in the
 * copy, unless that returns to known callers only; else the trace stops, the program goes on in its original text. */
static void trapped(struct rt_tcb *t, uint64_t *uc, uint64_t trap)
{
	struct rt_intr in = {.rflags = uc[MC_EFLAGS], .lp = t->t.lp, .ip = trap};
	struct rt_module *m = rt_mod_traced(trap);
	bool due = true;

	for (int i = 0; i < 16; i++)
		in.gpr[i] = uc[rt_uc_word[i]];
	if (rt_in_ring(in.gpr[R15])) {
		in.lp = in.gpr[R15];
		in.gpr[R15] = t->t.r15;
		due = false;
	}
	in.w = (struct rt_where){trap, RUN_STOP_IN_TEXT, ~0u, 0, 0, 0};
	t->t.lp = in.lp;
	rt_map_avoid(m, (uint32_t)(trap - m->bias));
	put(uc, in.gpr, trap, in.rflags);
	rt_event(t, RUN_EV_UNEXPECTED, trap);
	in.lp = t->t.lp;
	if ((!due || !rt_enter(t, uc)) && !stop(t, RUN_STOP_UNEXPECTED, SIGTRAP, &in))
		rt_enter_anyway(t, uc);
}

/* The mask in force when the kernel made the frame. Calls that put another one in its place while they wait
 * leave it so when a signal ends them; the frame has the one from before (the kernel's set_user_sigmask()). */
static uint64_t mask_now(const struct rt_tcb *t, const uint64_t *uc, uint64_t rip)
{
	uint64_t p = 0, mask;

	if (rip != (uint64_t)rt_sys_after || uc[rt_uc_word[RAX]] != (uint64_t)-EINTR)
		return uc[MC_MASK];
	switch (t->sv.nr) {
	case __NR_rt_sigsuspend:
		p = uc[rt_uc_word[RDI]];
		break;
	case __NR_ppoll:
		p = uc[rt_uc_word[R10]];
		break;
	case __NR_epoll_pwait:
	case 441: /* epoll_pwait2 */
		p = uc[rt_uc_word[R8]];
		break;
	case __NR_pselect6:
	case 333: /* io_pgetevents */
		p = uc[rt_uc_word[R9]]; /* address and size of the mask */
		if (p && rt_copy_out(&p, p, sizeof(p)))
			p = 0;
		break;
	}
	return p && !rt_copy_out(&mask, p, sizeof(mask)) ? mask : uc[MC_MASK];
}

static uint64_t mask_for(const struct rt_ksig *act, int sig, uint64_t mask)
{
	mask |= act->mask;
	return act->flags & SA_NODEFER ? mask : mask | 1ull << (sig - 1);
}

static bool can_return(const struct rt_ksig *act)
{
	return (act->flags & SA_RESTORER) && rt_mod_traced(act->restorer);
}

/* SA_RESETHAND: the kernel has reset it; SIGTRAP stays ours */
static void reset(struct rt_sigview *v, int sig)
{
	v->act.handler = 0;
	if (sig == SIGTRAP) {
		struct rt_ksig k = mine(&v->act);

		ksig(sig, &k, NULL);
	}
}

static struct rt_go deliver(struct rt_tcb *t, int sig, uint64_t *uc)
{
	struct rt_sigview *v = &t->sig[sig];
	struct rt_ksig act = v->act.handler > 1 || sig == SIGTRAP ? v->act : v->last;
	uint64_t mask = mask_for(&act, sig, mask_now(t, uc, uc[MC_RIP]));
	uint32_t reason = act.handler > 1 && can_return(&act) ? 0 : RUN_STOP_SIGNAL;
	struct rt_intr in;
	bool left = false;

	look(t, uc, &in);
	t->th.calling = 0;
	if (reason)
		left = stop(t, reason, sig, &in);
	while (!left && act.handler > 1) {
		reason = rt_frame_enter(t, sig, (uint64_t)uc, &in);
		if (!reason)
			break;
		left = stop(t, reason, sig, &in);
	}
	put(uc, in.gpr, in.w.rip, in.rflags);
	if (act.handler > 1 && (act.flags & SA_RESETHAND))
		reset(v, sig);
	if (act.handler <= 1) { /* the program's default: die of it, at the right place */
		ksig(sig, &act, NULL);
		rt_sc(__NR_tgkill, rt_getpid(), rt_sc(__NR_gettid), sig);
		return (struct rt_go){0, 0};
	}
	if (left) {
		rt_out.mask = mask;
		rt_out.rip = act.handler;
		return (struct rt_go){1, 0};
	}
	t->t.target = act.handler;
	t->sv.mask = mask;
	return (struct rt_go){1, 1};
}

bool rt_sig_pause(struct rt_tcb *t, int sig, uint64_t *uc)
{
	struct rt_intr in;

	look(t, uc, &in);
	put(uc, in.gpr, in.w.rip, in.rflags);
	return !rt_frame_enter(t, sig, (uint64_t)uc, &in);
}

void rt_sig_unpause(struct rt_tcb *t, uint64_t *uc)
{
	rt_frame_leave(t, uc, (uint64_t)uc);
}

struct rt_go rt_signal(int sig, const int *info, uint64_t *uc)
{
	uint64_t trap = unexpected(sig, info, uc[MC_RIP]);
	struct rt_tcb *t = tcb_now();

	if (rt_halted(t, sig, info, uc))
		return (struct rt_go){0, 0};
	if (trap) {
		trapped(t, uc, trap);
		return (struct rt_go){0, 0};
	}
	if (t->sig[sig].act.handler == 1 && info[2] <= 0)
		return (struct rt_go){0, 0}; /* sent by somebody, and the program ignores it */
	return deliver(t, sig, uc);
}
