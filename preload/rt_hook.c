/* SPDX-License-Identifier: MIT
 *
 * rt_hook.c - system calls that matter to the runtime
 *
 * Called by rt_entry.S with every signal blocked, or held (rt_hold.c), and the program's registers in t->sv. Calls
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
	[__NR_exit] = 1,	  [__NR_exit_group] = 1,   [__NR_arch_prctl] = 1, [__NR_seccomp] = 1,
	[__NR_prctl] = 1,	  [__NR_rt_sigreturn] = 1, [__NR_madvise] = 1,	  [MSEAL_NR] = 1,
};

uint8_t rt_slow_all;

static long call(struct rt_tcb *t)
{
	if (rt.how == RT_REPLAY)
		return rt_answer(t);
	return rt_call(t->sv.gpr, t->sv.nr);
}

void rt_args(const struct rt_tcb *t, uint64_t *arg)
{
	static const uint8_t reg[6] = {RDI, RSI, RDX, R10, R8, R9};

	for (int i = 0; i < 6; i++)
		arg[i] = t->sv.gpr[reg[i]];
}

void rt_result(const struct rt_tcb *t, uint64_t *gpr, uint64_t r)
{
	gpr[RAX] = r;
	gpr[RCX] = t->t.target; /* as the instruction leaves them: SDM Vol. 2, SYSCALL */
	gpr[R11] = rt_rflags_hook(t);
}

static void stamp(struct rt_tcb *t)
{
	if (t->stamp)
		rt_event(t, RUN_EV_TIME, rt_now());
}

static int finish(struct rt_tcb *t, long r)
{
	rt_result(t, t->sv.gpr, r);
	if (rt.how == RT_RECORD)
		return rt_record_call(t, r);
	stamp(t);
	rt_called(t, (uint32_t)t->sv.nr, r);
	t->sv.gpr[R15] = t->t.lp;
	if (rt.how == RT_REPLAY)
		rt_replay_after(t, r);
	return RT_DO_FINISH;
}

/* The trace ends before the call. false: others are in the copies, and nobody can leave them */
static bool leave_before(struct rt_tcb *t, uint32_t reason)
{
	if (!rt_stop_here(t, reason))
		return false;
	rt_stop_leave(t, reason, t->t.target - 2);
	return true;
}

/* The trace ends before the call, which the program then executes in its original text; or, where that is
 * impossible because others are in the copies, too, only what is logged ends. */
static int stop_before(struct rt_tcb *t, uint32_t reason)
{
	if (rt.how == RT_RECORD)
		return rt_switch_here(t, t->t.target - 2, "a system call that ends tracing");
	return leave_before(t, reason) ? RT_DO_LEAVE : finish(t, call(t));
}

static void unmapped(struct rt_tcb *t, uint64_t addr, uint64_t size)
{
	uint32_t index[64], n = rt_mod_unmap(addr, size, index, 64);

	for (uint32_t i = 0; i < n; i++)
		rt_event(t, RUN_EV_MODULE, index[i]);
}

static void executable(struct rt_tcb *t, uint64_t addr, uint64_t size)
{
	const struct rt_module *m = rt_mod_exec(addr, size);

	if (m)
		rt_event(t, RUN_EV_MODULE, m->index);
}

/* Addresses are logged in six bytes: 47 bits is all a process has unless it asks for more (five-level
 * paging: the kernel's Documentation/arch/x86/x86_64/5level-paging.rst). */
static bool high(uint64_t addr)
{
	return addr >> 47;
}

/* A module was mapped that changes the fs or gs base by itself (MAP_F_BASES): the trace ends before the call, which is
 * then made once more */
static int foreign_bases(struct rt_tcb *t, long r)
{
	const uint64_t *g = t->sv.gpr;

	if (rt.how != RT_RECORD && !rt_stop_here(t, RUN_STOP_GS))
		return finish(t, r);
	if (!rt_err(r) && !(g[R10] & MAP_FIXED))
		rt_sc(__NR_munmap, r, g[RSI]);
	if (rt.how == RT_RECORD)
		return rt_switch_here(t, t->t.target - 2, "a module changes the fs or gs base by itself");
	return rt_stop_leave(t, RUN_STOP_GS, t->t.target - 2);
}

