/* SPDX-License-Identifier: MIT
 *
 * oracle.c - the true access sequence of a program's threads, one step at a time
 *
 *	oracle -o FILE [options] -- CMD ARGS...	step CMD, write its accesses
 *	oracle --launch [-E N=V] -- CMD ARGS...	run CMD unstepped in the same set-up
 *
 * Before every instruction its operands are evaluated from the registers; after the
 * step the records are kept if the instruction completed. Where recording begins:
 *
 *	by default	the runtime's constructor under PTRACE_ORACLE=1 executes int3 with
 *			rax = START_MAGIC, rdi = its return address, rsi = rsp after its
 *			return; recording begins when rip and rsp have those values
 *	--from-entry	the first instruction after execve (of the dynamic linker, if any)
 *	--start-at-main-exe-entry	the program's own ELF entry point
 *
 * What single-stepping itself changes is undone: the trap flag in what pushf pushes and
 * in r11 after a system call. A program that sets the trap flag itself is not supported.
 * An instruction that faults has made no access; it makes them when it is restarted.
 *
 * With --follow, threads and children are stepped, too, each from the first instruction behind the
 * system call that made it; their records carry their number in order of creation (follow.c).
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "oracle.h"

#define START_MAGIC 0x5054524143455354ull /* "PTRACEST" read as a number */
#define FLAG_TF 0x100ull

enum start { START_MARKER, START_HERE, START_EXE };

static struct {
	const char *out;
	enum start start;
	uint64_t max_steps;
	bool launch, verbose, list, follow;
	char *setenvs[64];
	int nsetenvs;
} opt;

static struct {
	int fd;
	struct ptrace_rec buf[32768];
	size_t n;
	uint64_t total;
} out;

void fail(const char *what)
{
	fprintf(stderr, "oracle: %s: %s\n", what, strerror(errno));
	exit(125);
}

static void out_flush(void)
{
	const char *p = (const char *)out.buf;
	size_t left = out.n * sizeof(out.buf[0]);

	while (left) {
		ssize_t n = write(out.fd, p, left);

		if (n < 0)
			fail("cannot write the trace");
		p += n;
		left -= n;
	}
	out.n = 0;
}

static void out_open(void)
{
	struct ptrace_raw_head head = {
		.magic = PTRACE_RAW_MAGIC,
		.version = PTRACE_RAW_VERSION,
		.rec_size = sizeof(struct ptrace_rec),
	};

	/* CLOEXEC: the program must see the same free descriptors as without us. */
	out.fd = open(opt.out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (out.fd < 0 || write(out.fd, &head, sizeof(head)) != sizeof(head))
		fail(opt.out);
}

static void out_put(const struct stepper *s, struct ptrace_rec *recs, int n)
{
	for (int i = 0; i < n; i++)
		recs[i].tid = s->number;
	if (out.n + n > sizeof(out.buf) / sizeof(out.buf[0]))
		out_flush();
	memcpy(out.buf + out.n, recs, n * sizeof(*recs));
	out.n += n;
	out.total += n;
}

void get_regs(struct stepper *s)
{
	if (ptrace(PTRACE_GETREGS, s->pid, 0, &s->regs) < 0)
		fail("cannot read registers");
}

/* Status of an ended program as a shell would give it. */
int exit_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool ended(int status)
{
	return WIFEXITED(status) || WIFSIGNALED(status);
}

/* Let the program run at full speed until SIGTRAP; false when it ended instead. */
static bool run_to_trap(struct stepper *s, int *status)
{
	int sig = 0;

	for (;;) {
		if (ptrace(PTRACE_CONT, s->pid, 0, sig) < 0 && errno != ESRCH)
			fail("cannot continue the program");
		if (waitpid(s->pid, status, __WALL) < 0)
			fail("lost the program");
		if (ended(*status))
			return false;
		sig = WSTOPSIG(*status);
		if (sig == SIGTRAP && *status >> 16)
			sig = 0; /* an execve: the marker is in the new image */
		else if (sig == SIGTRAP)
			return true;
	}
}

static bool run_to_marker(struct stepper *s, int *status)
{
	while (run_to_trap(s, status)) {
		get_regs(s);
		if (s->regs.rax == START_MAGIC) {
			s->begin_ip = s->regs.rdi;
			s->begin_sp = s->regs.rsi;
			tracee_env_disarm(s->pid);
			return true;
		}
		if (ptrace(PTRACE_CONT, s->pid, 0, SIGTRAP) < 0)
			fail("cannot continue the program");
	}
	fprintf(stderr, "oracle: the program ended without a start marker; is LD_PRELOAD set? "
			"(or use --from-entry)\n");
	return false;
}

static bool run_to_exe_entry(struct stepper *s, int *status)
{
	uint64_t entry = tracee_auxv(s->pid, AT_ENTRY);
	long word;

	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, s->pid, entry, 0);
	if (errno || ptrace(PTRACE_POKETEXT, s->pid, entry, (word & ~0xffl) | 0xcc) < 0)
		fail("cannot set a breakpoint at the entry point");
	if (!run_to_trap(s, status))
		return false;
	get_regs(s);
	if (s->regs.rip != entry + 1) {
		fprintf(stderr, "oracle: trapped at %#llx before the entry point\n", s->regs.rip);
		exit(125);
	}
	s->regs.rip = entry;
	if (ptrace(PTRACE_POKETEXT, s->pid, entry, word) < 0 ||
	    ptrace(PTRACE_SETREGS, s->pid, 0, &s->regs) < 0)
		fail("cannot remove the breakpoint at the entry point");
	return true;
}

