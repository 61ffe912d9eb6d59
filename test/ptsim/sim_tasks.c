/* SPDX-License-Identifier: MIT
 *
 * sim_tasks.c - the loop over stops: threads and processes come, stop, go on, end
 *
 * Every thread of the tree is traced, with PTRACE_SYSCALL; those with an event run block by block (sim_exec.c).
 * All run at the same time. A stop is accounted for first (handle), then the thread goes on, unless somebody holds
 * it: a thread that changes code, or that executes an instruction on which there is an int3, has the others of its
 * memory wait.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "sim.h"
#include "sim_tasks.h"

const struct sim_hooks *sim_hooks;

static struct task *tasks;
static struct task *ended; /* out of the list; who stands at one there goes on by its next all the same */
static pid_t first;
static int first_status = 125 << 8;

_Noreturn void fail(const char *format, ...)
{
	int e = errno;
	va_list ap;

	fprintf(stderr, "ptsim: ");
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fprintf(stderr, e ? ": %s\n" : "\n", strerror(e));
	exit(125);
}

void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		fail("no memory");
	return p;
}

void *xrealloc(void *p, size_t size)
{
	p = realloc(p, size);
	if (!p)
		fail("no memory");
	return p;
}

uint64_t rnd(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s * 0x2545f4914f6cdd1dull >> 8;
}

struct task *sim_task(pid_t pid)
{
	for (struct task *t = tasks; t; t = t->next)
		if (t->pid == pid)
			return t;
	return NULL;
}

static struct task *add(pid_t pid)
{
	struct task *t = xcalloc(1, sizeof(*t));

	t->pid = pid;
	t->next = tasks;
	tasks = t;
	return t;
}

static void trap_sent(struct task *t);

static void gone(struct task *t)
{
	struct task **p = &tasks;

	trap_sent(t);
	if (t->forgot)
		sim_quiesce(t, false);
	if (t->mm && (t->lifted || t->fenced)) {
		t->lifted = t->fenced = false;
		sim_quiesce(t, false);
	}
	sim_hooks->gone(t);
	while (*p != t)
		p = &(*p)->next;
	*p = t->next;
	if (t->mm)
		mm_drop(t->mm);
	t->mm = NULL;
	t->ended = ended;
	ended = t;
}

static void free_ended(void)
{
	for (struct task *t = ended, *next; t; t = next) {
		next = t->ended;
		free(t);
	}
	ended = NULL;
}

/* --- stopping and going on ----------------------------------------------------------------------- */

/* False for one that is being killed: its next stop is PTRACE_EVENT_EXIT, from wherever it was. */
static bool get_regs(struct task *t)
{
	if (ptrace(PTRACE_GETREGS, t->pid, 0, &t->regs) < 0) {
		if (errno != ESRCH)
			fail("cannot read the registers of thread %d", t->pid);
		return false;
	}
	t->dirty = false;
	return true;
}

/* SIGTRAP is blocked as the program sees it at this moment, or not at all while it runs. */
static void show_mask(struct task *t, bool as_program)
{
	uint64_t mask;

	if (!t->blocks_trap || ptrace(PTRACE_GETSIGMASK, t->pid, 8, &mask) < 0)
		return;
	mask = as_program ? mask | 1ull << (SIGTRAP - 1) : mask & ~(1ull << (SIGTRAP - 1));
	ptrace(PTRACE_SETSIGMASK, t->pid, 8, &mask);
}

/* One that was sent to it while it blocked them; see trapped(). */
static void send_trap(struct task *t)
{
	t->trap_waits = false;
	/* the kernel takes siginfo from others for what they queue only */
	if (t->trap_info.si_code != SI_QUEUE ||
	    syscall(SYS_rt_tgsigqueueinfo, t->tgid, t->pid, SIGTRAP, &t->trap_info) < 0)
		syscall(SYS_tgkill, t->tgid, t->pid, SIGTRAP);
}

static void mask_changed(struct task *t)
{
	uint64_t mask;

	if (ptrace(PTRACE_GETSIGMASK, t->pid, 8, &mask) < 0)
		return;
	t->blocks_trap = mask >> (SIGTRAP - 1) & 1;
	show_mask(t, false);
	if (t->trap_waits && !t->blocks_trap)
		send_trap(t);
}

static bool catches(pid_t pid, int sig)
{
	char line[256], path[64];
	unsigned long mask = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "SigCgt: %lx", &mask) == 1)
			break;
	if (f)
		fclose(f);
	return mask >> (sig - 1) & 1;
}

