/* SPDX-License-Identifier: MIT
 *
 * rt_sigact.c - what the program wants done with signals, and what the kernel is told
 *
 * For every handler the program installs, the kernel gets rt_sig_entry, with every signal in its mask; what the program
 * reads back is its own. Some are ours from the start (rt_sig.c).
 */
#include "rt.h"

#define SIGTRAP 5
#define SIGSYS 31
#define SA_SIGINFO 4u
#define SA_RESTART 0x10000000u
#define SA_RESETHAND 0x80000000u
#define SA_RESTORER 0x04000000u

bool rt_sig_fault(int sig)
{
	return sig == 4 || sig == 5 || sig == 7 || sig == 8 || sig == 11; /* ILL TRAP BUS FPE SEGV */
}

/* By default they end the process, wherever it is. Those that only come of a call of its own are not among them, nor those
 * that the C library has for itself. */
static bool ends(int sig)
{
	static const uint64_t set = 1ull << 0 | 1ull << 1 | 1ull << 2 | 1ull << 9 | 1ull << 11 | 1ull << 13 |
				    1ull << 14 | 1ull << 15 | 1ull << 23 | 1ull << 25 | 1ull << 26 |
				    1ull << 28 | 1ull << 29 | ~0ull << 33;

	/* an init process gets none that it has no handler for (kernel, sig_task_ignored()), and would be given them */
	return rt.how == RT_RECORD && rt.pid != 1 && set >> (sig - 1) & 1;
}

/* The kernel has our handler although the program has that: SIG_DFL or SIG_IGN */
bool rt_sig_always(int sig, uint64_t handler)
{
	return sig == SIGTRAP || (rt.how == RT_REPLAY && sig == SIGSYS) ||
	       (rt.how != RT_FULL && !handler && (rt_sig_fault(sig) || ends(sig)));
}

long rt_ksig(int sig, const struct rt_ksig *act, struct rt_ksig *old)
{
	return rt_sc(__NR_rt_sigaction, sig, act, old, 8);
}

/* What is ours always is never reset by the kernel: between a delivery and its handler's first instruction other threads,
 * and we, would be without (rt_sig.c does it in the view) */
struct rt_ksig rt_sig_mine(int sig, const struct rt_ksig *like)
{
	struct rt_ksig k = *like;

	k.handler = (uint64_t)rt_sig_entry;
	k.mask = ~0ull;
	k.flags |= SA_SIGINFO; /* without it the kernel does not fill in the siginfo we look at */
	if (rt_sig_always(sig, 0))
		k.flags &= ~(uint64_t)SA_RESETHAND;
	if (like->handler <= 1) {
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

		if (rt_err(rt_ksig(i, NULL, &k)) || (v->ours && k.handler == (uint64_t)rt_sig_entry))
			continue;
		v->act = v->last = k;
		v->ours = k.handler > 1 || rt_sig_always(i, k.handler);
		if (!v->ours)
			continue;
		k = rt_sig_mine(i, &k);
		rt_ksig(i, &k, NULL);
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
		if (!rt_err(rt_ksig(i, NULL, &cur)) && cur.handler == (uint64_t)rt_sig_entry)
			rt_ksig(i, &sig[i].act, NULL);
	}
}

/* no recording any more */
void rt_sig_full(void)
{
	for (int i = 1; i <= 64; i++) {
		struct rt_sigview *v = &rt.sig[i];

		if (!v->ours || v->act.handler > 1 || i == SIGTRAP)
			continue;
		v->ours = 0;
		rt_ksig(i, &v->act, NULL);
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
	bool ours = want->handler > 1 || rt_sig_always(sig, want->handler);
	struct rt_ksig k = ours ? rt_sig_mine(sig, want) : *want, cur;
	struct rt_sigview was = *v;
	long r;

	if (want->handler > 1) {
		rt_hold_handler(sig, want->flags);
		v->act = v->last = *want;
		v->ours = 1;
	}
	r = rt_ksig(sig, &k, prev);
	if (rt_err(r)) {
		*v = was;
		return r;
	}
	shown(&was, prev);
	v->act = *want;
	v->ours = ours;
	if (want->handler > 1 &&
	    !rt_err(rt_ksig(sig, NULL, &cur))) { /* without what the kernel does not know */
		v->act.flags &= cur.flags | (want->flags & SA_RESETHAND);
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
		r = rt_ksig((int)sig, NULL, &prev);
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