static int do_mmap(struct rt_tcb *t)
{
	const uint64_t *g = t->sv.gpr;
	long r;

	if ((g[R10] & MAP_FIXED) && !(g[R10] & MAP_FIXED_NOREPLACE) && t->vm && rt_mod_text(g[RDI], g[RSI]))
		return stop_before(t, RUN_STOP_UNSUPPORTED);
	r = call(t);
	/* Where such an address was only a hint (pypy's is no address at all) the kernel chooses one. There is nothing of ours up
	 * there, so nothing was replaced. */
	if (!rt_err(r) && high(r)) {
		rt_sc(__NR_munmap, r, g[RSI]);
		return stop_before(t, RUN_STOP_UNSUPPORTED);
	}
	if (!rt_err(r) && !t->vm) {
		if (g[R10] & MAP_FIXED)
			unmapped(t, r, g[RSI]);
		if ((g[RDX] & PROT_EXEC) && !(g[R10] & MAP_ANONYMOUS))
			executable(t, r, g[RSI]);
	}
	return rt.bases && !t->vm ? foreign_bases(t, r) : finish(t, r);
}

static int do_mprotect(struct rt_tcb *t)
{
	const uint64_t *g = t->sv.gpr;
	long r;

	/* what the program writes to its text would be lost when ours is taken out */
	if ((g[RDX] & PROT_WRITE) && rt_mod_text(g[RDI], g[RSI]))
		return stop_before(t, RUN_STOP_UNSUPPORTED);
	r = call(t);
	if (!rt_err(r) && (g[RDX] & PROT_EXEC) && !t->vm)
		executable(t, g[RDI], g[RSI]);
	return finish(t, r);
}

static int do_munmap(struct rt_tcb *t)
{
	const uint64_t *g = t->sv.gpr;
	long r;

	if (t->vm && rt_mod_text(g[RDI], g[RSI]))
		return stop_before(t, RUN_STOP_UNSUPPORTED);
	r = call(t);
	if (!rt_err(r) && !t->vm)
		unmapped(t, g[RDI], g[RSI]);
	return finish(t, r);
}

static int do_exit(struct rt_tcb *t)
{
	struct ring_proc *p = rt_proc(t);
	bool stopped = __atomic_load_n(&p->state, __ATOMIC_RELAXED) == RING_STOP;
	uint32_t left;

	if (rt.how != RT_RECORD)
		rt_event(t, RUN_EV_EXIT, t->sv.gpr[RDI]);
	left = rt_thread_end(t);
	if (t->sv.nr != __NR_exit_group && left)
		return RT_DO_EXIT;
	if (!stopped) {
		p->exit_code = (uint32_t)t->sv.gpr[RDI];
		__atomic_store_n(&p->state, RING_EXIT, __ATOMIC_RELEASE);
	}
	/* Whoever started a program that ends expects its run to be there; a child's is as good as that in the
	 * ring. */
	if (left)
		rt_halt_others(t);
	if (p->nlive || p->start)
		rt_ring_kick();
	else
		rt_ring_wait_done(p);
	if (!left && rt_ring_dead()) /* nobody else does */
		__atomic_store_n(&p->state, RING_FREE, __ATOMIC_RELEASE);
	return RT_DO_EXIT;
}

/* what is to be executed is there and may be */
static bool executable_file(const struct rt_tcb *t)
{
	const uint64_t *g = t->sv.gpr;
	bool at = t->sv.nr == __NR_execveat;

	if (at && (g[R8] & 0x1000 /* AT_EMPTY_PATH */))
		return true;
	return !rt_err(
		rt_sc(__NR_faccessat, at ? (long)(int)g[RDI] : AT_FDCWD, at ? g[RSI] : g[RDI], 1 /* X_OK */));
}

static int do_exec(struct rt_tcb *t)
{
	uint32_t run = RING_RUN;

	if (rt.how == RT_REPLAY) /* one that failed */
		return finish(t, call(t));
	if (rt.seccomp)
		rt_exec_alone(t);
	if (!t->vm && rt.registered != rt.pid)
		rt_live_register(); /* a forked child: its ancestors may be gone when the new image looks for its run */
	if (rt.how != RT_RECORD)
		rt_event(t, RUN_EV_EXEC, 0);
	if (__atomic_compare_exchange_n(&rt_proc(t)->state, &run, RING_EXEC, false, __ATOMIC_RELEASE,
					__ATOMIC_RELAXED)) {
		if (rt_proc(t)->nlive > 1 && executable_file(t))
			rt_halt_others(t);
		rt_ring_kick();
	}
	return RT_DO_REAL;
}

struct clone_how {
	uint64_t flags, tls;
};

