/* SPDX-License-Identifier: MIT
 *
 * check.c - runs a program and checks what rt_sysout() says of each of its system calls
 *
 *     sysout_check [-b BYTES] [-s FILE] [-v] [-x NUMBER]... PROGRAM [ARGUMENT]...
 *
 * The program and its children are stopped before and after each system call (ptrace(2)); all memory that they may
 * write is compared. What changed and was not said is an error. The code that is tested is the runtime's; it
 * reads the other process's memory here.
 *
 *   -b  compare only what is near the arguments and the stack, but for every 16th call, where there is more to
 *       compare than this (default 4 MiB)
 *   -s  append a line for each kind of call that was made: number, class, "ok" or an error number, how often
 *   -v  print every call
 *   -x  take it that the call of this number writes nothing, and fail if that is not noticed, for each of them
 *
 * Not compared: threads, whose memory others change; a parent that waits for what vfork(2) made; the range that
 * a call mapped or unmapped; the rseq area; shared mappings while there is more than one process. Exit status: 0, 1
 * (something was written that was not said), 2.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mem.h"
#include "rt_sysout.h"

#define RSEQ_SIZE 32
#define PAGE 4096
#define ERESTARTSYS 512 /* include/linux/errno.h of the kernel: seen only by a tracer */
#define ERESTART_RESTARTBLOCK 516

struct proc {
	struct proc *next;
	pid_t pid;
	bool fresh; /* its first SIGSTOP is ptrace's */
	bool shared; /* others run in its memory */
	bool inside;
	bool alone; /* it was the only one when the call began */
	bool remap; /* what is mapped may be another than at the last call */
	uint64_t nr, arg[6], sp;
	struct sys_before before;
	struct snap old;
	struct near near;
};

struct seen {
	struct seen *next;
	uint64_t nr, count;
	long ret; /* 0, -errno */
	int class;
};

static struct proc *procs;
static struct seen *seen;
static pid_t current; /* whose memory rt_copy_out() reads */
static size_t budget = 4 << 20;
static bool verbose;
static bool silent[512], noticed[512]; /* -x, by number */
static struct out_range out[RT_SYSOUT_MAX];
static int nout;
static uint64_t calls, compared, said, changed, elsewhere, wrong, by_class[5];
static const char *const class_name[] = {"none", "list", "map", "stop", "special"};

int rt_copy_out(void *to, uint64_t from, size_t n)
{
	struct iovec l = {to, n}, r = {(void *)from, n};

	return process_vm_readv(current, &l, 1, &r, 1, 0) == (ssize_t)n ? 0 : -EFAULT;
}

static void read_from(pid_t pid)
{
	if (pid != current)
		rt_sysout_forget();
	current = pid;
}

static struct proc *proc_of(pid_t pid)
{
	struct proc *p = procs;

	while (p && p->pid != pid)
		p = p->next;
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p) {
		perror("calloc");
		exit(2);
	}
	p->pid = pid;
	p->fresh = p->remap = true;
	p->next = procs;
	return procs = p;
}

static void gone(pid_t pid)
{
	for (struct proc **p = &procs; *p; p = &(*p)->next)
		if ((*p)->pid == pid) {
			struct proc *old = *p;

			*p = old->next;
			snap_free(&old->old);
			free(old);
			return;
		}
}

static void print_call(const struct proc *p, long ret, int class)
{
	fprintf(stderr, "%d: call %lu(%lx, %lx, %lx, %lx, %lx, %lx) = %ld: %s", p->pid, p->nr, p->arg[0],
		p->arg[1], p->arg[2], p->arg[3], p->arg[4], p->arg[5], ret, class_name[class]);
	for (int i = 0; i < nout && i < 8; i++)
		fprintf(stderr, " %lx+%lu", out[i].addr, out[i].len);
	fprintf(stderr, "%s\n", nout > 8 ? " ..." : "");
}

static bool covered(uint64_t addr)
{
	for (int i = 0; i < nout; i++)
		if (addr >= out[i].addr && addr < out[i].addr + out[i].len)
			return true;
	return false;
}

static bool in_rseq(const struct proc *p, uint64_t addr)
{
	struct __ptrace_rseq_configuration c = {0};

	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, p->pid, sizeof(c), &c) <= 0)
		return false;
	return c.rseq_abi_pointer && addr >= c.rseq_abi_pointer && addr < c.rseq_abi_pointer + RSEQ_SIZE;
}

