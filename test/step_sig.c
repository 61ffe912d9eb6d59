/* SPDX-License-Identifier: MIT
 *
 * step_sig.c - runs a program and sends it signals at chosen instructions
 *
 * usage: step_sig N PROG ARGS...
 *        step_sig every PROG ARGS...
 *        step_sig any PROG ARGS...
 *        step_sig hooks PROG ARGS...
 *
 * Counting begins when the program gets a SIGURG, which is kept from it, and ends with the next. N: a
 * SIGUSR1 after exactly N instructions; N = 0 sends nothing. every: a SIGUSR1 at every instruction (four times
 * at most) at which the program has it open, its own or the tracer's, but for those of the handler, which runs freely to its
 * sigreturn; and at every 16th of them a SIGUSR2 at the first instruction of the way into that handler at which
 * that is open. any: as every, with the two signals that sigs_plug.c handles. hooks: as every, but only at instructions of libptrace_rt.so; no
 * SIGUSR2, and none while it is blocked. Exit status: the program's, or 100 if a second SIGURG came before N, 101 for what
 * should not happen. every, any, hooks: how many signals were sent is said on file descriptor 3.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define SYSCALL_STOP (SIGTRAP | 0x80)
#define NR_SIGRETURN 15

static int urgent; /* a SIGURG came */
static int one = SIGUSR1, two = SIGUSR2;

static int stop(pid_t p, int request, int sig)
{
	int st;

	if (ptrace(request, p, NULL, (long)sig) || waitpid(p, &st, 0) != p) {
		perror("step_sig");
		exit(101);
	}
	urgent |= WIFSTOPPED(st) && WSTOPSIG(st) == SIGURG;
	return st;
}

static int finish(pid_t p, int st)
{
	while (WIFSTOPPED(st))
		st = stop(p, PTRACE_CONT,
			  WSTOPSIG(st) == SIGTRAP || WSTOPSIG(st) == SIGURG ? 0 : WSTOPSIG(st));
	return WIFEXITED(st) ? WEXITSTATUS(st) : 101;
}

static int after(pid_t p, int st, long n)
{
	for (long i = 0; i < n && WIFSTOPPED(st); i++) {
		st = stop(p, PTRACE_SINGLESTEP, 0);
		if (WIFSTOPPED(st) && WSTOPSIG(st) == SIGURG) {
			finish(p, st);
			return 100;
		}
	}
	if (n && WIFSTOPPED(st))
		st = stop(p, PTRACE_CONT, one);
	return finish(p, st);
}

static int open_for(pid_t p, int sig)
{
	uint64_t mask = 0;

	if (ptrace(PTRACE_GETSIGMASK, p, 8l, &mask)) {
		perror("step_sig: PTRACE_GETSIGMASK");
		exit(101);
	}
	return !(mask & 1ull << (sig - 1));
}

static int signal_of(int st)
{
	return WIFSTOPPED(st) && WSTOPSIG(st) != SIGTRAP && WSTOPSIG(st) != SYSCALL_STOP ? WSTOPSIG(st) : 0;
}

/* lets the program run until as many sigreturns have been made as there are handlers to leave */
static int leave(pid_t p, int st, int handlers)
{
	struct user_regs_struct r;
	int inside = 0;

	while (handlers && WIFSTOPPED(st)) {
		st = stop(p, PTRACE_SYSCALL, signal_of(st));
		if (!WIFSTOPPED(st) || WSTOPSIG(st) != SYSCALL_STOP || ptrace(PTRACE_GETREGS, p, NULL, &r))
			continue;
		if (!inside && r.rax == (uint64_t)-38 && r.orig_rax == NR_SIGRETURN) { /* at its entry */
			inside = 1;
		} else if (inside) {
			inside = 0;
			handlers--;
		}
	}
	return st;
}

/* a SIGUSR2 n instructions behind the first one at which it is open on the way into a handler */
static int into(pid_t p, int st, long n)
{
	if (!n) {
		syscall(SYS_tgkill, p, p, two);
		return st;
	}
	while (WIFSTOPPED(st) && !open_for(p, two))
		st = stop(p, PTRACE_SYSCALL, signal_of(st));
	while (n-- &&
	       WIFSTOPPED(st)) /* behind a system call or at a handler's entry no signal can be put in */
		st = stop(p, PTRACE_SINGLESTEP, signal_of(st));
	return stop(p, PTRACE_SINGLESTEP, two);
}