/* false: there is none where the program says it is */
static bool clone_how(const struct rt_tcb *t, struct clone_how *how)
{
	uint64_t a[8]; /* struct clone_args (linux/sched.h), CLONE_ARGS_SIZE_VER0: flags first, tls last */
	int r;

	*how = (struct clone_how){t->sv.gpr[RDI], t->sv.gpr[R8]};
	if (t->sv.nr == __NR_fork)
		how->flags = 0;
	if (t->sv.nr == __NR_vfork)
		how->flags = CLONE_VM | CLONE_VFORK;
	if (t->sv.nr != CLONE3_NR)
		return true;
	if (t->sv.gpr[RSI] < sizeof(a))
		return false;
	r = rt_copy_out(a, t->sv.gpr[RDI], sizeof(a)); /* through the kernel: the pointer may be bad */
	if (r == -EFAULT)
		return false;
	if (r) /* where that call is forbidden */
		memcpy(a, (void *)t->sv.gpr[RDI], sizeof(a));
	*how = (struct clone_how){a[0], a[7]};
	return true;
}

static int do_clone(struct rt_tcb *t)
{
	struct clone_how as;
	uint32_t how = 0;
	uint64_t flags;

	if (!clone_how(t, &as))
		return finish(t, call(t)); /* the kernel knows what to say */
	/* nobody would free what its children leave: it goes on untraced, and so do they */
	if (rt_ring_dead() && leave_before(t, RUN_STOP_COLLECTOR))
		return RT_DO_LEAVE;
	flags = as.flags;
	if (!(flags & CLONE_VM))
		how = RUN_START_FORK;
	else if (!(flags & CLONE_THREAD))
		how = flags & CLONE_VFORK ? RUN_START_VFORK : RUN_START_VM;
	while (!(t->child = rt_thread_new(t, how)) && rt_room_comes())
		rt_futex_wait(&rt.ring->freed, rt.ring->freed, 1);
	if (!t->child && leave_before(t, RUN_STOP_ROOM))
		return RT_DO_LEAVE;
	if (!t->child)
		return finish(t, -EAGAIN); /* as when the kernel has no room for more */
	if ((flags & CLONE_VM) && !(flags & CLONE_SIGHAND)) /* the kernel copies its table, too */
		t->child->sig = memcpy(t->child->sig_own, t->sig, sizeof(rt.sig));
	else if (flags & CLONE_VM)
		t->child->sig = t->sig;
	t->child->fsbase = flags & CLONE_SETTLS ? as.tls : RT_FS_UNKNOWN;
	t->child->clear_sig = flags >> 32 & 1; /* CLONE_CLEAR_SIGHAND */
	t->child_how = how;
	t->child_proc = t->child->th.proc;
	t->child_uid = rt_proc(t->child)->uid;
	if (how == RUN_START_VM)
		rt.shared = true;
	if (how == RUN_START_FORK)
		rt_lock(); /* whole in the child's memory: rt_born() */
	return RT_DO_CLONE;
}

#define ARCH_SET_FS_OP 0x1002

/* The maps take what is at fs:0 for the fs base (psABI 3.4.6, the thread pointer). */
static bool own_pointer(uint64_t base)
{
	uint64_t v;

	return !rt_copy_out(&v, base, sizeof(v)) && v == base;
}

static int do_arch_prctl(struct rt_tcb *t)
{
	const uint64_t *g = t->sv.gpr;
	long r;

	if (g[RDI] == 0x1001) /* ARCH_SET_GS */
		return stop_before(t, RUN_STOP_GS);
	if (g[RDI] == 0x4002) /* ARCH_ENABLE_TAGGED_ADDR: addresses keep more than 48 bits */
		return stop_before(t, RUN_STOP_UNSUPPORTED);
	if (g[RDI] == ARCH_SET_FS_OP && !own_pointer(g[RSI]))
		return stop_before(t, RUN_STOP_UNSUPPORTED);
	r = call(t);
	if (!rt_err(r) && g[RDI] == 0x1004) /* ARCH_GET_GS: what it would be untraced */
		*(uint64_t *)g[RSI] = 0;
	if (!rt_err(r) && g[RDI] == ARCH_SET_FS_OP) {
		t->fsbase = g[RSI];
		if (rt.how != RT_RECORD)
			rt_event(t, RUN_EV_FSBASE, g[RSI]);
	}
	return finish(t, r);
}

/* calls that look at or change what all threads share */
static int locked(struct rt_tcb *t, int (*fn)(struct rt_tcb *))
{
	int r;

	rt_lock();
	r = fn(t);
	rt_unlock();
	return r;
}

