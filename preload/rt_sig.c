/* SPDX-License-Identifier: MIT
 *
 * rt_sig.c - signals
 *
 * A delivery, to the handler that the kernel has instead of the program's (rt_sigact.c):
 *
 *   kernel ─▶ rt_sig_entry ─▶ rt_signal(): where was the thread (rt_sigwhere.c)? its state translated into the ucontext
 *      ─▶ rt_frame_enter(): logged, and what the copy needs put aside ─▶ the program's handler,
 *         on the kernel's frame, with the mask the kernel would have set
 *      ─▶ the program's restorer ─▶ rt_sigreturn (rt_sigframe.c)
 *
 * Where that cannot be (the restorer is not traced, a vfork child) the first delivery stops the trace cleanly.
 *
 * SIGTRAP is ours from the start, for the int3 that fill dead bytes of relocated code; a recording and its replay have
 * all signals of faults, to say which instruction the program died of, and a recording those that would end the program while it
 * computes (rt_sigact.c), to say where.
 */
#include "rt.h"

#define SIGTRAP 5
#define SIGSYS 31
#define SA_NODEFER 0x40000000u
#define SA_RESETHAND 0x80000000u
#define SA_RESTORER 0x04000000u
#define SI_KERNEL 0x80
#define ARCH_SET_GS_OP 0x1001

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
	in.w = (struct rt_where){trap, RUN_STOP_IN_TEXT, ~0u, 0, 0, 0, false};
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

	if ((rip != (uint64_t)rt_sys_after && rip != (uint64_t)rt_real_after) ||
	    uc[rt_uc_word[RAX]] != (uint64_t)-EINTR)
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

/* SA_RESETHAND: the kernel has reset it, but for those that stay ours (rt_sig_mine()) */
static void reset(struct rt_sigview *v, int sig)
{
	v->act.handler = 0;
	if (rt_sig_always(sig, 0)) {
		struct rt_ksig k = rt_sig_mine(sig, &v->act);

		rt_ksig(sig, &k, NULL);
	}
}

/* a fault of the instruction that is next: a replay comes to it by itself */
static bool fault(int sig, const int *info)
{
	return info[2] > 0 && rt_sig_fault(sig);
}

/* The trace ends before the instruction that ends the program. */
static void say_end(struct rt_tcb *t, int sig, uint64_t uc, const struct rt_intr *in)
{
	struct ring_proc *p = rt_proc(t);

	if (rt_frame_enter(t, sig, uc, in))
		return;
	p->exit_code = 128 + (uint32_t)sig;
	rt_event(t, RUN_EV_EXIT, p->exit_code);
	rt_thread_end(t);
	__atomic_store_n(&p->state, RING_EXIT, __ATOMIC_RELEASE);
	rt_ring_kick();
}

/* Recording: where a signal that somebody sent has found the program: enum rec_when, or -1: while it computed,
 * which can be found again once (rt_reach.c) */
static int when(struct rt_tcb *t, uint64_t rip, const struct rt_intr *in)
{
	if (t->at_once)
		return REC_AT_SIGRETURN;
	if (within(rip, rt_sig_open, rt_sig_open_end))
		return REC_AT_HANDLER;
	if (!within(rip, rt_text_lo, rt_text_hi) || within(rip, rt_full_entry, rt_back_end))
		return -1;
	return in->w.where == RUN_STOP_IN_HOOK ? REC_BEFORE_CALL : REC_AFTER_CALL;
}

/* Recording: a signal that is none of a fault ends the program. */
static void killed(struct rt_tcb *t, int sig, const uint64_t *uc, const struct rt_intr *in)
{
	int at = when(t, in->ip, in);

	if (at != REC_BEFORE_CALL && at != REC_AFTER_CALL)
		rt_switch_never(t, uc);
	rt_record_end(t, REC_KILLED, (uint32_t)sig, in->w.rip);
}

/* The kernel is told of the program's default only now: what it does is right, and where. A recording says which
 * instruction it was. */
static struct rt_go die(struct rt_tcb *t, int sig, const int *info, uint64_t *uc, const struct rt_intr *in)
{
	struct rt_ksig act = t->sig[sig].act;

	if (rt.how == RT_RECORD && fault(sig, info))
		rt_record_end(t, REC_FAULT, (uint32_t)sig, in->w.rip);
	else if (rt.how == RT_RECORD)
		killed(t, sig, uc, in);
	if (rt.how == RT_REPLAY && fault(sig, info))
		say_end(t, sig, (uint64_t)uc, in);
	rt_ksig(sig, &act, NULL);
	rt_sc(__NR_tgkill, rt_getpid(), rt_sc(__NR_gettid), sig);
	return (struct rt_go){0, 0};
}