static void resume(struct task *t)
{
	int request = PTRACE_SYSCALL, sig = t->inject;

	if (t->held || t->busy || !t->stopped || !t->mm)
		return;
	t->busy = true; /* what follows may hold others and let them go again */
	if (sig && catches(t->pid, sig)) {
		show_mask(t, true);
		t->to_handler = true;
		request = PTRACE_SINGLESTEP;
	} else if (t->listening) {
		request = PTRACE_LISTEN;
	} else if (!t->in_call) {
		sim_hooks->user(t);
		request = exec_resume(t, sig != 0);
	}
	t->inject = 0;
	if (t->dirty && ptrace(PTRACE_SETREGS, t->pid, 0, &t->regs) < 0) {
		if (errno != ESRCH)
			fail("cannot write the registers of thread %d", t->pid);
		t->killed = true;
	}
	t->dirty = false;
	t->busy = false;
	t->stopped = false;
	if (ptrace(request, t->pid, 0, sig) < 0) {
		if (errno != ESRCH)
			fail("cannot continue thread %d", t->pid);
		t->killed = true;
	}
}

static void handle(struct task *t, int status);

/* its next stop. False: there is none */
static bool next_stop(struct task *t)
{
	int status;

	if (t->due)
		status = t->status;
	else if (waitpid(t->pid, &status, __WALL) != t->pid)
		return false;
	t->due = false;
	handle(t, status);
	return true;
}

void sim_quiesce(struct task *t, bool stop)
{
	for (struct task *u = tasks, *next; u; u = next) {
		next = u->next;
		if (u == t || u->mm != t->mm)
			continue;
		if (!stop) {
			u->held--;
			resume(u);
			continue;
		}
		u->held++;
		if (!u->stopped && !u->listening && (u->due || !ptrace(PTRACE_INTERRUPT, u->pid, 0, 0)))
			next_stop(u);
	}
}

bool sim_stop(struct task *t)
{
	pid_t pid = t->pid;

	if (t->stopped || t->listening || t->in_call)
		return true;
	if (!t->due && ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0)
		return false;
	return next_stop(t) && sim_task(pid);
}

void sim_continue(struct task *t)
{
	resume(t);
}

/* --- system calls -------------------------------------------------------------------------------- */

/* Which code it may change; false for calls that do not. */
static bool changes_code(struct task *t, uint64_t *lo, uint64_t *hi)
{
	struct user_regs_struct *r = &t->regs;
	struct iovec v[8];

	*lo = r->rdi;
	*hi = r->rdi + r->rsi;
	switch (r->orig_rax) {
	case SYS_mmap:
	case SYS_munmap:
	case SYS_mprotect:
	case SYS_pkey_mprotect:
	case SYS_madvise:
	case SYS_mremap:
		return true;
	case SYS_shmat:
	case SYS_shmdt:
	case SYS_remap_file_pages:
		*lo = 0;
		*hi = ~0ull;
		return true;
	case SYS_process_vm_writev:
		if ((pid_t)r->rdi != t->tgid)
			return false;
		*lo = ~0ull;
		*hi = 0;
		for (uint64_t i = 0; i < r->r8; i++) {
			if (!mem_read(t->pid, r->r10 + i * sizeof(v[0]), v, sizeof(v[0])))
				break;
			if ((uint64_t)v[0].iov_base < *lo)
				*lo = (uint64_t)v[0].iov_base;
			if ((uint64_t)v[0].iov_base + v[0].iov_len > *hi)
				*hi = (uint64_t)v[0].iov_base + v[0].iov_len;
		}
		return *hi > *lo;
	default:
		return false;
	}
}

/* A SIGTRAP for one thread, which must not come while one of ours is on its way there: of a signal that is pending already
 * the second is none. */
static void keep_trap(struct task *t)
{
	uint64_t tid = t->regs.orig_rax == SYS_tkill ? t->regs.rdi : t->regs.rsi,
		 sig = t->regs.orig_rax == SYS_tkill ? t->regs.rsi : t->regs.rdx;
	struct task *to;

	if ((t->regs.orig_rax != SYS_tkill && t->regs.orig_rax != SYS_tgkill &&
	     t->regs.orig_rax != SYS_rt_tgsigqueueinfo) ||
	    sig != SIGTRAP)
		return;
	to = sim_task((pid_t)tid);
	if (!to || to == t || !sim_stop(to))
		return;
	while (to->stale_trap && !to->held && !to->in_call) { /* it stopped for something else first */
		resume(to);
		if (!next_stop(to) || !(to = sim_task((pid_t)tid)))
			return;
	}
	to->held++;
	t->traps = to->pid;
}

static void trap_sent(struct task *t)
{
	struct task *to = t->traps ? sim_task(t->traps) : NULL;

	t->traps = 0;
	if (!to)
		return;
	if (to->held) /* not if it has executed another program */
		to->held--;
	resume(to);
}

