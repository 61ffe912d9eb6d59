/* SPDX-License-Identifier: MIT
 *
 * rt_thread.c - threads and processes: their TCBs, their birth, their end
 *
 *   parent                                     child
 *   rt_thread_new(): TCB, chunk
 *   clone, fork, vfork (rt_entry.S, all        gs = its TCB ─▶ rt_born(): who it is, START event ─▶ the
 *   signals blocked) ─▶ rt_syscall_post()      instruction behind the system call
 *
 * A thread's TCB and chunk are its own from before it exists, so nothing it does can meet another's.
 * A forked process has a copy of all memory of the runtime's but for the ring, where its TCB is another one,
 * too. A process in its parent's memory (vfork) is to the runtime one more thread there, with a
 * ring_proc of its own.
 */
#include "rt.h"

_Static_assert(offsetof(struct rt_tcb, sv) == T_SV, "rt_off.h");
_Static_assert(offsetof(struct rt_tcb, child) == T_CHILD, "rt_off.h");
_Static_assert(offsetof(struct rt_tcb, stamp) == T_STAMP, "rt_off.h");
_Static_assert(offsetof(struct rt_tcb, rflags) == T_RFLAGS, "rt_off.h");
_Static_assert(RING_THREAD_ENDED == RT_LIFE_ENDED, "rt_off.h");
_Static_assert(offsetof(struct rt_tcb, th) == RING_THREAD_OFF, "ring.h");
_Static_assert(offsetof(struct rt_tcb, th) + offsetof(struct ring_thread, life) == T_LIFE, "rt_off.h");
_Static_assert(offsetof(struct rt_tcb, th) + offsetof(struct ring_thread, calling) == T_CALLING, "rt_off.h");
_Static_assert(offsetof(struct tcb, lp) == T_LP && offsetof(struct tcb, r15) == T_R15, "rt_off.h");
_Static_assert(offsetof(struct tcb, resume) == T_RESUME && offsetof(struct tcb, target) == T_TARGET,
	       "rt_off.h");
_Static_assert(offsetof(struct tcb, self) == T_SELF && offsetof(struct tcb, rt_stack) == T_STACK &&
		       offsetof(struct tcb, place) == T_PLACE,
	       "rt_off.h");
_Static_assert(offsetof(struct rt_regs, rip) == R_RIP && offsetof(struct rt_regs, flags) == R_FLAGS,
	       "rt_off.h");
_Static_assert(offsetof(struct rt_regs, mask) == R_MASK && offsetof(struct rt_regs, nr) == R_NR, "rt_off.h");

#define STACK_PAGES 256 /* of a stack that is not the first thread's, so much is looked at */
#define STACK_MAIN_CAP (64ull << 20)

struct ring_proc *rt_proc(const struct rt_tcb *t)
{
	return ring_proc(rt.ring, t->th.proc);
}

/* ---- TCBs ---- */