/* Recording: a handler is about to be entered. Said, or, if that cannot be, the recording ends, and everything is logged
 * from here on. The TCB in force; NULL: the program goes on in its original text */
static struct rt_tcb *recorded(struct rt_tcb *t, int sig, const int *info, uint64_t *uc, bool stops,
			       struct rt_intr *in)
{
	int at = fault(sig, info) ? 0 : when(t, uc[MC_RIP], in);

	t->at_once = 0;
	rt_vdso_signal(in->w.rip);
	if (at >= 0 && !stops) {
		if (!fault(sig, info))
			rt_record_signal(t, sig, info, (uint32_t)at);
		in->lp = t->th.rec; /* what is logged from here on must not be written over it */
		if (in->lp_in_r15)
			in->raw[R15] = in->lp;
		return t;
	}
	put(uc, in->gpr, in->w.rip, in->rflags);
	t = rt_switch_signal(t, uc);
	if (t)
		rt_sig_look(t, uc, in);
	in->visit = 1;
	return t;
}

/* A fault of the instruction itself (SIGILL, SIGFPE, a trap) names it in si_addr, too. */
static void name_insn(int *info, const struct rt_intr *in)
{
	uint64_t *addr = (uint64_t *)info + 2; /* siginfo_t: si_addr */

	if (info[2] > 0 && *addr == in->ip)
		*addr = in->w.rip;
}

static struct rt_go deliver(struct rt_tcb *t, int sig, int *info, uint64_t *uc)
{
	struct rt_sigview *v = &t->sig[sig];
	struct rt_ksig act = v->act.handler > 1 || rt_sig_always(sig, 0) ? v->act : v->last;
	uint64_t mask = mask_for(&act, sig, mask_now(t, uc, uc[MC_RIP]));
	uint32_t reason = act.handler > 1 && can_return(&act) ? 0 : RUN_STOP_SIGNAL;
	struct rt_intr in;
	bool left = false;

	if (rt.how == RT_RECORD)
		t->t.lp = t->th.rec;
	t = rt_sig_look(t, uc, &in);
	name_insn(info, &in);
	left = !t;
	if (t)
		t->th.calling = 0;
	if (!left && rt.how == RT_RECORD && act.handler > 1) {
		t = recorded(t, sig, info, uc, reason, &in);
		left = !t;
	}
	if (!left && reason && rt.how != RT_RECORD && (act.handler > 1 || rt.how != RT_REPLAY))
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
	if (act.handler <= 1)
		return die(t, sig, info, uc, &in);
	if (left) {
		rt_out.mask = mask;
		rt_out.rip = act.handler;
		return (struct rt_go){1, 0};
	}
	t->t.target = act.handler;
	t->sv.mask = mask;
	if (rt.how == RT_REPLAY)
		rt_replay_signal(t, REC_AT_HANDLER, &t->sv.mask);
	return (struct rt_go){1, 1};
}

bool rt_sig_pause(struct rt_tcb *t, int sig, uint64_t *uc)
{
	struct rt_intr in;

	rt_sig_look(t, uc, &in);
	put(uc, in.gpr, in.w.rip, in.rflags);
	return !rt_frame_enter(t, sig, (uint64_t)uc, &in);
}

void rt_sig_unpause(struct rt_tcb *t, uint64_t *uc)
{
	rt_frame_leave(t, uc, (uint64_t)uc);
}

struct rt_go rt_signal(int sig, int *info, uint64_t *uc)
{
	uint64_t trap = unexpected(sig, info, uc[MC_RIP]);
	struct rt_tcb *t = tcb_now();

	if (rt.how == RT_REPLAY && sig == SIGSYS && info[2] == 2 /* SYS_USER_DISPATCH */)
		rt_replay_diverged("code that is not traced makes a system call", uc[MC_RIP]);
	if (rt_halted(t, sig, info, uc))
		return (struct rt_go){0, 0};
	if (trap) {
		trapped(t, uc, trap);
		return (struct rt_go){0, 0};
	}
	if (t->sig[sig].act.handler == 1 && (info[2] <= 0 || rt.how == RT_RECORD))
		return (struct rt_go){0, 0}; /* sent by somebody, and the program ignores it */
	if (rt.how == RT_REPLAY)
		rt_replay_mask(&uc[MC_MASK]);
	return deliver(t, sig, info, uc);
}