static void call_begins(struct task *t)
{
	uint64_t lo, hi;

	t->in_call = true;
	exec_stopped(t, STOP_ENTRY);
	show_mask(t, true);
	if (changes_code(t, &lo, &hi) && mm_knows(t->mm, lo, hi)) {
		sim_quiesce(t, true);
		mm_forget(t->mm, t->pid, lo, hi);
		t->forgot = true;
	}
	keep_trap(t);
	sim_hooks->call(t, true);
}

static void call_ends(struct task *t)
{
	uint64_t lo, hi;
	long r = (long)t->regs.rax;

	t->in_call = false;
	t->restarts =
		r <= -512 && r >= -516 && r != -515; /* ERESTARTSYS to ERESTART_RESTARTBLOCK, linux/errno.h */
	if (t->regs.orig_rax == SYS_rseq && !r)
		t->rseq = t->regs.rdx ? 0 /* RSEQ_FLAG_UNREGISTER */ : t->regs.rdi;
	if (changes_code(t, &lo, &hi))
		mm_maps_changed(t->mm);
	if (t->forgot)
		sim_quiesce(t, false);
	t->forgot = false;
	trap_sent(t);
	mask_changed(t);
	sim_hooks->call(t, false);
}

/* --- threads and processes ------------------------------------------------------------------------ */

/* CLONE_VM: vfork(2) has it, fork(2) has not, clone(2) and clone3(2) say. */
static bool shares_memory(struct task *t)
{
	uint64_t flags = t->regs.rdi;

	switch (t->regs.orig_rax) {
	case SYS_vfork:
		return true;
	case SYS_fork:
		return false;
	case SYS_clone3:
		if (!mem_read(t->pid, t->regs.rdi, &flags, 8))
			return false;
	}
	return flags & CLONE_VM;
}

