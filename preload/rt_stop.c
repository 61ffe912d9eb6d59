/* SPDX-License-Identifier: MIT
 *
 * rt_stop.c - clean stop: the program goes on untraced in its original text
 *
 * The text is restored, the kernel gets the program's own signal handlers back, the collector
 * writes what is in the ring. Nothing can hold a copy address then: return addresses are
 * original ones, and the interrupted position itself is translated. That takes a thread that is alone in
 * its memory; of several, all go on in the copies, and what they log is thrown away (rt_ring.c).
 */
#include "rt.h"

#define ARCH_SET_GS_OP 0x1001

struct rt_regs rt_out;

/* st is complete but for the magic; tcb.lp is t's log pointer. What others log from here on is thrown away */
static void stop(struct rt_tcb *t, uint32_t reason, const struct run_stop_state *st)
{
	struct ring_proc *p = rt_proc(t);
	uint32_t run = RING_RUN;

	rt.stopped = true;
	if (__atomic_load_n(&p->state, __ATOMIC_RELAXED) != run)
		return;
	p->stop = *st;
	p->stop.magic = RUN_STOP_MAGIC;
	p->stop.version = RUN_VERSION;
	p->stop.reason = p->stop_reason = reason;
	p->stop.tid = t->th.tid;
	p->stop.lp_pos = rt_ring_pos(t, t->t.lp);
	p->stop_uid = t->th.uid;
	p->extra = 0;
	if (!st->async)
		rt_event(t, RUN_EV_STOP, reason);
	else if (st->where == RUN_STOP_IN_COPY && !(t->t.lp >> RUN_CHUNK_FULL_BIT & 1))
		p->extra = RUN_CHUNK_SLACK;
	__atomic_compare_exchange_n(&p->state, &run, RING_STOP, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	rt_ring_wait_done(p);
}

/* The trace ends. true: t is alone in its memory and must leave for the original text. false: others are in the
 * copies, too, and nobody can take them out at once, so everybody stays and logs for nothing. */
bool rt_stop_here(struct rt_tcb *t, uint32_t reason)
{
	struct run_stop_state st;

	memset(&st, 0, sizeof(st));
	memcpy(st.gpr, t->sv.gpr, sizeof(st.gpr));
	st.where = RUN_STOP_IN_HOOK;
	st.rip = t->t.target;
	return rt_stop_at(t, reason, &st);
}

bool rt_stop_at(struct rt_tcb *t, uint32_t reason, const struct run_stop_state *st)
{
	if (!t->vm && !rt.shared && rt_proc(t)->nlive == 1)
		return true;
	stop(t, reason, st);
	return false;
}

void rt_stop(struct rt_tcb *t, uint32_t reason, const struct run_stop_state *st)
{
	rt_unapply_all();
	stop(t, reason, st);
}

static void gs_clear(void)
{
	rt_sc(__NR_arch_prctl, ARCH_SET_GS_OP, 0);
}

/* stop at a slow path; the program goes on at rip with the saved registers, or, when rip is 0,
 * where tcb.resume stands for. Returns RT_DO_LEAVE */
int rt_stop_leave(struct rt_tcb *t, uint32_t reason, uint64_t rip)
{
	struct run_stop_state st;
	struct rt_where w = {rip, RUN_STOP_IN_HOOK, ~0u, 0, 0, 0, false};
	uint64_t rflags = rt_rflags_hook(t);

	memset(&st, 0, sizeof(st));
	memcpy(st.gpr, t->sv.gpr, sizeof(st.gpr));
	if (rip)
		st.gpr[R15] = t->t.r15;
	else
		rt_xlat(t, st.gpr, t->t.resume, &rflags, &w);
	st.async = !rip; /* at a space check no mark is expected */
	st.rip = w.rip;
	st.where = w.where;
	st.module = w.module;
	st.copy_off = w.copy_off;
	st.bytes = w.off;
	st.ahead = w.ahead;
	st.rflags = rflags;
	rt_stop(t, reason, &st);
	rt_sig_restore(t->sig);
	rt_out = t->sv;
	memcpy(rt_out.gpr, st.gpr, sizeof(st.gpr));
	rt_out.flags = rt_lahf(rflags);
	rt_out.rip = w.rip;
	gs_clear();
	return RT_DO_LEAVE;
}
