/* SPDX-License-Identifier: MIT
 *
 * rt_sig.c - signals
 *
 * For every handler the program installs, the kernel gets rt_sig_entry, with every signal in
 * its mask; what the program reads back is its own. The first delivery stops the trace cleanly:
 *
 *   kernel ─▶ rt_sig_entry ─▶ rt_signal(): state in the ucontext translated, text and handlers
 *                             restored ─▶ the program's handler, on the kernel's frame
 *
 * SIGTRAP is ours from the start, for the int3 that fill dead bytes of relocated code.
 */
#include "rt.h"

#define SIGTRAP 5
#define SA_SIGINFO 4u
#define SA_NODEFER 0x40000000u
#define SA_RESTORER 0x04000000u
#define SI_KERNEL 0x80
#define ARCH_SET_GS_OP 0x1001

/* struct ucontext (arch/x86/include/uapi/asm/sigcontext.h) as words */
#define UC_MASK 37
#define MC_RIP 21
#define MC_EFLAGS 22
static const uint8_t mc_word[16] = {
	[R8] = 5,   [R9] = 6,	[R10] = 7,  [R11] = 8,	[R12] = 9,  [R13] = 10, [R14] = 11, [R15] = 12,
	[RDI] = 13, [RSI] = 14, [RBP] = 15, [RBX] = 16, [RDX] = 17, [RAX] = 18, [RCX] = 19, [RSP] = 20};

static long ksig(int sig, const struct rt_ksig *act, struct rt_ksig *old)
{
	return rt_sc(__NR_rt_sigaction, sig, act, old, 8);
}

static void install(int sig, const struct rt_ksig *like)
{
	struct rt_ksig k = *like;

	k.handler = (uint64_t)rt_sig_entry;
	k.mask = ~0ull;
	k.flags |= SA_SIGINFO; /* without it the kernel does not fill in the siginfo we look at */
	if (!(k.flags & SA_RESTORER)) {
		k.flags |= SA_RESTORER;
		k.restorer = (uint64_t)rt_restorer;
	}
	ksig(sig, &k, NULL);
}

int rt_sig_init(void)
{
	struct rt_sigview *v = &rt.sig[SIGTRAP];
	struct rt_ksig ours = {0, 0, 0, 0};

	if (rt_err(ksig(SIGTRAP, NULL, &v->act)) || v->act.handler > 1)
		return 0; /* the program's own is there already: leave it */
	v->ours = 1;
	install(SIGTRAP, &ours);
	return 0;
}