static int do_sigaction(struct rt_tcb *t)
{
	const uint64_t *g = t->sv.gpr;

	return finish(t, rt_sig_action(t, (long)(int)g[RDI], g[RSI], g[RDX], g[R10]));
}

static int do_mremap(struct rt_tcb *t)
{
	const uint64_t *g = t->sv.gpr;

	if (rt_mod_text(g[RDI], g[RSI]) || ((g[R10] & 2 /* MREMAP_FIXED */) && high(g[R8])))
		return stop_before(t, RUN_STOP_UNSUPPORTED);
	return finish(t, call(t));
}

static int do_prctl(struct rt_tcb *t)
{
	uint64_t arg[6];
	bool done;
	long r;

	rt_args(t, arg);
	if (rt_undoes(t->sv.nr, arg))
		return leave_before(t, RUN_STOP_UNSUPPORTED)
			       ? RT_DO_LEAVE
			       : finish(t, -EINVAL); /* as kernels before 5.11 */
	if (rt_tsc_takes(t->sv.nr, arg))
		rt_tsc_taken(t);
	r = rt_seccomp(t, &done);

	return finish(t, done ? r : call(t));
}

static int do_advice(struct rt_tcb *t)
{
	uint64_t arg[6];

	rt_args(t, arg);
	return finish(t, rt_undoes(t->sv.nr, arg) ? rt_undo_drop(arg) : call(t));
}

static int do_seal(struct rt_tcb *t)
{
	uint64_t arg[6];
	long r = call(t);

	rt_args(t, arg);
	if (!rt_err(r) && rt_undoes(t->sv.nr, arg))
		rt.shared = true; /* its text cannot be restored */
	return finish(t, r);
}

int rt_syscall(struct rt_tcb *t)
{
	int r = rt.how == RT_RECORD ? rt_record_before(t) : rt.how == RT_REPLAY ? rt_replay_before(t) : -1;

	if (r >= 0)
		return r;
	rt_hold_block(t);
	t->lp0 = t->t.lp;
	stamp(t);
	switch (t->sv.nr) {
	case __NR_mmap:
		return locked(t, do_mmap);
	case __NR_mprotect:
	case __NR_pkey_mprotect:
		return locked(t, do_mprotect);
	case __NR_munmap:
		return locked(t, do_munmap);
	case __NR_mremap:
		return locked(t, do_mremap);
	case __NR_madvise:
		return locked(t, do_advice);
	case MSEAL_NR:
		return locked(t, do_seal);
	case __NR_seccomp:
	case __NR_prctl:
		return do_prctl(t);
	case __NR_rt_sigaction:
		return locked(t, do_sigaction);
	case __NR_exit:
	case __NR_exit_group:
		return do_exit(t);
	case __NR_execve:
	case __NR_execveat:
		return do_exec(t);
	case __NR_arch_prctl:
		return do_arch_prctl(t);
	case __NR_rt_sigreturn:
		return rt_sigreturn(t);
	case __NR_clone:
	case CLONE3_NR:
	case __NR_fork:
	case __NR_vfork:
		return do_clone(t);
	}
	return finish(t, call(t));
}

/* The parent: there is a child, or there is none. One that there is may have come to its end, its TCB and
 * its ring_proc be another's. */
static void after_clone(struct rt_tcb *t, long r)
{
	struct ring_proc *p = ring_proc(rt.ring, t->child_proc);

	if (t->child_how == RUN_START_FORK)
		rt_unlock();
	if (rt_err(r))
		rt_thread_drop(t->child);
	else if (t->child_how && p->uid == t->child_uid)
		p->pid = (uint32_t)r;
	t->child = NULL;
}

static void no_exec(struct rt_tcb *t)
{
	uint32_t exec = RING_EXEC;

	if (t->sv.nr == __NR_execve || t->sv.nr == __NR_execveat)
		if (__atomic_compare_exchange_n(&rt_proc(t)->state, &exec, RING_RUN, false, __ATOMIC_RELEASE,
						__ATOMIC_RELAXED))
			rt_futex_wake(&rt_proc(t)->state);
}

/* what rt_syscall() did for a call that a signal came before */
void rt_syscall_undo(struct rt_tcb *t, bool real)
{
	if (!real)
		return;
	t->t.lp = t->lp0;
	no_exec(t);
}

/* after a call that was executed by the assembly, its result in the saved rax */
int rt_syscall_post(struct rt_tcb *t)
{
	long r = t->sv.gpr[RAX];

	if (t->child)
		after_clone(t, r);
	else
		no_exec(t);
	return finish(t, r);
}