/* what a call that changes the address space may do to it */
static bool in_map(const struct proc *p, long ret, uint64_t addr)
{
	const uint64_t *a = p->arg;

	switch (p->nr) {
	case SYS_mmap:
		return addr - (uint64_t)ret < a[1] + 4096;
	case SYS_mremap:
		return addr - (uint64_t)ret < a[2] + 4096 || addr - a[0] < a[1] + 4096 ||
		       addr - a[4] < a[2] + 4096;
	case SYS_munmap:
	case SYS_mprotect:
	case SYS_pkey_mprotect:
	case SYS_madvise:
		return addr - a[0] < a[1] + 4096;
	}
	return true; /* brk: only between its old and new end, but where that was is not known here */
}

struct where {
	struct proc *p;
	long ret;
	int class;
};

static void differ(void *arg, uint64_t addr, uint64_t len)
{
	const struct where *w = arg;
	const struct area *a;
	uint64_t end = addr + len;

	if (w->class == OUT_MAP && in_map(w->p, w->ret, addr))
		return;
	changed += len;
	while (addr < end && (covered(addr) || in_rseq(w->p, addr)))
		addr++;
	if (addr == end)
		return;
	a = snap_map(&w->p->old, addr);
	if (a && a->shared && !(w->p->alone && !procs->next)) {
		elsewhere++;
		return;
	}
	if (w->p->nr < 512 && silent[w->p->nr]) {
		noticed[w->p->nr] = true;
		return;
	}
	wrong++;
	if (wrong < 30) {
		fprintf(stderr, "not said: %lx+%lu: ", addr, end - addr);
		print_call(w->p, w->ret, w->class);
	}
}

static void count(const struct proc *p, long ret, int class)
{
	long r = ret < 0 && ret > -4096 ? ret : 0;
	struct seen *s = seen;

	while (s && (s->nr != p->nr || s->ret != r || s->class != class))
		s = s->next;
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s) {
			perror("calloc");
			exit(2);
		}
		*s = (struct seen){seen, p->nr, 0, r, class};
		seen = s;
	}
	s->count++;
	calls++;
	by_class[class]++;
}

/* All of a range can be read: the header promises it. */
static void check_ranges(const struct proc *p, long ret, int class)
{
	static uint8_t buf[PAGE];

	for (int i = 0; i < nout; i++) {
		uint64_t at = out[i].addr, end = at + out[i].len, n;

		said += out[i].len;
		for (; at < end; at += n) {
			n = PAGE - at % PAGE < end - at ? PAGE - at % PAGE : end - at;
			const struct area *a = snap_map(&p->old, at);

			if (!rt_copy_out(buf, at, n) || (a && a->blind))
				continue;
			wrong++;
			fprintf(stderr, "cannot be read: %lx: ", at);
			print_call(p, ret, class);
			break;
		}
	}
}

static void entry(struct proc *p, const struct __ptrace_syscall_info *i)
{
	p->inside = true;
	p->alone = !procs->next;
	if (i->entry.nr != SYS_restart_syscall || p->nr == SYS_restart_syscall) {
		p->nr = i->entry.nr;
		memcpy(p->arg, i->entry.args, sizeof(p->arg));
	} /* else: goes on with the call that was interrupted */
	p->sp = i->stack_pointer;
	p->near.n = 7;
	memcpy(p->near.addr, p->arg, sizeof(p->arg));
	p->near.addr[6] = p->sp;
	read_from(p->pid);
	rt_sysin((long)p->nr, p->arg, &p->before);
	if (p->shared)
		return;
	if (p->remap || !snap_map(&p->old, p->sp)) /* the stack grows by itself */
		snap_maps(&p->old, p->pid);
	p->remap = false;
	snap_take(&p->old, budget, calls % 16 ? &p->near : NULL);
}

static void leave(struct proc *p, long ret)
{
	static struct snap new;
	struct where w = {p, ret, 0};

	p->inside = false;
	if (ret <= -ERESTARTSYS && ret >= -ERESTART_RESTARTBLOCK)
		w.ret = ret = -EINTR;
	read_from(p->pid);
	w.class = rt_sysout((long)p->nr, p->arg, ret, &p->before, out, RT_SYSOUT_MAX, &nout);
	if (p->nr < 512 && silent[p->nr]) {
		nout = 0;
		w.class = OUT_NONE;
	}
	p->remap |= w.class == OUT_MAP || w.class == OUT_SPECIAL || w.class == OUT_STOP;
	count(p, ret, w.class);
	if (verbose)
		print_call(p, ret, w.class);
	if (w.class == OUT_STOP)
		return;
	check_ranges(p, ret, w.class);
	if (p->shared || w.class == OUT_SPECIAL)
		return;
	if (p->remap)
		snap_maps(&new, p->pid);
	else
		snap_same(&new, &p->old);
	snap_take(&new, budget, p->old.near);
	snap_diff(&p->old, &new, differ, &w);
	compared++;
}

