/* SPDX-License-Identifier: MIT
 *
 * prog_proc.c - calls on memory, processes, signals, clocks, keys and the like
 */
#include "prog.h"
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

void memory(void)
{
	uint8_t *p = (uint8_t *)C(mmap, 0, 16 * 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *pages[3] = {p, p + 4096, BAD};

	p[0] = p[4096] = p[3 * 4096] = 1;
	C(mincore, p, 16 * 4096 - 1, out[0] + 1);
	C(mincore, p, 1 << 30, out[0] + 1);
	C(mincore, p + 1, 1, out[0]);
	C(msync, p, 4096, 4);
	C(mlock, p, 4096);
	C(mlock2, p, 4096, 1);
	C(munlock, p, 4096);
	C(mlockall, 99);
	C0(munlockall);
	C(madvise, p, 4096, 3);
	C(madvise, p, 4096, 4);
	C(madvise, p, 4096, 20);
	C(madvise, p, 4096, 99);
	C(madvise, BAD, 4096, 4);
	C(process_madvise, -1, out[0], 1, 20, 0);
	C(mprotect, p, 4096, 1);
	C(mprotect, p, 4096, 3);
	C(pkey_mprotect, p, 4096, 3, -1);
	C(pkey_free, C(pkey_alloc, 0, 0));
	p = (uint8_t *)C(mremap, p, 16 * 4096, 20 * 4096, 1);
	C(mremap, p, 16 * 4096, 20 * 4096, 99);
	C(remap_file_pages, p, 4096, 0, 0, 0);
	C(mbind, p, 4096, 0, NULL, 0, 0);
	C(get_mempolicy, out[0], out[1], 64, 0, 0);
	C(get_mempolicy, out[0], out[1], 1024, 0, 0);
	C(get_mempolicy, out[0], NULL, 0, p, 3);
	C(get_mempolicy, out[0], out[1], 1, 0, 0);
	C(get_mempolicy, NULL, out[1], 2000, 0, 4);
	C(get_mempolicy, out[0], NULL, 0, 0, 99);
	C(set_mempolicy, 0, NULL, 0);
	C(set_mempolicy_home_node, p, 4096, 0, 0);
	C(migrate_pages, 0, 0, NULL, NULL);
	C(move_pages, 0, 3, pages, NULL, out[0], 0);
	C(move_pages, 0, 3, BAD, NULL, out[0], 0);
	C(mseal, 1, 1, 0);
	C(brk, 0);
	C(brk, C(brk, 0) + 4096);
	C(munmap, p, 4096);
	C(munmap, p + 1, 4096);
	C(memfd_secret, 99);
	C(process_mrelease, -1, 0);
	C(membarrier, 0, 0, 0);
	C(userfaultfd, 0x12345);
	C(map_shadow_stack, 1, 1, 1);

	struct iovec l[2] = {{out[0], 5}, {out[1], 9}}, r = {"text of a process", 17};

	C(process_vm_readv, getpid(), l, 2, &r, 1, 0);
	C(process_vm_readv, getpid(), l, 2, (&(struct iovec){BAD, 5}), 1, 0);
	C(process_vm_writev, getpid(), &r, 1, l, 2, 0);
	C(process_vm_writev, 1 << 30, &r, 1, l, 2, 0);
}

static void controls(void)
{
	C(prctl, PR_SET_NAME, "sysout");
	C(prctl, PR_GET_NAME, out[0]);
	for (int i = 1; i < 85; i++)
		if (i != PR_SET_PDEATHSIG && i != PR_SET_SECCOMP && i != PR_SET_TSC && i != PR_SET_NAME &&
		    i != PR_SET_KEEPCAPS && i != PR_SET_DUMPABLE && i != PR_SET_NO_NEW_PRIVS &&
		    i != PR_CAPBSET_DROP && i != PR_SET_TIMERSLACK && i != PR_SET_CHILD_SUBREAPER &&
		    i != 67 /* PR_SET_MEMORY_MERGE */ && i != 59 /* PR_SET_SYSCALL_USER_DISPATCH */)
			C(prctl, i, out[0], 0, 0, 0);
	C(prctl, PR_SET_MM, 15, out[0], 0, 0);
	C(prctl, 62, 0, 0, 0, out[0]);
	C(prctl, 0x41555856, out[0], 4096, 0, 0);
	C(prctl, 0x41555856, out[0], 24, 0, 0);
	C(prctl, 12345, out[0]);
	C(prctl, PR_GET_NAME, BAD);
	for (int i = 0x1003; i < 0x1026; i++)
		if (i != 0x1012)
			C(arch_prctl, i, out[0]);
	C(arch_prctl, 0x3001, out[0]);
	C(arch_prctl, 0x4001, out[0]);
	C(arch_prctl, 0x4003, out[0]);
	C(arch_prctl, 0x5005, out[0]);
	C(arch_prctl, 0x1003, BAD);
	C(seccomp, 3, 0, out[0]);
	C(seccomp, 2, 0, (&(uint32_t){0x7fff0000}));
	C(seccomp, 9, 0, out[0]);
	C(syslog, 3, out[0], 200);
	C(syslog, 10, 0, 0);
	C(syslog, 3, BAD, 200);
}

/* what a debugger asks of a child that is stopped */
static void debug(void)
{
	int status;
	pid_t pid = fork();
	struct iovec *v = (struct iovec *)out[1];

	if (!pid) {
		raise(SIGSTOP);
		_exit(0);
	}
	RAW(wait4, pid, &status, WUNTRACED, NULL);
	if (!C(ptrace, PTRACE_SEIZE, pid, 0, 0)) {
		C(ptrace, PTRACE_INTERRUPT, pid, 0, 0);
		C(wait4, pid, out[0], 0x40000000, out[1]);
		C(ptrace, PTRACE_PEEKDATA, pid, out, out[0]);
		C(ptrace, PTRACE_PEEKDATA, pid, 8, out[0]);
		C(ptrace, PTRACE_PEEKUSER, pid, 8, out[0]);
		C(ptrace, PTRACE_GETREGS, pid, 0, out[0]);
		C(ptrace, PTRACE_GETFPREGS, pid, 0, out[0]);
		C(ptrace, PTRACE_GETSIGINFO, pid, 0, out[0]);
		C(ptrace, PTRACE_GETEVENTMSG, pid, 0, out[0]);
		C(ptrace, PTRACE_GETSIGMASK, pid, 8, out[0]);
		fill(), *v = (struct iovec){out[0], 4096}, RAW(ptrace, PTRACE_GETREGSET, pid, 1, v);
		fill(), *v = (struct iovec){out[0], 5}, RAW(ptrace, PTRACE_GETREGSET, pid, 1, v);
		C(ptrace, PTRACE_PEEKSIGINFO, pid, (&(uint64_t[2]){0, 3ull << 32}), out[0]);
		C(ptrace, PTRACE_GET_SYSCALL_INFO, pid, 200, out[0]);
		C(ptrace, PTRACE_GET_RSEQ_CONFIGURATION, pid, 24, out[0]);
		C(ptrace, 0x4211, pid, 24, out[0]);
		C(ptrace, 30, pid, out[0], 0x1003);
		C(ptrace, PTRACE_SETOPTIONS, pid, 0, 0);
		C(ptrace, PTRACE_CONT, pid, 0, SIGKILL);
	}
	C(kill, pid, SIGKILL);
	C(wait4, pid, out[0], 0, out[1]);
}

static void children(void)
{
	pid_t pid;
	uint64_t *ca = (uint64_t *)out[2];

	for (int i = 0; i < 4; i++) {
		pid = fork();
		if (!pid)
			_exit(3);
		if (i == 0)
			C(wait4, pid, out[0], 0, out[1]);
		else if (i == 1)
			C(waitid, P_PID, pid, out[0], WEXITED, out[1]);
		else if (i == 2)
			C(wait4, pid, NULL, 0, NULL);
		else
			C(waitid, P_ALL, 0, NULL, WEXITED, NULL);
	}
	C(wait4, -1, out[0], 0, out[1]);
	C(waitid, P_ALL, 0, out[0], WEXITED | WNOHANG, out[1]);
	pid = fork();
	if (!pid) {
		pause();
		_exit(0);
	}
	C(wait4, pid, out[0], WNOHANG, out[1]);
	C(waitid, P_ALL, 0, out[0], WEXITED | WNOHANG, out[1]);
	C(kcmp, pid, getpid(), 0, 0, 0);
	C(kill, pid, SIGKILL);
	C(wait4, pid, out[0], 0, out[1]);
	fill();
	pid = (pid_t)syscall(SYS_clone, SIGCHLD | 0x00101000 /* PARENT_SETTID, PIDFD is the same word */, 0,
			     out[0], 0, 0);
	if (!pid)
		_exit(0);
	C(wait4, -1, out[0], 0, out[1]);
	fill();
	memset(ca, 0, 88);
	ca[0] = 0x00101000, ca[1] = (uint64_t)out[0], ca[3] = (uint64_t)out[1], ca[4] = SIGCHLD;
	pid = (pid_t)RAW(clone3, ca, 88);
	if (!pid)
		_exit(0);
	C(wait4, -1, out[0], 0, out[1]);
	C(clone3, BAD, 88);
	debug();
}

static void locks(void)
{
	uint32_t *f = (uint32_t *)out[0], *g = (uint32_t *)(out[0] + 64);
	struct timespec t = {0, 1000};
	pid_t tid = gettid();

	fill(), f[0] = 5, RAW(futex, f, FUTEX_WAIT, 5, &t);
	fill(), f[0] = 5, RAW(futex, f, FUTEX_WAIT, 6, &t);
	fill(), RAW(futex, f, FUTEX_WAKE, 1);
	fill(), g[0] = 1, RAW(futex, f, FUTEX_WAKE_OP, 1, 1, g, 1 << 28 | 5 << 12);
	fill(), RAW(futex, f, FUTEX_REQUEUE, 1, 1, g);
	fill(), f[0] = 5, RAW(futex, f, FUTEX_CMP_REQUEUE, 1, 1, g, 5);
	fill(), f[0] = 0, RAW(futex, f, FUTEX_LOCK_PI, 0, 0);
	RAW(futex, f, FUTEX_UNLOCK_PI);
	fill(), f[0] = 0, RAW(futex, f, FUTEX_LOCK_PI2, 0, 0);
	fill(), f[0] = (uint32_t)tid, RAW(futex, f, FUTEX_LOCK_PI, 0, &t);
	fill(), f[0] = 0, RAW(futex, f, FUTEX_TRYLOCK_PI, 0, 0);
	fill(), f[0] = 5, g[0] = 0, RAW(futex, f, FUTEX_WAIT_REQUEUE_PI, 5, &t, g);
	fill(), f[0] = 5, g[0] = 0, RAW(futex, f, FUTEX_CMP_REQUEUE_PI, 1, 1, g, 5);
	C(futex, f, 99);
	C(futex_waitv, out[0], 1, 0, &t, 0);
	C(futex_wake, out[0], 1, 1, 2);
	C(futex_wait, out[0], 1, 1, 2, &t, 0);
	C(futex_requeue, out[0], 0, 1, 1);
	C(set_robust_list, out[0], 7);
	C(get_robust_list, 0, out[0], out[1]);
	C(get_robust_list, 1 << 30, out[0], out[1]);
}

static void identity(void)
{
	uint32_t *h = (uint32_t *)out[0];
	static const uint32_t versions[] = {0, 0x19980330, 0x20071026, 0x20080522};

	for (int i = 0; i < 4; i++)
		fill(), h[0] = versions[i], h[1] = 0, RAW(capget, out[0], out[1]);
	fill(), h[0] = 0, h[1] = 0, RAW(capset, out[0], out[1]);
	C(getresuid, out[0], out[1], out[2] + 4);
	C(getresgid, out[0], out[1], out[2] + 4);
	C(getresuid, out[0], BAD, out[2]);
	C(getgroups, 0, out[0]);
	C(getgroups, 65536 / 64, out[0]);
	C(getgroups, -1, out[0]);
	C0(getuid), C0(geteuid), C0(getgid), C0(getegid), C0(getpid), C0(getppid), C0(gettid), C0(getpgrp);
	C(getpgid, 0), C(getsid, 0), C(setpgid, 0, 0), C0(setsid);
	C(setuid, getuid()), C(setgid, getgid()), C(setreuid, -1, -1), C(setregid, -1, -1);
	C(setresuid, -1, -1, -1), C(setresgid, -1, -1, -1), C(setfsuid, getuid()), C(setfsgid, getgid());
	C(setgroups, -1, NULL);
	C(personality, 0xffffffff);
	C(getrlimit, 7, out[0]);
	C(getrlimit, 99, out[0]);
	C(setrlimit, 99, out[0]);
	C(prlimit64, 0, 7, NULL, out[0]);
	C(prlimit64, 1 << 30, 7, NULL, out[0]);
	C(getrusage, 0, out[0]);
	C(getrusage, 99, out[0]);
	C(getrusage, 0, BAD);
	C(getpriority, 0, 0), C(setpriority, 9, 0, 0), C(ioprio_get, 1, 0), C(ioprio_set, 9, 0, 0);
}

void process(void)
{
	C0(sched_yield);
	C(sched_getparam, 0, out[0]);
	C(sched_getparam, -1, out[0]);
	C(sched_setparam, -1, out[0]);
	C(sched_getscheduler, 0);
	C(sched_setscheduler, -1, 0, out[0]);
	C(sched_get_priority_max, 1), C(sched_get_priority_min, 1);
	C(sched_rr_get_interval, 0, out[0]);
	C(sched_rr_get_interval, -1, out[0]);
	C(sched_getaffinity, 0, 4096, out[0]);
	C(sched_getaffinity, 0, 8, out[0]);
	C(sched_getaffinity, 0, 3, out[0]);
	C(sched_setaffinity, 1 << 30, 8, out[0]);
	C(sched_getattr, 0, out[0], 48, 0);
	C(sched_getattr, 0, out[0], 56, 0);
	C(sched_getattr, 0, out[0], 4096, 0);
	C(sched_getattr, 0, out[0], 4, 0);
	C(sched_setattr, 0, out[0], 0);
	C(getcpu, out[0], out[1]);
	C(getcpu, NULL, out[1]);
	C(uname, out[0]);
	C(sysinfo, out[0]);
	C(getrandom, out[0] + 1, 33, 0);
	C(getrandom, out[0], 33, 99);
	C(modify_ldt, 0, out[0], 4096);
	C(modify_ldt, 2, out[0], 100);
	C(modify_ldt, 9, out[0], 100);
	C(rseq, 8, 1, 1, 1);
	C(set_tid_address, NULL);
	C(unshare, 0), C(setns, -1, 0);
	C(pidfd_send_signal, -1, 0, NULL, 0), C(pidfd_getfd, -1, 0, 0);
	C(close, C(pidfd_open, getpid(), 0));
	C(landlock_create_ruleset, NULL, 0, 1);
	C(landlock_add_rule, -1, 1, out[0], 0), C(landlock_restrict_self, -1, 0);
	C(lsm_set_self_attr, 100, out[0], 8, 0);
	for (uint32_t room = 0; room < 500; room += 100) {
		fill(), *(uint32_t *)out[1] = room, RAW(lsm_get_self_attr, 100, out[0], out[1], 0);
		fill(), *(uint32_t *)out[1] = room, RAW(lsm_list_modules, out[0], out[1], 0);
	}
	C(perf_event_open, out[0], 0, -1, -1, 0);
	C(close, C(perf_event_open, (&(uint64_t[16]){1 | 128ull << 32}), 0, -1, -1, 0));
	C(bpf, 99, NULL, 0);
	C(iopl, 9), C(ioperm, 70000, 1, 1), C(pidfd_open, -1, 0);
	C(sethostname, BAD, -1), C(setdomainname, BAD, -1), C(reboot, 0, 0, 0, 0);
	C(init_module, BAD, 0, ""), C(finit_module, -1, "", 0), C(delete_module, "none", 0x800);
	C(kexec_load, 0, 99, NULL, 0), C(kexec_file_load, -1, -1, 0, NULL, 99);
	C(settimeofday, BAD, BAD);
	identity();
	locks();
	controls();
	children();
}

static void on_signal(int sig)
{
	(void)sig;
}

void signals(void)
{
	uint64_t mask = 1ull << (SIGUSR1 - 1), *set = (uint64_t *)out[1];
	struct sigaction sa = {.sa_handler = on_signal};
	siginfo_t si = {.si_signo = SIGUSR1, .si_code = SI_QUEUE};
	struct timespec t = {0, 1000};
	int fd;

	C(rt_sigaction, SIGUSR2, NULL, out[0], 8);
	C(rt_sigaction, 99, NULL, out[0], 8);
	C(rt_sigaction, SIGUSR2, NULL, BAD, 8);
	C(rt_sigprocmask, SIG_BLOCK, &mask, out[0], 8);
	C(rt_sigprocmask, SIG_BLOCK, BAD, out[0], 8);
	C(rt_sigprocmask, SIG_BLOCK, &mask, out[0], 16);
	C(rt_sigprocmask, SIG_BLOCK, BAD, NULL, 8);
	C(kill, getpid(), SIGUSR1);
	C(rt_sigpending, out[0], 8);
	C(rt_sigpending, out[0], 4);
	C(rt_sigpending, out[0], 99);
	C(rt_sigtimedwait, &mask, out[0], &t, 8);
	C(rt_sigtimedwait, &mask, out[0], &t, 8);
	C(rt_sigqueueinfo, getpid(), SIGUSR1, &si);
	C(rt_tgsigqueueinfo, getpid(), gettid(), SIGUSR1, &si);
	fd = (int)C(signalfd, -1, &mask, 8);
	C(close, fd);
	fd = (int)C(signalfd4, -1, &mask, 8, 0x800);
	C(read, fd, out[0], 4096);
	C(read, fd, out[0], 4096);
	C(close, fd);
	C(tkill, gettid(), SIGUSR1);
	sigaction(SIGUSR1, &sa, NULL);
	fill(), *set = 0, RAW(rt_sigsuspend, set, 8);
	C(tgkill, getpid(), gettid(), SIGUSR1);
	fill(), *set = 0, t = (struct timespec){1, 0}, memcpy(out[2], &t, sizeof(t));
	RAW(ppoll, NULL, 0, out[2], set, 8);
	C(tkill, gettid(), SIGUSR1);
	fill(), *set = 0, memcpy(out[2], &t, sizeof(t)), memcpy(out[3], &(uint64_t[2]){(uint64_t)set, 8}, 16);
	memset(out[0], 0, 128);
	RAW(pselect6, 3, out[0], NULL, NULL, out[2], out[3]);
	C(tkill, gettid(), SIGUSR1);
	fill(), *set = 0, RAW(epoll_pwait, -1, out[0], 1, 0, set, 8);
	C(rt_sigprocmask, SIG_UNBLOCK, &mask, out[0], 8);
	C(sigaltstack, NULL, out[0]);
	C(sigaltstack, out[1], out[0]);
	/* interrupted, again and again, as the first may come before the call: what is left of the time */
	struct itimerval soon = {{0, 20000}, {0, 3000}}, never = {{0, 0}, {0, 0}};

	sigaction(SIGALRM, &sa, NULL);
	for (int i = 0; i < 7; i++) {
		t = (struct timespec){2, 0};
		C(setitimer, ITIMER_REAL, &soon, NULL);
		fill();
		memcpy(out[2], &t, sizeof(t));
		memset(out[3], 0, 128);
		((uint32_t *)out[4])[0] = 5;
		if (i == 0)
			RAW(nanosleep, &t, out[0]);
		if (i == 1)
			RAW(clock_nanosleep, 1, 0, &t, out[0]);
		if (i == 2)
			RAW(select, 3, out[3], NULL, NULL, out[2]);
		if (i == 3)
			RAW(ppoll, NULL, 0, out[2], NULL, 8);
		if (i == 4)
			RAW(futex, out[4], FUTEX_WAIT, 5, &t);
		if (i == 5)
			C0(pause);
		if (i == 6) {
			((int32_t *)out[1])[0] = -1;
			RAW(poll, out[1], 1, 2000);
		}
		C(setitimer, ITIMER_REAL, &never, NULL);
	}
	C0(restart_syscall);
	C(kill, 1 << 30, 0);
}

void clocks(void)
{
	struct itimerspec far = {{0, 0}, {1000, 0}}, past = {{0, 1000}, {0, 1000}};
	struct sigevent none = {.sigev_notify = SIGEV_NONE};
	struct timespec t = {0, 1000};
	int timer, fd;

	for (int c = -1; c < 13; c++) {
		C(clock_gettime, c, out[0]);
		C(clock_getres, c, out[0]);
	}
	C(clock_getres, 0, NULL);
	C(clock_settime, 99, &t);
	C(gettimeofday, out[0], out[1]);
	C(gettimeofday, NULL, out[1]);
	C(time, out[0]), C(time, NULL);
	C(times, out[0]), C(times, NULL);
	C(nanosleep, &t, out[0]), C(nanosleep, BAD, out[0]);
	C(clock_nanosleep, 0, 1, &t, out[0]), C(clock_nanosleep, 0, 0, &t, NULL);
	fill(), memset(out[0], 0, 208), RAW(adjtimex, out[0]);
	C(adjtimex, out[0]);
	fill(), memset(out[0], 0, 208), RAW(clock_adjtime, 0, out[0]);
	C(clock_adjtime, 1, out[0]);
	C(getitimer, 0, out[0]), C(getitimer, 99, out[0]);
	C(setitimer, 0, (&(struct itimerval){{0, 0}, {1000, 0}}), out[0]);
	C(setitimer, 0, (&(struct itimerval){{0, 0}, {0, 0}}), out[0]);
	C(setitimer, 99, out[0], out[1]);
	C(alarm, 0);
	C(timer_create, 1, &none, out[0]);
	memcpy(&timer, out[0], sizeof(timer));
	C(timer_create, 99, &none, out[0]);
	C(timer_create, ~(1 << 22) * 8 + 2, &none, out[0]); /* the time of a process that is not there */
	C(timer_settime, timer, 0, &far, out[0]);
	C(timer_settime, timer, 0, &far, NULL);
	C(timer_settime, 999, 0, &far, out[0]);
	C(timer_gettime, timer, out[0]), C(timer_gettime, 999, out[0]);
	C(timer_getoverrun, timer), C(timer_delete, timer);
	fd = (int)C(timerfd_create, 1, 0x800);
	C(read, fd, out[0], 8);
	C(timerfd_settime, fd, 0, &far, out[0]);
	C(timerfd_settime, fd, 0, &past, out[0]);
	C(timerfd_gettime, fd, out[0]);
	C(nanosleep, (&(struct timespec){0, 2000000}), NULL);
	C(read, fd, out[0], 8);
	C(close, fd);
	C(timerfd_gettime, 0, out[0]);
}

static void keys(void)
{
	long ring = C(keyctl, 1, "sysout");
	long key = C(add_key, "user", "sysout", "payload", 7, -1);

	(void)ring;
	for (long room = 0; room < 200; room += 5) {
		C(keyctl, 6, key, out[0], room);
		C(keyctl, 11, key, out[0], room);
		C(keyctl, 17, key, out[0], room);
		C(keyctl, 31, out[0], room);
	}
	C(keyctl, 11, -1, out[0], 100);
	C(keyctl, 24, key, 0, "", out[0]);
	C(keyctl, 23, out[1], out[0], 100, 0);
	C(keyctl, 0, -1, 0);
	C(keyctl, 99, out[0]);
	C(keyctl, 3, key);
	C(request_key, "user", "sysout-none", NULL, 0);
}

void ipc(void)
{
	struct {
		long type;
		char text[16];
	} m = {7, "message"};
	int id = (int)C(msgget, 0, 0600 | 01000), q, set = (int)C(semget, 0, 5, 0600);
	int shm = (int)C(shmget, 0, 4096, 0600);
	char name[32];

	for (int i = 0; i < 3; i++)
		C(msgsnd, id, &m, 8, 0);
	C(msgrcv, id, out[0], 100, 0, 0);
	C(msgrcv, id, out[0], 3, 0, 010000);
	C(msgrcv, id, out[0], 3, 0, 0);
	C(msgrcv, id, out[0], 100, 0, 04000 | 040000);
	for (int cmd = 2; cmd < 21; cmd++) {
		C(msgctl, cmd < 11 || cmd == 12 ? id : 0, cmd, out[0]);
		C(shmctl, cmd < 11 ? shm : 0, cmd, out[0]);
		C(semctl, set, 1, cmd, out[0]);
		C(semctl, 0, 1, cmd, out[0]);
	}
	C(semop, set, (&(struct {
		  uint16_t n;
		  int16_t op, flags;
	  }){0, 1, 0}),
	  1);
	C(semtimedop, set, (&(struct {
		  uint16_t n;
		  int16_t op, flags;
	  }){1, -1, 04000}),
	  1, NULL);
	C(msgctl, id, 0, NULL);
	C(semctl, set, 0, 0, NULL);
	C(shmdt, 1);
	C(shmat, -1, 0, 0);
	C(shmctl, shm, 0, NULL);
	snprintf(name, sizeof(name), "sysout%d", (int)getpid());
	q = (int)C(mq_open, name, O_RDWR | O_CREAT | O_NONBLOCK, 0600, NULL);
	C(mq_getsetattr, q, NULL, out[0]);
	C(mq_timedsend, q, "text", 4, 3, NULL);
	C(mq_timedreceive, q, out[0], 8192, out[1], NULL);
	C(mq_timedreceive, q, out[0], 8192, out[1], NULL);
	C(mq_notify, q, NULL);
	C(close, q);
	C(mq_unlink, name);
	keys();
}

/* numbers without a call, those of other kinds of programs, and what was taken out; and the one that only stop */
void numbers(void)
{
	static const int16_t gone[] = {__NR__sysctl,	   __NR_create_module,	 __NR_get_kernel_syms,
				       __NR_query_module,  __NR_nfsservctl,	 __NR_getpmsg,
				       __NR_putpmsg,	   __NR_afs_syscall,	 __NR_tuxcall,
				       __NR_security,	   __NR_set_thread_area, __NR_get_thread_area,
				       __NR_epoll_ctl_old, __NR_epoll_wait_old,	 __NR_vserver};

	for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
		fill(), SIX(gone[i], out[0], out[1], out[2], out[3], out[4], out[5], 0);
	for (int i = 337; i < 424; i++)
		fill(), SIX(i, out[0], out[1], out[2], out[3], out[4], out[5], 0);
	for (int i = 471; i < 560; i++)
		fill(), SIX(i, 99999, 99999, 99999, 99999, 99999, 99999, 0);
	C(io_setup, 0, out[0]), C(io_destroy, 99), C(io_submit, 99, 0, NULL),
		C(io_getevents, 99, 0, 0, out[0], NULL);
	C(io_pgetevents, 99, 0, 0, out[0], NULL, NULL), C(io_cancel, 99, out[0], out[1]);
	C(io_uring_setup, 0, out[0]), C(io_uring_enter, -1, 0, 0, 0, NULL, 0),
		C(io_uring_register, -1, 0, NULL, 0);
	C(execve, "none", NULL, NULL), C(execve, BAD, NULL, NULL),
		C(execveat, AT_FDCWD, "none", NULL, NULL, 0);
}
