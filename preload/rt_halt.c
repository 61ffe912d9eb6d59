/* SPDX-License-Identifier: MIT
 *
 * rt_halt.c - the other threads of a process that exits, or executes another program
 *
 * The kernel ends them wherever they are, with the log pointer in a register that nobody reads: up to a chunk
 * of each one's trace would be missing. So each gets a signal first, and says where it is, as for a handler:
 *
 *   exit_group ─▶ rt_halt_others(): SIGTRAP to each ─▶ rt_halted(): cut, SIGNAL, EXIT; waits for the end
 *   execve     ─▶ the same                           ─▶ cut, SIGNAL, EXEC; waits, and goes on when it fails
 *
 * SIGTRAP is the runtime's in any case (rt_sig.c). A thread in a system call has said all that there is to say
 * (ring_thread.calling): it is not waited for.
 *
 * A thread that computes takes the signal when it is on a processor the next time. Where many want one that may be long, but
 * without us it would have to get there all the same, to be killed: a process has not ended before. So it is waited for as long as it
 * is about to (will_say). Who has been on one and still has not taken it has it blocked; who neither runs nor wants to has been
 * stopped by a debugger, or sleeps in a call of code that is not traced: these are not waited for long.
 */
#include "rt.h"

#define SIGTRAP 5
#define SIGKILL 9
#define SI_QUEUE (-1)
#define PATIENCE_MS 500 /* between two looks at who may be waited for */
#define RUN_NS 100000000 /* processor time in which a thread has taken the signal, if it has not blocked it */

/* siginfo (uapi/asm-generic/siginfo.h) of our signal, which nobody else's is taken for: signo, errno, code, pid,
 * uid, value */
struct info {
	int32_t signo, err, code, pad;
	uint32_t pid, uid;
	uint64_t value;
	uint64_t rest[12];
};

static uint32_t state(const struct rt_tcb *t)
{
	return __atomic_load_n(&rt_proc(t)->state, __ATOMIC_ACQUIRE);
}

static bool ending(uint32_t s)
{
	return s == RING_EXIT || s == RING_EXEC;
}

/* th is another thread of t's process */
static bool other(const struct rt_tcb *t, const struct ring_thread *th)
{
	return th->life == RING_THREAD_LIVE && th->proc == t->th.proc && th != &t->th;
}

/* one of them computes, and has not said where */
static bool computes(const struct rt_tcb *t)
{
	for (uint32_t i = 0; i < rt.ring->nslots; i++) {
		const struct ring_thread *th = ring_thread(rt.ring, i);

		if (other(t, th) && !__atomic_load_n(&th->calling, __ATOMIC_ACQUIRE))
			return true;
	}
	return false;
}

/* Processor time of another thread of this process (CLOCK_THREAD_CPUTIME_ID is the caller's: its clock is named by its id,
 * include/linux/posix-timers_types.h in the kernel). 0: there is none */
