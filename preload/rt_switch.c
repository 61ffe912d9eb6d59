/* SPDX-License-Identifier: MIT
 *
 * rt_switch.c - from recording for a replay to recording in full
 *
 * Where a program stops being alone (a thread, a child, memory that it shares) or the kernel does what cannot be
 * told later, a new image begins in the run directory, as with an exec: full maps, a ring and a collector of
 * its own, Intel PT if it opens, a start state. The program goes on in the full copies at the very instruction. Nothing of
 * the old copies is on any stack.
 *
 *   proc-PID.N: record stream … REC_SWITCH        proc-PID.N+1: start.bin, RESUME at that instruction …
 */
#include "rt.h"

static void take(const uint64_t *uc, uint64_t *regs)
{
	for (int i = 0; i < 16; i++)
		regs[i] = uc[rt_uc_word[i]];
	regs[16] = uc[UC_RIP / 8];
}

static int begin(uint64_t *uc)
{
	uint64_t regs[17];
	int r;

	take(uc, regs);
	rt.active = false; /* as in the constructor: files are written from here */
	rt_slow_all = 0;
	rt.nmod = rt.nindex = rt.next_id = 0;
	rt.ring = NULL;
	if (rt_pt_look() || rt_dir_next() || rt_ring_open() || rt_pt_open())
		return -EIO;
	r = rt_mod_start();
	if (rt_ring_ready())
		return -EIO;
	if (!r)
		r = rt_start_write("start.bin", regs, uc[UC_EFLAGS / 8]);
	rt.active = !r;
	return r;
}

/* The program's state is in uc; afterwards what it goes on with, or what it was. The new TCB, which is in force,
 * or NULL: it must go on in the original text */
static struct rt_tcb *change(struct rt_tcb *t, uint64_t *uc, uint32_t where, const char *why)
{
	struct ring_head *old = rt.ring;
	uint64_t size = ring_size(old), mask;
	int r;

	if (where == REC_SOMEWHERE)
		rt_record_place(t, uc);
	rt_record_end(t, REC_SWITCH, where, uc[UC_RIP / 8]);
	rt_chunk_give(t, RING_END);
	rt_proc(t)->nlive = 0;
	t->th.life = RING_THREAD_FREE;
	old->switched = 1;
	__atomic_store_n(&rt_proc(t)->state, RING_EXEC, __ATOMIC_RELEASE);
	rt_ring_kick();
	rt_unapply_all();
	rt_vdso_signal(uc[UC_RIP / 8]);
	rt_sig_full();
	rt_record_not(why);
	mask = rt_sc(__NR_umask, rt.umask);
	r = begin(uc);
	rt_sc(__NR_umask, mask);
	if (!r && rt.pt) {
		rt_sc(__NR_arch_prctl, 0x1001 /* ARCH_SET_GS */, rt.main);
		r = rt_pt_start();
	}
	if (r) {
		rt_unapply_all();
		rt.stopped = true;
		rt_sig_restore(rt.sig);
		rt_sc(__NR_arch_prctl, 0x1001, 0);
		rt_say("cannot go on tracing; running untraced", NULL, NULL, NULL);
		return NULL;
	}
	if (!rt_enter_called(rt.main, uc))
		rt.main->t.r15 = uc[rt_uc_word[R15]]; /* opaque code: a mark is due */
	rt_sc(__NR_arch_prctl, 0x1001, rt.main);
	rt_munmap((uint64_t)old, size); /* which tells its collector */
	return rt.main;
}

/* from a signal handler, with the program's state in uc; the TCB in force then, or NULL */
struct rt_tcb *rt_switch_signal(struct rt_tcb *t, uint64_t *uc)
{
	return change(t, uc, REC_SOMEWHERE, "a signal came while it computed");
}

/* A signal is about to end the process where uc says, while it computes. What a replay needs to find that place, memory and
 * all, is written down before. */
void rt_switch_never(struct rt_tcb *t, const uint64_t *uc)
{
	uint64_t regs[17];

	take(uc, regs);
	rt_record_place(t, uc);
	rt.restorable = false;
	rt_start_write("place.bin", regs,
		       uc[UC_EFLAGS / 8]); /* if not, the place is not found, and that is said */
}

/* from the hook of a system call: rip is the instruction that the program goes on with. RT_DO_* */
int rt_switch_here(struct rt_tcb *t, uint64_t rip, const char *why)
{
	uint64_t uc[UC_SIZE / 8], rflags = rt_rflags_hook(t);
	struct rt_regs sv;
	struct rt_tcb *n;

	rt_hold_block(t);
	sv = t->sv;
	memset(uc, 0, sizeof(uc));
	for (int i = 0; i < 16; i++)
		uc[rt_uc_word[i]] = sv.gpr[i];
	uc[rt_uc_word[R15]] = t->t.r15;
	if (rip != t->t.target) /* the call is still to be made */
		uc[rt_uc_word[RAX]] = sv.nr;
	uc[UC_RIP / 8] = rip;
	uc[UC_EFLAGS / 8] = rflags;
	n = change(t, uc, 0, why);
	for (int i = 0; i < 16; i++)
		sv.gpr[i] = uc[rt_uc_word[i]];
	sv.rip = uc[UC_RIP / 8];
	sv.flags = rt_lahf(uc[UC_EFLAGS / 8]);
	if (!n) {
		rt_out = sv;
		return RT_DO_LEAVE;
	}
	n->sv = sv;
	n->t.resume = sv.rip;
	n->t.target =
		rip; /* a signal that has come meanwhile finds the program there (called() in rt_sigwhere.c) */
	return RT_DO_FINISH;
}
