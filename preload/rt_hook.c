/* SPDX-License-Identifier: MIT
 *
 * rt_hook.c - system calls that matter to the runtime
 *
 * Called by rt_entry.S with every signal blocked and the program's registers in t->sv. Calls
 * that only need something done around them are executed here; those that make or end a
 * process are handed back (RT_DO_REAL) to be executed with the program's own registers, stack
 * and mask. To stop before a call is to leave at its original `syscall` instruction (two
 * bytes, 0f 05), which then runs natively.
 */
#include "rt.h"

#define CLONE3_NR 435

const uint8_t rt_special[RT_NSYS] = {
	[__NR_mmap] = 1,	  [__NR_mprotect] = 1,	   [__NR_munmap] = 1,	  [__NR_mremap] = 1,
	[__NR_pkey_mprotect] = 1, [__NR_rt_sigaction] = 1, [__NR_clone] = 1,	  [CLONE3_NR] = 1,
	[__NR_fork] = 1,	  [__NR_vfork] = 1,	   [__NR_execve] = 1,	  [__NR_execveat] = 1,
	[__NR_exit] = 1,	  [__NR_exit_group] = 1,   [__NR_arch_prctl] = 1,
};

static long call(const struct rt_tcb *t)
{
	const uint64_t *g = t->sv.gpr;

	return rt_sc6(t->sv.nr, g[RDI], g[RSI], g[RDX], g[R10], g[R8], g[R9]);
}

static void result(struct rt_tcb *t, uint64_t *gpr, uint64_t r)
{
	gpr[RAX] = r;
	gpr[RCX] = t->t.target; /* as the instruction leaves them: SDM Vol. 2, SYSCALL */
	gpr[R11] = rt_rflags(0x202, t->sv.flags);
}

static int finish(struct rt_tcb *t, long r)
{
	result(t, t->sv.gpr, r);
	rt_mark(t, RUN_MARK_SYSCALL, (uint32_t)t->sv.nr, r);
	t->sv.gpr[R15] = t->t.lp;
	return RT_DO_FINISH;
}

static int stop_before(struct rt_tcb *t, uint32_t reason)
{
	return rt_stop_leave(t, reason, t->t.target - 2);
}

static void event(struct rt_tcb *t, uint32_t ev, uint64_t arg)
{
	rt_mark(t, RUN_MARK_EVENT, ev, arg);
}

static void unmapped(struct rt_tcb *t, uint64_t addr, uint64_t size)
{
	uint32_t index[64], n = rt_mod_unmap(addr, size, index, 64);

	for (uint32_t i = 0; i < n; i++)
		event(t, RUN_EV_MODULE, index[i]);
}

static void executable(struct rt_tcb *t, uint64_t addr, uint64_t size)
{
	const struct rt_module *m = rt_mod_exec(addr, size);

	if (m)
		event(t, RUN_EV_MODULE, m->index);
}

/* Addresses are logged in six bytes: 47 bits is all a process has unless it asks for more (five-level
 * paging: the kernel's Documentation/arch/x86/x86_64/5level-paging.rst). */
static bool high(uint64_t addr)
{
	return addr >> 47;
}

static int do_mmap(struct rt_tcb *t)
{
	const uint64_t *g = t->sv.gpr;
	long r;

	if (high(g[RDI]))
		return stop_before(t, RUN_STOP_UNSUPPORTED);

	if ((g[R10] & MAP_FIXED) && !(g[R10] & 0x100000) && t->level && rt_mod_text(g[RDI], g[RSI]))
		return stop_before(t, RUN_STOP_UNSUPPORTED);
	r = call(t);
	if (!rt_err(r) && !t->level) {
		if (g[R10] & MAP_FIXED)
			unmapped(t, r, g[RSI]);
		if ((g[RDX] & PROT_EXEC) && !(g[R10] & MAP_ANONYMOUS))
			executable(t, r, g[RSI]);
	}
	return finish(t, r);
}

static int do_mprotect(struct rt_tcb *t)
{
	const uint64_t *g = t->sv.gpr;
	long r;

	/* what the program writes to its text would be lost when ours is taken out */
	if ((g[RDX] & PROT_WRITE) && rt_mod_text(g[RDI], g[RSI]))
		return stop_before(t, RUN_STOP_UNSUPPORTED);
	r = call(t);
	if (!rt_err(r) && (g[RDX] & PROT_EXEC) && !t->level)
		executable(t, g[RDI], g[RSI]);
	return finish(t, r);
}

static int do_munmap(struct rt_tcb *t)
{
	const uint64_t *g = t->sv.gpr;
	long r;

	if (t->level && rt_mod_text(g[RDI], g[RSI]))
		return stop_before(t, RUN_STOP_UNSUPPORTED);
	r = call(t);
	if (!rt_err(r) && !t->level)
		unmapped(t, g[RDI], g[RSI]);
	return finish(t, r);
}

static int do_exit(struct rt_tcb *t)
{
	if (!t->level) {
		event(t, RUN_EV_EXIT, t->sv.gpr[RDI]);
		rt.ring->exit_code = (uint32_t)t->sv.gpr[RDI];
		__atomic_store_n(&rt.ring->state, RING_EXIT, __ATOMIC_RELEASE);
		rt_ring_wait_done();
	}
	return RT_DO_REAL;
}