/* A few for each instruction: the tracer's system call hook begins anew when a signal comes before the call. */
#define SEEN (1u << 20)
static int enough(pid_t p)
{
	static struct {
		uint64_t rip;
		int n;
	} seen[SEEN];
	static unsigned nseen;
	struct user_regs_struct r;
	uint64_t i;

	if (ptrace(PTRACE_GETREGS, p, NULL, &r) || nseen == SEEN / 2)
		return 1;
	for (i = r.rip; seen[i % SEEN].n && seen[i % SEEN].rip != r.rip; i++)
		;
	nseen += !seen[i % SEEN].n;
	seen[i % SEEN].rip = r.rip;
	return ++seen[i % SEEN].n > 4;
}

/* the runtime's text */
static struct {
	uint64_t lo, hi;
} runtime;

static void find_runtime(pid_t p)
{
	char path[64], line[4096];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", p);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		uint64_t lo, hi;

		if (strstr(line, "libptrace_rt.so") && strstr(line, " r-xp ") &&
		    sscanf(line, "%lx-%lx", &lo, &hi) == 2) {
			runtime.lo = lo;
			runtime.hi = hi;
		}
	}
	if (!f || !runtime.hi) {
		fprintf(stderr, "step_sig: no libptrace_rt.so in process %d\n", p);
		exit(101);
	}
	fclose(f);
}

static int elsewhere(pid_t p)
{
	struct user_regs_struct r;

	return runtime.hi && !ptrace(PTRACE_GETREGS, p, NULL, &r) &&
	       (r.rip < runtime.lo || r.rip >= runtime.hi);
}

static int every(pid_t p, int st)
{
	long sent = 0, nested = 0, blocked = 0;

	ptrace(PTRACE_SETOPTIONS, p, NULL, PTRACE_O_TRACESYSGOOD);
	urgent = 0;
	while (WIFSTOPPED(st) && !urgent) {
		int handlers = 1;

		if (!open_for(p, one)) {
			/* Not step by step: the flags that are pushed meanwhile would have the trap flag. Every other
			 * time a signal waits for the end of this. */
			int wait = !runtime.hi && blocked++ & 1;

			if (wait && ++sent)
				syscall(SYS_tgkill, p, p, one);
			do
				st = stop(p, PTRACE_SYSCALL, signal_of(st));
			while (WIFSTOPPED(st) && !open_for(p, one));
			st = leave(p, st, wait);
			if (runtime.hi && WIFSTOPPED(st)) /* one that waited comes first */
				st = stop(p, PTRACE_SINGLESTEP, signal_of(st));
		} else if (signal_of(st) || elsewhere(p) || enough(p)) {
			st = stop(p, PTRACE_SINGLESTEP, signal_of(st));
		} else {
			st = stop(p, PTRACE_SINGLESTEP, one);
			if (++sent % 16 == 0 && !runtime.hi) {
				st = into(p, st, nested++ % 12);
				handlers++;
			}
			st = leave(p, st, handlers);
			/* where it was when the signal came: that instruction first */
			if (WIFSTOPPED(st))
				st = stop(p, PTRACE_SINGLESTEP, signal_of(st));
		}
	}
	dprintf(3, "%ld %ld\n", sent, nested);
	return finish(p, st);
}

int main(int argc, char **argv)
{
	int hooks = argc > 2 && !strcmp(argv[1], "hooks"), any = argc > 2 && !strcmp(argv[1], "any"),
	    all = hooks || any || (argc > 2 && !strcmp(argv[1], "every")), st;
	long n = argc > 2 && !all ? atol(argv[1]) : -1;
	pid_t p;

	if (n < 0 && !all) {
		fprintf(stderr, "usage: step_sig N|every|any|hooks PROG ARGS...\n");
		return 101;
	}
	if (any) {
		one = SIGRTMAX - 1;
		two = SIGRTMAX;
	}
	p = fork();
	if (!p) {
		personality(ADDR_NO_RANDOMIZE);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(argv[2], argv + 2);
		_exit(101);
	}
	if (waitpid(p, &st, 0) != p)
		return 101;
	while (WIFSTOPPED(st) && WSTOPSIG(st) != SIGURG)
		st = stop(p, PTRACE_CONT, WSTOPSIG(st) == SIGTRAP ? 0 : WSTOPSIG(st));
	if (hooks && WIFSTOPPED(st))
		find_runtime(p);
	return all ? every(p, st) : after(p, st, n);
}