static uint64_t cpu_ns(uint32_t tid)
{
	const int clock = (int)(~tid << 3 | 4 /* CPUCLOCK_PERTHREAD_MASK */ | 2 /* CPUCLOCK_SCHED */);
	struct __kernel_timespec ts = {0, 0};

	return rt_err(rt_sc(__NR_clock_gettime, clock, &ts))
		       ? 0
		       : (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* It is on a processor, or waits for one */
static bool runnable(uint32_t tid)
{
	char buf[64];
	struct rt_str s = rt_str(buf, sizeof(buf));
	struct rt_stat st;

	rt_put(&s, "/proc/self/task/");
	rt_putu(&s, tid);
	rt_put(&s, "/stat");
	return rt_stat(buf, &st) && st.state == 'R';
}

static bool will_say(struct rt_tcb *o)
{
	uint64_t ns = cpu_ns(o->th.tid);
	bool ran = ns != o->halt_seen;

	o->halt_seen = ns;
	if (!ns)
		return false;
	if (__atomic_load_n(&o->th.chunk, __ATOMIC_ACQUIRE) == RING_NONE) /* it waits for one */
		return !rt_ring_dead();
	if (!__atomic_load_n(&o->halting, __ATOMIC_ACQUIRE) && ns - o->halt_ns > RUN_NS)
		return false;
	return ran || runnable(o->th.tid);
}

/* somebody does, and is worth waiting for */
static bool somebody_will(const struct rt_tcb *t)
{
	bool any = false;

	for (uint32_t i = 0; i < rt.ring->nslots; i++) {
		struct rt_tcb *o = (void *)ring_tcb(rt.ring, i);

		any |= other(t, &o->th) && !__atomic_load_n(&o->th.calling, __ATOMIC_ACQUIRE) && will_say(o);
	}
	return any;
}

/* t's process has said that it ends */
void rt_halt_others(const struct rt_tcb *t)
{
	struct ring_proc *p = rt_proc(t);
	uint32_t pid = (uint32_t)rt_getpid();
	struct info info = {SIGTRAP, 0, SI_QUEUE, 0, pid, 0, (uint64_t)rt_text_lo, {0}};
	uint64_t t0 = rt_msec();

	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* the state is there to see: rt_halt_born() */
	for (uint32_t i = 0; i < rt.ring->nslots; i++) {
		struct rt_tcb *o = (void *)ring_tcb(rt.ring, i);

		if (!other(t, &o->th))
			continue;
		o->halt_ns = o->halt_seen = o->th.calling ? 0 : cpu_ns(o->th.tid);
		rt_sc(__NR_rt_tgsigqueueinfo, pid, o->th.tid, SIGTRAP, &info);
	}
	for (;;) {
		uint32_t n = __atomic_load_n(&p->halted, __ATOMIC_ACQUIRE);

		if (!computes(t))
			break;
		if (rt_msec() - t0 > PATIENCE_MS) {
			if (!somebody_will(t))
				break;
			t0 = rt_msec();
		}
		rt_futex_wait(&p->halted, n, 2);
	}
}

static void say(struct rt_tcb *t)
{
	struct ring_proc *p = rt_proc(t);

	__atomic_store_n(&t->th.calling, 1, __ATOMIC_RELEASE); /* as good as that */
	__atomic_add_fetch(&p->halted, 1, __ATOMIC_RELEASE);
	rt_futex_wake(&p->halted);
}

/* t is about to run its first instruction: if its process is ending, nobody may have seen it */
void rt_halt_born(const struct rt_tcb *t)
{
	uint32_t s;

	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* its life is there to see before the state is looked at */
	while (ending(s = state(t)))
		rt_futex_wait(&rt_proc(t)->state, s, 10);
}

/* true: the signal was such a one, and t goes on by what is in its ucontext now */
bool rt_halted(struct rt_tcb *t, int sig, const int *info, uint64_t *uc)
{
	const struct info *i = (const struct info *)info;
	uint32_t s = state(t);
	bool in;

	if (sig != SIGTRAP || i->code != SI_QUEUE || i->value != (uint64_t)rt_text_lo)
		return false;
	if (!ending(s))
		return true; /* too late: the exec has failed */
	__atomic_store_n(&t->halting, 1, __ATOMIC_RELEASE);
	in = rt_sig_pause(t, SIGKILL, uc);
	if (s == RING_EXIT) {
		if (in) {
			rt_event(t, RUN_EV_EXIT, rt_proc(t)->exit_code);
			rt_thread_end(t);
		}
		say(t);
		rt_park(t);
	}
	if (in)
		rt_event(t, RUN_EV_EXEC, 0);
	say(t);
	while (state(t) == RING_EXEC)
		rt_futex_wait(&rt_proc(t)->state, s, 10);
	t->halting = 0;
	t->th.calling = 0;
	if (in)
		rt_sig_unpause(t, uc);
	return true;
}