static void read_tgid(struct task *t)
{
	char line[256], path[64];
	FILE *f;

	t->tgid = t->pid;
	snprintf(path, sizeof(path), "/proc/%d/status", t->pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Tgid: %d", &t->tgid) == 1)
			break;
	if (f)
		fclose(f);
}

/* At its first stop: it has its maker's mask, which for a pthread blocks everything. */
static void begins(struct task *t)
{
	t->begun = true;
	mask_changed(t);
}

static void made(struct task *t)
{
	unsigned long pid = 0;
	struct task *child;

	if (ptrace(PTRACE_GETEVENTMSG, t->pid, 0, &pid) < 0)
		return;
	child = sim_task((pid_t)pid);
	if (!child)
		child = add((pid_t)pid);
	child->mm = shares_memory(t) ? mm_hold(t->mm) : mm_copy(t->mm, child->pid);
	child->held = child->mm == t->mm ? t->held : 0;
	child->rseq = child->mm == t->mm ? 0 : t->rseq;
	read_tgid(child);
	if (child->stopped) {
		begins(child);
		resume(child);
	}
}

static void executed(struct task *t)
{
	unsigned long former = 0;
	struct task *by = NULL;

	/* another thread has taken the leader's number, and the leader is gone */
	if (!ptrace(PTRACE_GETEVENTMSG, t->pid, 0, &former) && (pid_t)former != t->pid)
		by = sim_task((pid_t)former);
	if (t->forgot)
		sim_quiesce(t, false);
	if (t->lifted || t->fenced)
		sim_quiesce(t, false);
	t->forgot = t->lifted = t->fenced = false;
	mm_drop(t->mm);
	t->mm = mm_new(t->pid);
	t->in_call = true;
	t->running = t->one = t->stale_trap = t->restarts = t->killed = false;
	t->rseq = 0;
	t->held = 0; /* by those of the memory that it has left */
	sim_hooks->exec(t, by);
	if (by)
		gone(by);
}

/* --- stops ----------------------------------------------------------------------------------------- */

static void trapped(struct task *t)
{
	enum stop_kind kind;

	if (t->to_handler) {
		t->to_handler = t->restarts = false; /* the call comes again when the handler has returned */
		mask_changed(t);
		return;
	}
	kind = exec_trap_kind(t);
	exec_stopped(t, kind);
	if (kind != STOP_SIGTRAP)
		return;
	/* the kernel would have kept it */
	if (t->blocks_trap && !ptrace(PTRACE_GETSIGINFO, t->pid, 0, &t->trap_info) &&
	    t->trap_info.si_code <= 0)
		t->trap_waits = true;
	else
		t->inject = SIGTRAP;
}

/* A thread without an event is at an int3 of ours, and its SIGTRAP is yet to come. */
static void rewind_trap(struct task *t)
{
	struct __ptrace_peeksiginfo_args which = {0, 0, 8};
	siginfo_t si[8];
	long n = 0;

	if (t->running || !mm_is_ours(t->mm, t->regs.rip - 1))
		return;
	n = ptrace(PTRACE_PEEKSIGINFO, t->pid, &which, si);
	for (long i = 0; i < n; i++) {
		if (si[i].si_signo != SIGTRAP || si[i].si_code <= 0)
			continue;
		t->regs.rip--;
		t->dirty = t->stale_trap = true;
		return;
	}
}

static bool is_stop(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

static bool is_fault(struct task *t, int sig)
{
	siginfo_t si;

	if (sig != SIGSEGV && sig != SIGBUS && sig != SIGFPE && sig != SIGILL)
		return false;
	return !ptrace(PTRACE_GETSIGINFO, t->pid, 0, &si) && si.si_code > 0;
}

static void event(struct task *t, int ev, int sig)
{
	switch (ev) {
	case PTRACE_EVENT_CLONE:
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
		made(t);
		break;
	case PTRACE_EVENT_EXEC:
		executed(t);
		break;
	case PTRACE_EVENT_EXIT:
		if (t->killed && t->running) /* when it was to go on from there */
			t->regs.rip = t->run_ip;
		exec_stopped(t, STOP_SIGNAL);
		t->in_call = true;
		sim_hooks->exit(t);
		break;
	case PTRACE_EVENT_STOP:
		if (!t->in_call) {
			rewind_trap(t);
			exec_stopped(t, STOP_SIGNAL);
		}
		t->listening = is_stop(sig);
		break;
	}
}

/* A ptwrite in a thread that is not recorded (its event is off just now) does nothing, on a processor that has it. */
static bool idle_ptwrite(struct task *t)
{
	uint8_t b[15];
	struct insn in;

	if (t->cpu || !is_fault(t, SIGILL) || !mem_read(t->pid, t->regs.rip, b, sizeof(b)) ||
	    !insn_decode(&in, t->regs.rip, b, sizeof(b)) || in.kind != I_PTWRITE)
		return false;
	t->regs.rip += in.len;
	t->dirty = true;
	return true;
}

/* Account for a stop; the thread does not go on yet. */
static void handle(struct task *t, int status)
{
	int sig = WSTOPSIG(status), ev = status >> 16;

	if (WIFEXITED(status) || WIFSIGNALED(status)) {
		if (t->pid == first)
			first_status = status;
		gone(t);
		return;
	}
	t->stopped = true;
	t->listening = false;
	if (!get_regs(t) || !t->mm)
		return; /* its maker has not told yet */
	if (!t->begun)
		begins(t);
	if (ev)
		event(t, ev, sig);
	else if (sig == (SIGTRAP | 0x80) && !t->in_call)
		call_begins(t);
	else if (sig == (SIGTRAP | 0x80))
		call_ends(t);
	else if (sig == SIGTRAP)
		trapped(t);
	else if (sig != SIGILL || !idle_ptwrite(t)) {
		exec_stopped(t, is_fault(t, sig) ? STOP_FAULT : STOP_SIGNAL);
		t->to_handler = false;
		t->inject = sig;
	}
}

/* The threads that have stopped: each has its turn before one is asked for again. The kernel would tell of the newest ones first,
 * and where these stop all the time never of the others. */
static struct {
	pid_t *pid;
	unsigned n, cap;
} due;

/* false when there is nobody */
static bool all_due(void)
{
	int status;
	pid_t p;

	due.n = 0;
	while ((p = waitpid(-1, &status, due.n ? __WALL | WNOHANG : __WALL)) > 0 ||
	       (p < 0 && errno == EINTR)) {
		struct task *t = p > 0 ? sim_task(p) : NULL;

		if (p < 0 || (!t && (WIFEXITED(status) || WIFSIGNALED(status))))
			continue;
		if (!t)
			t = add(p);
		t->due = true;
		t->status = status;
		if (due.n == due.cap)
			due.pid =
				xrealloc(due.pid, (due.cap = due.cap ? 2 * due.cap : 64) * sizeof(*due.pid));
		due.pid[due.n++] = p;
	}
	return due.n > 0;
}

int sim_run(pid_t pid)
{
	struct task *t = add(pid);

	first = pid;
	t->mm = mm_new(pid);
	t->stopped = t->in_call = true;
	read_tgid(t);
	get_regs(t);
	sim_hooks->exec(t, NULL);
	resume(t);
	while (tasks && all_due()) {
		free_ended();
		for (unsigned i = 0; i < due.n; i++) {
			t = sim_task(due.pid[i]); /* it may have ended, or have had its turn */
			if (!t || !t->due)
				continue;
			t->due = false;
			t->busy = true;
			handle(t, t->status);
			t = sim_task(due.pid[i]);
			if (!t)
				continue;
			t->busy = false;
			resume(t);
		}
	}
	return WIFSIGNALED(first_status) ? 128 + WTERMSIG(first_status) : WEXITSTATUS(first_status);
}
