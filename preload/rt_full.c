/* SPDX-License-Identifier: MIT
 *
 * rt_full.c - system calls before which a recording for a replay has to end, and goes on in full (rt_switch.c)
 *
 * Those that make the program one of several, and those that take away what it takes to begin a recording in full.
 */
#include "rt.h"

static bool makes_another(uint64_t nr)
{
	return nr == __NR_clone || nr == __NR_fork || nr == __NR_vfork || nr == 435; /* clone3 */
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
	if (t->sv.nr == 334 /* rseq */)
		return "it asks for memory that the kernel writes to whenever it likes";
	if (takes_away(t->sv.nr, arg))
		return "it gives up rights or room that a recording in full needs to begin";
	if (rt_undoes(t->sv.nr, arg))
		return "it would undo the patches of a recording in full, or take its system calls away";
	if (rt_tsc_takes(t->sv.nr, arg))
		return "it has the time stamp counter taken away";
	return NULL;
}
