/* SPDX-License-Identifier: MIT
 *
 * rt_stop.c - clean stop: the program goes on untraced in its original text
 *
 * The text is restored, the kernel gets the program's own signal handlers back, the collector
 * writes what is in the ring. Nothing can hold a copy address then: return addresses are
 * original ones, and the interrupted position itself is translated. A fork child stops alone,
 * in its private memory, and never touches the shared ring.
 */
#include "rt.h"

#define ARCH_SET_GS_OP 0x1001

struct rt_regs rt_out;
uint32_t rt_rec_kind;
uint64_t rt_rec_tcb, rt_rec_rsp;
struct rt_sigview *rt_rec_sig;

/* st is complete but for the magic; tcb.lp of the traced thread is its log pointer */
void rt_stop(uint32_t reason, const struct run_stop_state *st)
{
	struct ring_head *h = rt.ring;
	struct rt_tcb *t = rt.tcb;

	if (rt.stopped)
		return;
	rt.stopped = true;
	h->stop = *st;
	h->stop.magic = RUN_STOP_MAGIC;
	h->stop.version = RUN_VERSION;
	h->stop.reason = h->stop_reason = reason;
	h->stop.lp_pos = rt_ring_pos(t, t->t.lp);
	h->extra = 0;
	if (!st->async)
		rt_mark(t, RUN_MARK_EVENT, RUN_EV_STOP, reason);
	else if (st->where == RUN_STOP_IN_COPY && t->t.lp - t->chunk < RUN_CHUNK_SIZE)
		h->extra = RUN_CHUNK_SLACK;
	rt_unapply_all();
	__atomic_store_n(&h->state, RING_STOP, __ATOMIC_RELEASE);
	rt_ring_wait_done();
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
	struct rt_where w = {rip, RUN_STOP_IN_HOOK, ~0u, 0};
	uint64_t rflags = rt_rflags(0x202, t->sv.flags);

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
	st.rflags = rflags;
	rt_stop(reason, &st);
	rt_sig_restore(t->sig);
	rt_out = t->sv;
	memcpy(rt_out.gpr, st.gpr, sizeof(st.gpr));
	rt_out.flags = (rflags & 0xd5) << 8 | (rflags >> 11 & 1);
	rt_out.rip = w.rip;
	gs_clear();
	return RT_DO_LEAVE;
}

/* in the child; rt_out was prepared by the parent before the call */
void rt_fork_child(void)
{
	rt.active = false;
	rt.stopped = true;
	rt.pid = (uint32_t)rt_getpid();
	rt_out.gpr[RSP] = rt_rec_rsp;
	rt_unapply_all();
	rt_sig_restore(rt_rec_sig);
	gs_clear();
	rt_munmap(rt.ring->base, (1ull + rt.nchunks) * RUN_CHUNK_SPAN);
	rt_dir_register();
}