static void list_step(struct stepper *s)
{
	fprintf(stderr, "%#llx %s\n", s->regs.rip, decode_text(s->pid, s->regs.rip));
	for (int i = 0; i < s->step.n; i++)
		fprintf(stderr, "\t%c %#lx %u\n", "RWP"[s->step.recs[i].kind], s -> step.recs[i].addr,
			s->step.recs[i].size);
}

/* Evaluate what the next step will access. */
static void step_prepare(struct stepper *s)
{
	struct step *st = &s->step;

	s->xs.valid = false;
	st->n = st->nfirst = 0;
	st->first = st->last = decode_at(s->pid, s->regs.rip);
	if (!s->recording && s->regs.rip == s->begin_ip && s->regs.rsp == s->begin_sp)
		s->recording = true;
	if (s->recording)
		st->n = st->nfirst = eval_insn(s->pid, st->first, &s->regs, &s->xs, st->recs);
	if (st->first->flags & INSN_MOVSS) {
		/* No trap follows mov ss: the next instruction runs in the same step, with
		 * the same general registers. */
		st->last = decode_at(s->pid, s->regs.rip + st->first->len);
		if (s->recording)
			st->n += eval_insn(s->pid, st->last, &s->regs, &s->xs, st->recs + st->n);
	}
	if (st->first->flags & INSN_BAD)
		s->unreadable++;
	if (opt.list)
		list_step(s);
}

static bool changes_maps(uint64_t nr)
{
	return nr == SYS_mmap || nr == SYS_munmap || nr == SYS_mprotect || nr == SYS_mremap ||
	       nr == SYS_pkey_mprotect || nr == SYS_shmat || nr == SYS_shmdt || nr == SYS_brk;
}

/* Undo what single-stepping did to the program's state. */
static void step_repair(struct stepper *s, const struct insn *in, uint64_t nr)
{
	long word;

	if (in->flags & INSN_PUSHF) {
		errno = 0;
		word = ptrace(PTRACE_PEEKDATA, s->pid, s->regs.rsp, 0);
		if (errno || ptrace(PTRACE_POKEDATA, s->pid, s->regs.rsp, word & ~FLAG_TF) < 0)
			fail("cannot repair the pushed flags");
	}
	if (in->flags & INSN_SYSCALL) {
		if (s->regs.r11 & FLAG_TF) {
			s->regs.r11 &= ~FLAG_TF;
			if (ptrace(PTRACE_POKEUSER, s->pid, offsetof(struct user_regs_struct, r11),
				   s->regs.r11) < 0)
				fail("cannot repair r11");
		}
		if (changes_maps(nr)) {
			tracee_maps_changed();
			decode_flush();
		}
	}
}