/* a child, or a thread */
static void born(struct proc *p)
{
	unsigned long pid = 0;
	struct proc *child;
	uint64_t flags = 0;
	bool vm;

	ptrace(PTRACE_GETEVENTMSG, p->pid, 0, &pid);
	child = proc_of((pid_t)pid);
	read_from(p->pid);
	if (p->nr == SYS_clone)
		flags = p->arg[0];
	else if (p->nr == SYS_clone3 && rt_copy_out(&flags, p->arg[0], sizeof(flags)))
		flags = CLONE_VM;
	vm = (flags & (CLONE_VM | CLONE_VFORK)) == CLONE_VM; /* both run */
	child->shared |= vm || p->shared;
	p->shared |= vm;
}

static int stopped(struct proc *p, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;
	siginfo_t si;

	if (sig == (SIGTRAP | 0x80)) {
		struct __ptrace_syscall_info i;

		if (ptrace(PTRACE_GET_SYSCALL_INFO, p->pid, sizeof(i), &i) < 0)
			return 0;
		if (i.op == PTRACE_SYSCALL_INFO_ENTRY)
			entry(p, &i);
		else if (i.op == PTRACE_SYSCALL_INFO_EXIT && p->inside)
			leave(p, (long)i.exit.rval);
		return 0;
	}
	if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE)
		born(p);
	if (event == PTRACE_EVENT_EXEC)
		p->shared = false, p->remap = true;
	if (event)
		return 0;
	if (sig == SIGSTOP && p->fresh) {
		p->fresh = false;
		return 0;
	}
	return ptrace(PTRACE_GETSIGINFO, p->pid, 0, &si) ? 0 : sig; /* none: a group stop */
}

static int follow(pid_t first)
{
	int status, result = 0;
	pid_t pid;

	while ((pid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
		int sig;

		if (pid < 0)
			continue;
		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			if (pid == first)
				result = status;
			gone(pid);
			continue;
		}
		sig = stopped(proc_of(pid), status);
		ptrace(PTRACE_SYSCALL, pid, 0, sig);
	}
	return result;
}

static pid_t launch(char **argv)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		execvp(argv[0], argv);
		perror(argv[0]);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) {
		perror("fork");
		exit(2);
	}
	proc_of(pid)->fresh = false;
	if (ptrace(PTRACE_SETOPTIONS, pid, 0,
		   PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			   PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC)) {
		perror("PTRACE_SETOPTIONS");
		exit(2);
	}
	ptrace(PTRACE_SYSCALL, pid, 0, 0);
	return pid;
}

static void save(const char *name)
{
	FILE *f = fopen(name, "ae");

	if (!f) {
		perror(name);
		exit(2);
	}
	for (struct seen *s = seen; s; s = s->next) {
		fprintf(f, "%lu %s ", s->nr, class_name[s->class]);
		if (s->ret)
			fprintf(f, "%ld %lu\n", -s->ret, s->count);
		else
			fprintf(f, "ok %lu\n", s->count);
	}
	fclose(f);
}

int main(int argc, char **argv)
{
	const char *file = NULL;
	int o, status;

	while ((o = getopt(argc, argv, "+b:s:vx:")) != -1) {
		if (o == 'b')
			budget = strtoull(optarg, NULL, 0);
		else if (o == 's')
			file = optarg;
		else if (o == 'v')
			verbose = true;
		else if (o == 'x')
			silent[strtoull(optarg, NULL, 0) % 512] = true;
		else
			return 2;
	}
	if (optind == argc) {
		fprintf(stderr, "usage: sysout_check [-b BYTES] [-s FILE] [-v] [-x NUMBER]... PROGRAM "
				"[ARGUMENT]...\n");
		return 2;
	}
	status = follow(launch(argv + optind));
	if (file)
		save(file);
	for (int i = 0; i < 512; i++)
		if (silent[i] && !noticed[i]) {
			fprintf(stderr, "not noticed: %d\n", i);
			wrong++;
		}
	fprintf(stderr,
		"sysout: %lu calls, %lu compared: none %lu list %lu map %lu special %lu stop %lu; bytes said "
		"%lu, "
		"changed %lu (%lu times perhaps by others); wrong %lu; %s %d\n",
		calls, compared, by_class[OUT_NONE], by_class[OUT_LIST], by_class[OUT_MAP],
		by_class[OUT_SPECIAL], by_class[OUT_STOP], said, changed, elsewhere, wrong,
		WIFEXITED(status) ? "exit" : "signal",
		WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	return wrong != 0;
}