static void at_least(uint32_t *word, uint32_t v)
{
	uint32_t old = __atomic_load_n(word, __ATOMIC_RELAXED);

	while (old < v &&
	       !__atomic_compare_exchange_n(word, &old, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* a free TCB becomes taken; NULL when all are in use */
static struct rt_tcb *take_tcb(uint32_t *index)
{
	struct ring_head *h = rt.ring;

	for (uint32_t n = 0, i = h->hint; n < h->nthreads; n++, i++) {
		struct ring_thread *th = ring_thread(h, i % h->nthreads);
		uint32_t life = RING_THREAD_FREE;

		if (th->life || !__atomic_compare_exchange_n(&th->life, &life, RING_THREAD_TAKEN, false,
							     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		*index = i % h->nthreads;
		h->hint = *index + 1;
		at_least(&h->nslots, *index + 1);
		return (void *)ring_tcb(h, *index);
	}
	return NULL;
}

static struct rt_tcb *tcb_new(uint32_t proc)
{
	uint32_t i;
	struct rt_tcb *t = take_tcb(&i);
	uint8_t *private;

	if (!t)
		return NULL;
	private = (uint8_t *)rt.private + (uint64_t)i * RT_PRIVATE;
	memset(t, 0, offsetof(struct rt_tcb, th));
	rt_hold_never(t);
	t->t.self = (uint64_t)t;
	t->t.chunk_full = (uint64_t)rt_full_entry;
	t->t.syscall = (uint64_t)rt_sys_entry;
	t->t.back = (uint64_t)rt_back_entry;
	t->t.nondet = (uint64_t)rt_full_entry; /* rt_chunk_full() sees which by tcb.what */
	t->t.rt_stack = (uint64_t) private + RT_PRIVATE;
	t->sig_own = (void *)private;
	t->sig = rt.sig;
	t->th.proc = proc;
	t->th.tid = 0;
	t->th.chunk = RING_NONE;
	t->th.calling = 1; /* until it is in the program's code */
	t->th.pt = t->th.pt_error = RING_PT_NONE;
	t->th.rec = 0;
	t->th.uid = __atomic_add_fetch(&rt.ring->nuid, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&rt.ring->live, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&ring_proc(rt.ring, proc)->nlive, 1, __ATOMIC_RELAXED);
	if (rt_chunk_take(t, 0))
		return t;
	rt_thread_drop(t);
	return NULL;
}

/* one less is alive in its process; how many are left */
static uint32_t gone(struct rt_tcb *t)
{
	__atomic_sub_fetch(&rt.ring->live, 1, __ATOMIC_RELAXED);
	return __atomic_sub_fetch(&rt_proc(t)->nlive, 1, __ATOMIC_ACQ_REL);
}

/* it did not come to life */
void rt_thread_drop(struct rt_tcb *t)
{
	if (t->th.chunk != RING_NONE)
		ring_push_free(rt.ring, t->th.chunk);
	t->th.chunk = RING_NONE;
	gone(t);
	if (t->born)
		__atomic_store_n(&rt_proc(t)->state, RING_FREE, __ATOMIC_RELEASE);
	__atomic_store_n(&t->th.life, RING_THREAD_FREE, __ATOMIC_RELEASE);
}

/* t's last chunk is on its way; how many threads of its process are left. Its TCB, whose pages are there, is the
 * next to be taken */
uint32_t rt_thread_end(struct rt_tcb *t)
{
	rt.ring->hint = ((uint64_t)t - (uint64_t)ring_tcb(rt.ring, 0)) / RING_PAGE;
	if (rt.stopped) {
		rt_ring_wait_done(rt_proc(t)); /* the collector may be reading it */
		rt_chunk_desc(t)->filled = RING_UNKNOWN;
		ring_push_free(rt.ring, t->th.chunk);
		t->th.chunk = RING_NONE;
	} else {
		rt_chunk_give(t, RING_END);
	}
	__atomic_store_n(&t->th.life, RING_THREAD_ENDED, __ATOMIC_RELEASE);
	return gone(t);
}

/* ---- processes ---- */

static uint32_t proc_new(const struct ring_proc *parent, uint32_t how)
{
	struct ring_head *h = rt.ring;

	/* in turn: who waits for `done` in an entry has time to see it */
	for (uint32_t n = 0, i = h->proc_hint; n < RING_PROCS; n++, i++) {
		struct ring_proc *p = ring_proc(h, i %= RING_PROCS);
		uint32_t state = RING_FREE;

		if (p->state || !__atomic_compare_exchange_n(&p->state, &state, RING_TAKEN, false,
							     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		p->pid = p->done = p->stop_reason = p->exit_code = p->nlive = 0;
		p->extra = 0;
		p->stop.magic = 0;
		p->uid = __atomic_add_fetch(&h->nproc_uid, 1, __ATOMIC_RELAXED);
		p->parent = parent ? parent->uid : 0;
		p->nmodules = rt.nindex;
		p->start = how;
		h->proc_hint = i + 1;
		at_least(&h->nprocs, i + 1);
		return i;
	}
	return RING_NONE;
}

/* Processes that have ended, of which the collector has not written everything yet */
bool rt_room_comes(void)
{
	for (uint32_t i = 0; i < RING_PROCS; i++)
		if (ring_proc(rt.ring, i)->state == RING_EXIT)
			return !rt_ring_dead();
	return false;
}

struct rt_tcb *rt_thread_first(void)
{
	struct rt_tcb *t = tcb_new(proc_new(NULL, 0));

	rt_proc(t)->pid = t->th.tid = rt.pid;
	t->th.calling = 0;
	rt_chunk_desc(t)->tid = rt.pid;
	__atomic_store_n(&t->th.life, RING_THREAD_LIVE, __ATOMIC_RELEASE);
	__atomic_store_n(&rt_proc(t)->state, RING_RUN, __ATOMIC_RELEASE);
	return t;
}

/* A TCB for what t's system call is going to make, how: RUN_START_*, 0 for a thread. It has t's
 * registers. NULL when there is no room for more */
struct rt_tcb *rt_thread_new(struct rt_tcb *t, uint32_t how)
{
	uint32_t proc = how ? proc_new(rt_proc(t), how) : t->th.proc;
	struct rt_tcb *c = proc == RING_NONE ? NULL : tcb_new(proc);

	if (!c) {
		if (how && proc != RING_NONE)
			__atomic_store_n(&ring_proc(rt.ring, proc)->state, RING_FREE, __ATOMIC_RELEASE);
		return NULL;
	}
	c->born = how;
	c->vm = how && how != RUN_START_FORK ? 1 : t->vm;
	c->t.r15 = t->t.r15;
	c->t.resume = t->t.resume;
	c->t.target = t->t.target;
	c->sv = t->sv;
	c->parent_rsp = t->sv.gpr[RSP];
	c->stamp = t->stamp = rt_tsc_there(); /* there are two whose order somebody may want to know */
	return c;
}

/* ---- birth ---- */

/* How much of the stack, from rsp on, may hold callers' frames: what can be read. Behind a thread's stack another's
 * guard page may follow, so the kernel is asked for a byte of each page; where it may not be asked (a filter of
 * system calls), this page is all that is known. */
uint64_t rt_stack_size(uint64_t rsp)
{
	uint64_t page = rsp & ~(RT_PAGE - 1);
	struct {
		uint64_t at, n;
	} from[STACK_PAGES], to = {0, STACK_PAGES};
	uint8_t bytes[STACK_PAGES];
	long n;

	if (rsp < rt.stack_hi && rt.stack_hi - rsp <= STACK_MAIN_CAP)
		return rt.stack_hi - rsp;
	for (uint64_t i = 0; i < STACK_PAGES; i++) {
		from[i].at = page + i * RT_PAGE;
		from[i].n = 1;
	}
	to.at = (uint64_t)bytes;
	n = rt_sc(__NR_process_vm_readv, rt_gettid(), &to, 1, from, STACK_PAGES, 0);
	return (rt_err(n) || n < 1 ? 1 : (uint64_t)n) * RT_PAGE - (rsp - page);
}

static void log_start(struct rt_tcb *t)
{
	struct run_thread_start s;

	memset(&s, 0, sizeof(s));
	memcpy(s.gpr, t->sv.gpr, sizeof(s.gpr));
	s.gpr[R15] = t->t.r15;
	s.rip = t->t.target;
	s.rflags = rt_rflags_hook(t);
	s.fsbase = t->fsbase; /* to ask takes 4 µs on some virtual machines */
	if (s.fsbase == RT_FS_UNKNOWN)
		rt_sc(__NR_arch_prctl, 0x1003 /* ARCH_GET_FS */, &s.fsbase);
	s.tsc = rt_tsc();
	s.flags = t->born;
	s.modules = t->born ? rt_proc(t)->nmodules : rt.nindex;
	if (t->sv.gpr[RSP] == t->parent_rsp) {
		s.stack = t->sv.gpr[RSP];
		s.stack_size = rt_stack_size(s.stack);
	}
	rt_event(t, RUN_EV_START, sizeof(s) + s.stack_size);
	rt_log(t, &s, sizeof(s));
	rt_log(t, (void *)s.stack, s.stack_size);
}

static void new_process(struct rt_tcb *t)
{
	struct ring_proc *p = rt_proc(t);
	uint32_t pid = (uint32_t)rt_getpid(), none = 0;

	/* in a pid namespace of its own it knows itself by another number than the collector: its parent's
	 * word, when it comes first, is better */
	__atomic_compare_exchange_n(&p->pid, &none, pid, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	if (t->born == RUN_START_FORK) {
		rt.lock = 0; /* the parent had it, for us */
		rt.pid = pid;
		rt.main = t;
		if (t->clear_sig)
			rt_sig_init();
		if (rt.stopped)
			p->stop_reason = RUN_STOP_FORK_CHILD;
	}
	__atomic_store_n(&p->state, rt.stopped ? RING_STOP : RING_RUN, __ATOMIC_RELEASE);
	rt_ring_kick();
}

/* The child of a clone, fork or vfork, on its own TCB; its stack pointer is in the saved set. */
void rt_born(struct rt_tcb *t)
{
	t->th.tid = (uint32_t)rt_sc(__NR_gettid);
	rt_chunk_desc(t)->tid = t->th.tid;
	__atomic_store_n(&t->th.life, RING_THREAD_LIVE, __ATOMIC_RELEASE);
	if (t->born)
		new_process(t);
	rt_pt_born(t);
	rt_result(t, t->sv.gpr, 0);
	log_start(t);
	if (!t->born)
		rt_halt_born(t);
	t->sv.gpr[R15] = t->t.lp;
}