/* A SIGTRAP that is the program's own business, not the end of our step? */
static bool own_trap(struct stepper *s, uint64_t ip_before)
{
	siginfo_t si;

	if (s->step.last->flags & INSN_INT3)
		return true;
	if (s->regs.rip != ip_before || s->step.first->flags & (INSN_REP | INSN_BRANCH))
		return false;
	if (ptrace(PTRACE_GETSIGINFO, s->pid, 0, &si) < 0)
		return false;
	return si.si_code <= 0;
}

static bool is_group_stop(pid_t pid, int sig)
{
	siginfo_t si;

	if (sig != SIGSTOP && sig != SIGTSTP && sig != SIGTTIN && sig != SIGTTOU)
		return false;
	return ptrace(PTRACE_GETSIGINFO, pid, 0, &si) < 0 && errno == EINVAL;
}

/* More than one instruction in a step would make the trace silently wrong. A branch may
 * go anywhere, a system call may return elsewhere (sigreturn). */
static void check_step(struct stepper *s, uint64_t ip_before)
{
	const struct insn *last = s->step.last;

	if (s->regs.rip == last->ip + last->len || last->flags & (INSN_BRANCH | INSN_SYSCALL | INSN_BAD))
		return;
	if (last->flags & INSN_REP && s->regs.rip == ip_before)
		return;
	if (s->step.last != s->step.first && s->regs.rip == last->ip)
		return;
	fprintf(stderr, "oracle: the trap after %#lx (%s) was lost, now at %#llx\n", last->ip,
		decode_text(s->pid, last->ip), s->regs.rip);
	exit(125);
}

static void step_commit(struct stepper *s, uint64_t ip_before, uint64_t nr)
{
	struct step *st = &s->step;
	const struct insn *done = st->last;
	int n = st->n;

	check_step(s, ip_before);
	if (st->last != st->first && s->regs.rip == ip_before + st->first->len) {
		done = st->first; /* stopped between the two after all */
		n = st->nfirst;
	}
	if (s->recording) {
		out_put(s, st->recs, n);
		s->recorded++;
	}
	step_repair(s, done, nr);
}

/* Run one instruction to a breakpoint behind it instead of a trap. A hypervisor that
 * intercepts an instruction may skip it without the trap that is due, and then the next
 * instruction runs in the same step, unseen. */
static void step_to_breakpoint(struct stepper *s, const struct insn *in, int *status)
{
	uint64_t next = in->ip + in->len;
	long word;

	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, s->pid, next, 0);
	if (errno || ptrace(PTRACE_POKETEXT, s->pid, next, (word & ~0xffl) | 0xcc) < 0)
		fail("cannot set a breakpoint");
	if (ptrace(PTRACE_CONT, s->pid, 0, s->inject) < 0 && errno != ESRCH)
		fail("cannot continue the program");
	if (waitpid(s->pid, status, __WALL) < 0)
		fail("lost the program");
	if (ended(*status))
		return;
	if (ptrace(PTRACE_POKETEXT, s->pid, next, word) < 0)
		fail("cannot remove a breakpoint");
	get_regs(s);
	if (s->regs.rip == next + 1 &&
	    ptrace(PTRACE_POKEUSER, s->pid, offsetof(struct user_regs_struct, rip), next) < 0)
		fail("cannot move rip");
}

static void step_to_trap(struct stepper *s, int *status)
{
	if (ptrace(PTRACE_SINGLESTEP, s->pid, 0, s->inject) < 0 && errno != ESRCH)
		fail("cannot step");
	if (waitpid(s->pid, status, __WALL) < 0)
		fail("lost the program");
}

