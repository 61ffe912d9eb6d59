/* SPDX-License-Identifier: MIT
 *
 * rt_full.c - system calls before which a recording for a replay has to end, and goes on in full (rt_switch.c)
 *
 * Those that make the program one of several, those behind which a signal may come at any instruction, and those that
 * take away what it takes to begin a recording in full.
 */
#include "rt.h"

static bool makes_another(uint64_t nr)
{
	return nr == __NR_clone || nr == __NR_fork || nr == __NR_vfork || nr == 435; /* clone3 */
}

#define SIGALRM 14

/* The signal, if the call arms a timer. One that comes while the program computes cannot be recorded; one that has a
 * handler will. */
static uint32_t arms(const struct rt_tcb *t)
{
	static const uint8_t by_timer[3] = {SIGALRM, 26,
					    27}; /* ITIMER_REAL, _VIRTUAL: SIGVTALRM, _PROF: SIGPROF */
	const uint64_t *g = t->sv.gpr;
	uint64_t v[4]; /* struct itimerval: interval, value; struct sigevent: value, signo and notify */

	switch (t->sv.nr) {
	case __NR_alarm:
		return (uint32_t)g[RDI] ? SIGALRM : 0;
	case __NR_setitimer:
		return g[RDI] < 3 && !rt_copy_out(v, g[RSI], 32) && (v[2] || v[3]) ? by_timer[g[RDI]] : 0;
	case __NR_timer_create:
		if (!g[RSI] || rt_copy_out(v, g[RSI], 16))
			return SIGALRM;
		return v[1] >> 32 == 1 /* SIGEV_NONE */ ? 0 : (uint32_t)v[1] & 127;
	}
	return 0;
}

/* signals of descriptors, leases, directories, queues, whoever has a handler for which */
static bool asks_for_signals(const struct rt_tcb *t)
{
	uint32_t cmd = (uint32_t)t->sv.gpr[RSI];

	if (t->sv.nr == __NR_fcntl)
		return cmd == F_SETOWN || cmd == F_SETSIG || cmd == F_SETOWN_EX || cmd == F_SETLEASE ||
		       cmd == F_NOTIFY || (cmd == F_SETFL && (t->sv.gpr[RDX] & FASYNC));
	return t->sv.nr == __NR_mq_notify || (t->sv.nr == __NR_ioctl && cmd == 0x5452 /* FIOASYNC */);
}

/* From this call on a handler may be called at any instruction. */
static bool interrupts(const struct rt_tcb *t)
{
	static uint64_t armed; /* bit n - 1: signal n */
	uint32_t sig = arms(t);
	uint64_t handler = 0;

	if (sig && sig <= 64)
		armed |= 1ull << (sig - 1);
	if (sig && sig <= 64 && t->sig[sig].act.handler > 1)
		return true;
	if (t->sv.nr == __NR_rt_sigaction && (sig = (uint32_t)t->sv.gpr[RDI]) - 1 < 64 &&
	    armed >> (sig - 1) & 1 && t->sv.gpr[RSI] && !rt_copy_out(&handler, t->sv.gpr[RSI], 8))
		return handler > 1;
	return asks_for_signals(t);
}

/* limits under which what is recorded in full has less room, or none */
static bool limits(uint64_t resource, uint64_t to)
{
	return to && (resource == 1 /* RLIMIT_FSIZE */ || resource == 2 /* DATA */ ||
		      resource == 6 /* NPROC */ || resource == 7 /* NOFILE */ || resource == 9 /* AS */);
}

/* Behind such a call the run directory or ptrace-collect may be out of reach, and no recording in full could begin. */
static bool takes_away(uint64_t nr, const uint64_t *arg)
{
	switch (nr) {
	case __NR_chroot:
	case __NR_pivot_root:
	case __NR_mount:
	case __NR_umount2:
	case __NR_unshare:
	case __NR_setns:
	case __NR_setuid:
	case __NR_setgid:
	case __NR_setreuid:
	case __NR_setregid:
	case __NR_setresuid:
	case __NR_setresgid:
	case __NR_setfsuid:
	case __NR_setfsgid:
	case __NR_setgroups:
	case __NR_capset:
	case __NR_seccomp:
	case 429: /* move_mount, by its number: kernels' headers may be older */
	case 442: /* mount_setattr */
	case 446: /* landlock_restrict_self */
		return true;
	case __NR_prctl:
		return arg[0] == 4 /* PR_SET_DUMPABLE: /proc/self is not ours then */ ||
		       arg[0] == 22 /* SECCOMP */ || arg[0] == 65 /* PR_SET_MDWE */;
	case __NR_setrlimit:
		return limits(arg[0], arg[1]);
	case __NR_prlimit64:
		return (!arg[0] || arg[0] == rt.pid) && limits(arg[1], arg[2]);
	}
	return false;
}

const char *rt_full_before(const struct rt_tcb *t, const uint64_t *arg)
{
	if (makes_another(t->sv.nr))
		return "it makes a thread or a process";
	if (interrupts(t))
		return "it asks for signals that may come at any instruction";
	if (t->sv.nr == 334 /* rseq */)
		return "it asks for memory that the kernel writes to whenever it likes";
	if (takes_away(t->sv.nr, arg))
		return "it gives up rights or room that a recording in full needs to begin";
	return NULL;
}