static int do_exec(struct rt_tcb *t)
{
	if (!t->level) {
		event(t, RUN_EV_EXEC, 0);
		__atomic_store_n(&rt.ring->state, RING_EXEC, __ATOMIC_RELEASE);
		rt_ring_kick();
	}
	return RT_DO_REAL;
}

/* the child runs on a TCB of its own, its log is thrown away */
static int vfork_child(struct rt_tcb *t, uint64_t flags)
{
	struct rt_tcb *c;

	if (t->level == RT_NCHILD)
		return stop_before(t, RUN_STOP_UNSUPPORTED);
	c = rt.child[t->level];
	c->t.lp = c->chunk;
	c->t.r15 = t->t.r15;
	c->t.expect = t->t.expect;
	c->t.resume = t->t.resume;
	c->t.target = t->t.target;
	c->sv = t->sv;
	c->sig = t->sig;
	if (!(flags & CLONE_SIGHAND))
		c->sig = memcpy(c->sig_own, t->sig, sizeof(rt.sig));
	finish(c, 0);
	rt_rec_tcb = (uint64_t)c;
	rt_rec_kind = RT_REC_VFORK;
	return RT_DO_REAL;
}

static int do_clone(struct rt_tcb *t)
{
	uint64_t flags = t->sv.gpr[RDI];

	if (t->sv.nr == __NR_fork)
		flags = 0;
	if (t->sv.nr == __NR_vfork)
		flags = CLONE_VM | CLONE_VFORK;
	if (t->sv.nr == CLONE3_NR) {
		/* through the kernel: the pointer may be bad. Then, and where this call is forbidden, we do not
		 * know what comes: stop */
		if (rt_copy_out(&flags, t->sv.gpr[RDI], sizeof(flags)))
			return stop_before(t, RUN_STOP_UNSUPPORTED);
	}
	if (!(flags & CLONE_VM)) {
		rt_out = t->sv;
		result(t, rt_out.gpr, 0);
		rt_out.gpr[R15] = t->t.r15;
		rt_out.rip = t->t.target;
		rt_rec_sig = t->sig;
		rt_rec_kind = RT_REC_FORK;
		return RT_DO_REAL;
	}
	if ((flags & CLONE_VFORK) && !(flags & CLONE_THREAD))
		return vfork_child(t, flags);
	return stop_before(t, RUN_STOP_THREAD);
}

static int do_arch_prctl(struct rt_tcb *t)
{
	const uint64_t *g = t->sv.gpr;
	long r;

	if (g[RDI] == 0x1001) /* ARCH_SET_GS */
		return stop_before(t, RUN_STOP_GS);
	if (g[RDI] == 0x4002) /* ARCH_ENABLE_TAGGED_ADDR: addresses keep more than 48 bits */
		return stop_before(t, RUN_STOP_UNSUPPORTED);
	r = call(t);
	if (!rt_err(r) && g[RDI] == 0x1004) /* ARCH_GET_GS: what it would be untraced */
		*(uint64_t *)g[RSI] = 0;
	return finish(t, r);
}

int rt_syscall(struct rt_tcb *t)
{
	const uint64_t *g = t->sv.gpr;

	t->lp0 = t->t.lp;
	rt_rec_kind = RT_REC_NONE;
	switch (t->sv.nr) {
	case __NR_mmap:
		return do_mmap(t);
	case __NR_mprotect:
	case __NR_pkey_mprotect:
		return do_mprotect(t);
	case __NR_munmap:
		return do_munmap(t);
	case __NR_mremap:
		if (rt_mod_text(g[RDI], g[RSI]) || ((g[R10] & 2 /* MREMAP_FIXED */) && high(g[R8])))
			return stop_before(t, RUN_STOP_UNSUPPORTED);
		break;
	case __NR_rt_sigaction:
		return finish(t, rt_sig_action(t, (long)(int)g[RDI], g[RSI], g[RDX], g[R10]));
	case __NR_exit:
	case __NR_exit_group:
		return do_exit(t);
	case __NR_execve:
	case __NR_execveat:
		return do_exec(t);
	case __NR_arch_prctl:
		return do_arch_prctl(t);
	case __NR_clone:
	case CLONE3_NR:
	case __NR_fork:
	case __NR_vfork:
		return do_clone(t);
	}
	return finish(t, call(t));
}

/* after a call that was executed by the assembly, its result in the saved rax */
int rt_syscall_post(struct rt_tcb *t)
{
	long r = t->sv.gpr[RAX];

	rt_rec_kind = RT_REC_NONE;
	if (rt.stopped) { /* by a vfork child: its memory is ours */
		rt_sig_restore(t->sig);
		result(t, t->sv.gpr, r);
		return rt_stop_leave(t, RUN_STOP_NONE, t->t.target);
	}
	if (!t->level && (t->sv.nr == __NR_execve || t->sv.nr == __NR_execveat))
		__atomic_store_n(&rt.ring->state, RING_RUN, __ATOMIC_RELEASE);
	return finish(t, r);
}