/* A transaction that aborts for no reason that eax tells (SDM Vol. 1, 16.3.5): any may */
static void step_abort(struct stepper *s, const struct insn *in, int *status)
{
	s->regs.rip = in->fallback;
	s->regs.rax = 0;
	if (ptrace(PTRACE_SETREGS, s->pid, 0, &s->regs) < 0)
		fail("cannot abort a transaction");
	*status = W_STOPCODE(SIGTRAP);
}

bool step_begin(struct stepper *s, int *status)
{
	s->ip = s->regs.rip;
	s->nr = s->regs.rax;
	s->handler = s->enters_handler;
	step_prepare(s);
	if (s->step.first->flags & INSN_EXITS && !s->handler) {
		step_to_breakpoint(s, s->step.first, status);
		return true;
	}
	if (opt.follow && s->step.last->flags & INSN_SYSCALL && !s->handler) {
		/* It may wait for another thread. decode's cache goes on without us. */
		s->call = *s->step.last;
		s->step.first = s->step.last = &s->call;
		step_go_on(s);
		return false;
	}
	if (s->step.first->flags & INSN_XBEGIN && !s->handler && !s->inject) {
		step_abort(s, s->step.first, status);
		return true;
	}
	step_to_trap(s, status);
	return true;
}

void step_go_on(struct stepper *s)
{
	if (ptrace(PTRACE_SINGLESTEP, s->pid, 0, s->inject) < 0 && errno != ESRCH)
		fail("cannot step");
	s->inject = 0;
}

/* A system call that a signal without a handler interrupted comes once more: the kernel has not yet moved rip
 * back when the signal is shown. asm/errno.h has no names for these outside the kernel (ERESTARTSYS to
 * ERESTART_RESTARTBLOCK, linux/errno.h). */
static bool restarts(const struct stepper *s)
{
	long r = (long)s->regs.rax;

	return s->step.last->flags & INSN_SYSCALL && r <= -512 && r >= -516 && r != -515;
}

bool step_end(struct stepper *s, int status)
{
	int sig;

	s->inject = 0;
	s->enters_handler = false;
	s->steps++;
	if (ended(status))
		return false;
	if (status >> 16 == PTRACE_EVENT_EXEC)
		return false;
	get_regs(s);
	sig = WSTOPSIG(status);
	if (sig == SIGTRAP && s->handler)
		return true; /* stopped at the handler's first instruction */
	if (sig == SIGTRAP && !own_trap(s, s->ip)) {
		step_commit(s, s->ip, s->nr);
		return true;
	}
	if (s->regs.rip != s->ip && restarts(s) && !tracee_catches(s->pid, sig)) {
		s->regs.rip = s->ip;
		s->regs.rax = s->nr;
	} else if (s->regs.rip != s->ip) {
		/* A signal: it comes before the instruction, except for int3 and after a system
		 * call that was interrupted. */
		step_commit(s, s->ip, s->nr);
	}
	if (is_group_stop(s->pid, sig))
		return true;
	s->inject = sig;
	s->enters_handler = tracee_catches(s->pid, sig);
	return true;
}

/* One step. Returns false when the program ended or left for another image. */
static bool step(struct stepper *s, int *status)
{
	step_begin(s, status);
	return step_end(s, *status);
}

int detached_status(pid_t pid)
{
	int status;

	if (ptrace(PTRACE_DETACH, pid, 0, 0) < 0)
		fail("cannot let the program go");
	if (waitpid(pid, &status, 0) < 0)
		fail("lost the program");
	return exit_code(status);
}