bool rt_sig_handled(void)
{
	for (int i = 1; i <= 64; i++)
		if (i != 32 && i != 33 && rt.sig[i].ours && rt.sig[i].act.handler > 1) /* libc's own */
			return true;
	return false;
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

/* rt_sigaction of the program. The kernel checks and copies its pointers; signals are blocked,
 * so nothing is delivered between its call and ours. */
long rt_sig_action(struct rt_tcb *t, long sig, uint64_t act, uint64_t old, uint64_t size)
{
	long r = rt_sc(__NR_rt_sigaction, sig, act, old, size);
	struct rt_sigview *v;
	struct rt_ksig cur;

	if (rt_err(r) || sig < 1 || sig > 64)
		return r;
	v = &t->sig[sig];
	if (old && v->ours && ((struct rt_ksig *)old)->handler == (uint64_t)rt_sig_entry)
		*(struct rt_ksig *)old = v->act;
	if (!act || rt_err(ksig((int)sig, NULL, &cur)))
		return r;
	v->act = cur;
	v->ours = cur.handler > 1 || sig == SIGTRAP;
	if (v->ours)
		install((int)sig, &cur);
	return r;
}

static bool within(uint64_t rip, const char *lo, const char *hi)
{
	return rip >= (uint64_t)lo && rip < (uint64_t)hi;
}

/* the program's state when a signal interrupted the runtime's own assembly */
static void in_hook(struct rt_tcb *t, uint64_t *gpr, uint64_t rip, uint64_t *rflags, struct rt_where *w)
{
	bool sv = within(rip, rt_slow_saved, rt_text_hi);
	uint64_t rsp = gpr[RSP]; /* the program's wherever a signal can arrive; a child's may be new */

	*w = (struct rt_where){t->t.target - 2, RUN_STOP_IN_HOOK, ~0u, 0, 0, 0};
	if (within(rip, rt_full_entry, rt_full_end)) {
		if (rip >= (uint64_t)rt_full_saved) {
			memcpy(gpr, t->sv.gpr, sizeof(t->sv.gpr));
			*rflags = rt_rflags(*rflags, t->sv.flags);
			gpr[RSP] = rsp;
			gpr[R15] = t->t.lp;
		}
		rt_xlat(t, gpr, t->t.resume, rflags, w);
		return;
	}
	if (sv) {
		uint64_t rax = gpr[RAX];

		memcpy(gpr, t->sv.gpr, sizeof(t->sv.gpr));
		*rflags = rt_rflags(*rflags, t->sv.flags);
		gpr[RSP] = rsp;
		if (within(rip, rt_real_after, rt_real_done))
			gpr[RAX] = rax;
		if (rip >= (uint64_t)rt_real_after || within(rip, rt_finish, rt_finish_end))
			w->rip = t->t.target;
		if (rip >= (uint64_t)rt_finish)
			t->t.lp = t->lp0;
	} else if (within(rip, rt_sys_after, rt_sys_end)) {
		w->rip = t->t.target;
	} else if (rip >= (uint64_t)rt_sys_nr) {
		gpr[RAX] = t->sv.nr;
		if (rip >= (uint64_t)rt_sys_flags)
			*rflags = rt_rflags(*rflags, t->sv.flags);
	}
	if (w->rip == t->t.target)
		gpr[RCX] = t->t.target;
	gpr[R15] = t->t.r15;
}

static void put(uint64_t *uc, const uint64_t *gpr, uint64_t rip, uint64_t rflags)
{
	for (int i = 0; i < 16; i++)
		uc[mc_word[i]] = gpr[i];
	uc[MC_RIP] = rip;
	uc[MC_EFLAGS] = rflags;
}

/* the address of the unexpected entry when this is one of our int3, else 0 */
static uint64_t unexpected(int sig, const int *info, uint64_t rip)
{
	struct rt_module *m = rt_mod_at(rip - 1);
	const struct map_range *r;
	uint64_t n;

	if (sig != SIGTRAP || info[2] != SI_KERNEL || !m || m->kind != 1 || !m->patched)
		return 0;
	r = rt_map_sect(m->map, MAP_RANGES, &n, sizeof(*r));
	for (uint64_t i = 0; i < n; i++)
		if (rip - 1 - m->bias >= r[i].start && rip - 1 - m->bias < r[i].end)
			return rip - 1;
	return 0;
}

static struct rt_tcb *tcb_now(void)
{
	struct rt_tcb *t;

	__asm__ volatile("mov %%gs:%c1, %0" : "=r"(t) : "i"(T_SELF));
	return t;
}

/* stops the trace and translates the interrupted state into the ucontext */
static void interrupt(struct rt_tcb *t, int sig, uint64_t *uc, uint64_t trap)
{
	struct run_stop_state st;
	struct rt_where w;
	uint64_t rip = uc[MC_RIP], rflags = uc[MC_EFLAGS], lp;

	memset(&st, 0, sizeof(st));
	for (int i = 0; i < 16; i++)
		st.gpr[i] = uc[mc_word[i]];
	lp = st.gpr[R15];
	if (trap) {
		if (rt_in_ring(lp)) {
			st.gpr[R15] = t->t.r15;
			t->t.lp = lp;
		}
		w = (struct rt_where){trap, RUN_STOP_IN_TEXT, ~0u, 0, 0, 0};
		rt_map_avoid(rt_mod_at(trap), (uint32_t)(trap - rt_mod_at(trap)->bias));
	} else if (within(rip, rt_text_lo, rt_text_hi)) {
		in_hook(t, st.gpr, rip, &rflags, &w);
	} else {
		rt_xlat(t, st.gpr, rip, &rflags, &w);
		if (rt_in_ring(lp))
			t->t.lp = lp;
	}
	put(uc, st.gpr, w.rip, rflags);
	st.async = !trap && w.where != RUN_STOP_IN_HOOK && !t->vm;
	st.signo = sig;
	st.rip = w.rip;
	st.where = t->vm ? RUN_STOP_IN_HOOK : w.where;
	st.module = w.module;
	st.copy_off = w.copy_off;
	st.bytes = w.off;
	st.ahead = w.ahead;
	st.rflags = rflags;
	if (trap && !t->vm && !rt.stopped)
		rt_mark(t, RUN_MARK_EVENT, RUN_EV_UNEXPECTED, trap);
	rt_stop(t, trap ? RUN_STOP_UNEXPECTED : RUN_STOP_SIGNAL, &st);
	rt_sig_restore(t->sig);
}

static uint64_t go(struct rt_sigview *v, int sig, const uint64_t *uc)
{
	uint64_t mask = uc[UC_MASK] | v->act.mask;

	if (!(v->act.flags & SA_NODEFER))
		mask |= 1ull << (sig - 1);
	rt_sc(__NR_rt_sigprocmask, 2, &mask, 0, 8);
	return v->act.handler;
}

/* returns the program's handler to go on in, or 0 to return through sigreturn */
uint64_t rt_signal(int sig, const int *info, uint64_t *uc)
{
	uint64_t rip = uc[MC_RIP], trap = unexpected(sig, info, rip);
	struct rt_tcb *t = tcb_now();
	struct rt_sigview *v = &t->sig[sig];

	if (!trap && v->act.handler == 1 && info[2] <= 0)
		return 0; /* sent by somebody, and the program ignores it */
	interrupt(t, sig, uc, trap);
	rt_sc(__NR_arch_prctl, ARCH_SET_GS_OP, 0);
	if (trap)
		return 0;
	if (v->act.handler > 1)
		return go(v, sig, uc);
	/* the program's default: die of it, at the right place */
	rt_sc(__NR_tgkill, rt_getpid(), rt_sc(__NR_gettid), sig);
	return 0;
}