static int run(pid_t pid)
{
	static struct stepper s;
	struct timespec t0, t1;
	int status = 0;
	double sec;

	s.pid = pid;
	if (opt.start == START_MARKER ? !run_to_marker(&s, &status)
	    : opt.start == START_EXE  ? !run_to_exe_entry(&s, &status)
				      : false)
		return opt.start == START_MARKER ? 125 : exit_code(status);
	/* The first step out of execve ends at once: it reports the system call's return. */
	if (opt.start == START_HERE)
		step_to_trap(&s, &status);
	s.recording = opt.start != START_MARKER;
	get_regs(&s);
	clock_gettime(CLOCK_MONOTONIC, &t0);
	while (opt.follow ? follow(&s, &status) : step(&s, &status)) {
		if (opt.max_steps && s.steps >= opt.max_steps) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, __WALL);
			fprintf(stderr, "oracle: stopped after %lu steps\n", s.steps);
			status = 124 << 8;
			break;
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &t1);
	out_flush();
	sec = (t1.tv_sec - t0.tv_sec) + (t1.tv_nsec - t0.tv_nsec) / 1e9;
	if (s.unreadable)
		fprintf(stderr, "oracle: %lu steps at unreadable or invalid instructions\n", s.unreadable);
	if (opt.verbose)
		fprintf(stderr, "oracle: %lu steps, %lu recorded, %lu records, %.2f s, %.0f steps/s\n",
			s.steps, s.recorded, out.total, sec, s.steps / sec);
	if (opt.follow)
		return exit_code(status);
	if (!ended(status)) {
		fprintf(stderr, "oracle: execve: the trace ends here, the program goes on\n");
		return detached_status(pid);
	}
	return exit_code(status);
}

static const char usage_text[] =
	"usage: oracle -o FILE [options] -- CMD ARGS...\n"
	"       oracle --launch [-E NAME=VALUE] -- CMD ARGS...\n"
	"  -o FILE      write the records here\n"
	"  -E NAME=VAL  set a variable in the program's environment (repeatable)\n"
	"  --follow     step threads and children, too; one line each on stderr with -v\n"
	"  --from-entry                begin at the first instruction after execve\n"
	"  --start-at-main-exe-entry   begin at the program's ELF entry point\n"
	"  --max-steps N               kill the program after N steps, exit status 124\n"
	"  --list       print every instruction and its accesses on stderr\n"
	"  -v           print steps and steps per second\n"
	"Exit status: the program's, 128 + signal, 124 at --max-steps, 125 own failure,\n"
	"127 CMD cannot be run.\n";

static void parse_options(int argc, char **argv)
{
	static const struct option longs[] = {
		{"launch", no_argument, NULL, 'L'},
		{"from-entry", no_argument, NULL, 'F'},
		{"start-at-main-exe-entry", no_argument, NULL, 'S'},
		{"max-steps", required_argument, NULL, 'M'},
		{"follow", no_argument, NULL, 'f'},
		{"list", no_argument, NULL, 'l'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "+o:E:vh", longs, NULL)) != -1) {
		switch (c) {
		case 'o':
			opt.out = optarg;
			break;
		case 'v':
			opt.verbose = true;
			break;
		case 'l':
			opt.list = true;
			break;
		case 'L':
			opt.launch = true;
			break;
		case 'F':
			opt.start = START_HERE;
			break;
		case 'S':
			opt.start = START_EXE;
			break;
		case 'f':
			opt.follow = true;
			break;
		case 'M':
			opt.max_steps = strtoull(optarg, NULL, 0);
			break;
		case 'h':
			fputs(usage_text, stdout);
			exit(0);
		case 'E':
			if (opt.nsetenvs == 64 || !strchr(optarg, '=')) {
				fprintf(stderr, "oracle: bad -E %s\n", optarg);
				exit(125);
			}
			opt.setenvs[opt.nsetenvs++] = optarg;
			break;
		default:
			fputs(usage_text, stderr);
			exit(125);
		}
	}
	if (optind == argc || (!opt.launch && !opt.out)) {
		fputs(usage_text, stderr);
		exit(125);
	}
}

int main(int argc, char **argv)
{
	pid_t pid;

	parse_options(argc, argv);
	pid = tracee_start(argv + optind, opt.setenvs, opt.nsetenvs);
	if (opt.launch)
		return detached_status(pid);
	decode_init();
	eval_init();
	out_open();
	return run(pid);
}
