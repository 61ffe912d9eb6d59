/* SPDX-License-Identifier: MIT
 *
 * rt_sysout_ctl.c - what a system call wrote that does one thing or another by a command
 */
#include "rt_sysout_in.h"
#include "rt_sysout_nr.h"
#include <linux/errno.h>

static void fcntl(struct so *s)
{
	switch ((uint32_t)s->arg[1]) {
	case 5: /* F_GETLK */
	case 36: /* F_OFD_GETLK */
		so_add(s, s->arg[2], 32);
		break;
	case 16: /* F_GETOWN_EX */
	case 17: /* F_GETOWNER_UIDS */
	case 1035: /* F_GET_RW_HINT */
	case 1037: /* F_GET_FILE_RW_HINT */
	case 1039: /* F_GETDELEG */
		so_add(s, s->arg[2], 8);
		break;
	}
}

static void prctl(struct so *s)
{
	const uint64_t *a = s->arg;

	switch ((uint32_t)a[0]) {
	case 2: /* PR_GET_PDEATHSIG */
	case 5: /* PR_GET_UNALIGN */
	case 9: /* PR_GET_FPEMU */
	case 11: /* PR_GET_FPEXC */
	case 19: /* PR_GET_ENDIAN */
	case 25: /* PR_GET_TSC */
	case 37: /* PR_GET_CHILD_SUBREAPER */
		so_add(s, a[1], 4);
		break;
	case 16: /* PR_GET_NAME */
		so_add(s, a[1], 16);
		break;
	case 35: /* PR_SET_MM */
		if (a[1] == 15 /* PR_SET_MM_MAP_SIZE */)
			so_add(s, a[2], 4);
		break;
	case 40: /* PR_GET_TID_ADDRESS */
	case 74: /* PR_GET_SHADOW_STACK_STATUS */
		so_add(s, a[1], 8);
		break;
	case 62: /* PR_SCHED_CORE */
		if (a[1] == 0 /* PR_SCHED_CORE_GET */)
			so_add(s, a[4], 8);
		break;
	case 0x41555856: /* PR_GET_AUXV: the result is its whole size */
		if (s->ret > 0 || s->fault)
			so_add(s, a[1], s->fault ? a[2] : so_min(a[2], s->ret));
		break;
	default:
		/* PR_SET_VMA, PR_SET_PTRACER; and others that are newer than this list */
		s->stop |= (s->ret >= 0 || s->fault) && (uint32_t)a[0] > 78 && (uint32_t)a[0] != 0x53564d41 &&
			   (uint32_t)a[0] != 0x59616d61;
	}
}

static void arch_prctl(struct so *s)
{
	switch ((uint32_t)s->arg[0]) {
	case 0x1001: /* ARCH_SET_GS */
	case 0x1002: /* ARCH_SET_FS */
	case 0x1011: /* ARCH_GET_CPUID */
	case 0x1012: /* ARCH_SET_CPUID */
	case 0x1023: /* ARCH_REQ_XCOMP_PERM */
	case 0x1025: /* ARCH_REQ_XCOMP_GUEST_PERM */
	case 0x4002: /* ARCH_ENABLE_TAGGED_ADDR */
	case 0x5003: /* ARCH_SHSTK_LOCK */
	case 0x5004: /* ARCH_SHSTK_UNLOCK */
		break;
	case 0x1003: /* ARCH_GET_FS */
	case 0x1004: /* ARCH_GET_GS */
	case 0x1021: /* ARCH_GET_XCOMP_SUPP */
	case 0x1022: /* ARCH_GET_XCOMP_PERM */
	case 0x1024: /* ARCH_GET_XCOMP_GUEST_PERM */
	case 0x4001: /* ARCH_GET_UNTAG_MASK */
	case 0x4003: /* ARCH_GET_MAX_TAG_BITS */
	case 0x5005: /* ARCH_SHSTK_STATUS */
		so_add(s, s->arg[1], 8);
		break;
	default: /* a shadow stack, mapping of another vDSO, newer ones */
		s->stop |= s->ret >= 0;
	}
}

/* include/uapi/linux/{shm,msg,sem}.h */
static void shmctl(struct so *s)
{
	switch ((uint32_t)s->arg[1] & ~0x100u /* IPC_64 */) {
	case 2: /* IPC_STAT */
	case 13: /* SHM_STAT */
	case 15: /* SHM_STAT_ANY */
		so_add(s, s->arg[2], 112);
		break;
	case 3: /* IPC_INFO */
		so_add(s, s->arg[2], 72);
		break;
	case 14: /* SHM_INFO */
		so_add(s, s->arg[2], 48);
		break;
	}
}

static void semctl(struct so *s)
{
	switch ((uint32_t)s->arg[2] & ~0x100u) {
	case 2: /* IPC_STAT */
	case 18: /* SEM_STAT */
	case 20: /* SEM_STAT_ANY */
		so_add(s, s->arg[3], 104);
		break;
	case 3: /* IPC_INFO */
	case 19: /* SEM_INFO */
		so_add(s, s->arg[3], 40);
		break;
	case 13: /* GETALL: 16 bits of each in the set; a set has at most 32000 (SEMMSL) */
		so_loose(s, s->arg[3], 2 * 32000);
		break;
	}
}

static void msgctl(struct so *s)
{
	switch ((uint32_t)s->arg[1] & ~0x100u) {
	case 2: /* IPC_STAT */
	case 11: /* MSG_STAT */
	case 13: /* MSG_STAT_ANY */
		so_add(s, s->arg[2], 120);
		break;
	case 3: /* IPC_INFO */
	case 12: /* MSG_INFO */
		so_add(s, s->arg[2], 32);
		break;
	}
}

/* Of another process. What goes to the program's memory comes by data, but for the sets of registers. */
static void ptrace(struct so *s)
{
	const uint64_t *a = s->arg;

	s->stop |= s->fault;
	switch (a[0]) {
	case 1: /* PTRACE_PEEKTEXT */
	case 2: /* PTRACE_PEEKDATA */
	case 3: /* PTRACE_PEEKUSR */
	case 0x4201: /* PTRACE_GETEVENTMSG */
	case 0x420a: /* PTRACE_GETSIGMASK */
		so_add(s, a[3], 8);
		break;
	case 12: /* PTRACE_GETREGS */
		so_add(s, a[3], 216);
		break;
	case 14: /* PTRACE_GETFPREGS */
		so_add(s, a[3], 512);
		break;
	case 25: /* PTRACE_GET_THREAD_AREA */
		so_add(s, a[3], 16);
		break;
	case 0x4202: /* PTRACE_GETSIGINFO */
		so_add(s, a[3], 128);
		break;
	case 0x4204: /* PTRACE_GETREGSET: struct iovec, whose length it stores */
		so_loose(s, so_u64(a[3]), so_u64(a[3] + 8));
		so_add(s, a[3], 16);
		break;
	case 0x4209: /* PTRACE_PEEKSIGINFO */
		so_add(s, a[3], s->ret < 0 ? 0 : 128 * (uint64_t)s->ret);
		break;
	case 0x420c: /* PTRACE_SECCOMP_GET_FILTER: in instructions */
		so_add(s, a[3], s->ret < 0 ? 0 : 8 * (uint64_t)s->ret);
		break;
	case 0x420d: /* PTRACE_SECCOMP_GET_METADATA, at most addr bytes */
	case 0x420e: /* PTRACE_GET_SYSCALL_INFO */
	case 0x420f: /* PTRACE_GET_RSEQ_CONFIGURATION */
	case 0x4211: /* PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG */
		so_loose(s, a[3], so_min(a[2], 256));
		break;
	case 0: /* PTRACE_TRACEME */
	case 4: /* PTRACE_POKETEXT */
	case 5: /* PTRACE_POKEDATA */
	case 6: /* PTRACE_POKEUSR */
	case 7: /* PTRACE_CONT */
	case 8: /* PTRACE_KILL */
	case 9: /* PTRACE_SINGLESTEP */
	case 13: /* PTRACE_SETREGS */
	case 15: /* PTRACE_SETFPREGS */
	case 16: /* PTRACE_ATTACH */
	case 17: /* PTRACE_DETACH */
	case 24: /* PTRACE_SYSCALL */
	case 26: /* PTRACE_SET_THREAD_AREA */
	case 30: /* PTRACE_ARCH_PRCTL: of the traced one, by its address */
	case 31: /* PTRACE_SYSEMU */
	case 32: /* PTRACE_SYSEMU_SINGLESTEP */
	case 33: /* PTRACE_SINGLEBLOCK */
	case 0x4200: /* PTRACE_SETOPTIONS */
	case 0x4203: /* PTRACE_SETSIGINFO */
	case 0x4205: /* PTRACE_SETREGSET */
	case 0x4206: /* PTRACE_SEIZE */
	case 0x4207: /* PTRACE_INTERRUPT */
	case 0x4208: /* PTRACE_LISTEN */
	case 0x420b: /* PTRACE_SETSIGMASK */
	case 0x4210: /* PTRACE_SET_SYSCALL_USER_DISPATCH_CONFIG */
	case 0x4212: /* PTRACE_SET_SYSCALL_INFO */
		break;
	default:
		s->stop |= s->ret >= 0;
	}
	if (a[0] == 30 && s->ret >= 0 && ((uint32_t)a[3] == 0x1003 || (uint32_t)a[3] == 0x1004))
		so_loose(s, a[2], 8); /* ARCH_GET_FS, ARCH_GET_GS store into the tracer's memory */
}

/* security/keys/keyctl.c: results are as long as there was room for */
static void keyctl(struct so *s)
{
	const uint64_t *a = s->arg;
	uint64_t ret = s->ret < 0 ? 0 : s->ret;

	s->stop |= s->fault;
	switch ((uint32_t)a[0]) {
	case 6: /* KEYCTL_DESCRIBE */
	case 11: /* KEYCTL_READ */
	case 17: /* KEYCTL_GET_SECURITY */
	case 23: /* KEYCTL_DH_COMPUTE */
		so_loose(s, a[2], so_min(ret, a[3]));
		break;
	case 24: /* KEYCTL_PKEY_QUERY */
		so_add(s, a[4], 56);
		break;
	case 25: /* KEYCTL_PKEY_ENCRYPT */
	case 26: /* KEYCTL_PKEY_DECRYPT */
	case 27: /* KEYCTL_PKEY_SIGN */
		so_loose(s, a[4], ret);
		break;
	case 31: /* KEYCTL_CAPABILITIES: what it does not know is zeroed */
		so_loose(s, a[1], a[2]);
		break;
	default:
		s->stop |= s->ret >= 0 && (uint32_t)a[0] > 32;
	}
}

/* fs/quota/quota.c: the commands that read have structures of 4 to 160 bytes */
static void quota(struct so *s)
{
	uint32_t cmd = (uint32_t)s->arg[s->nr == __NR_quotactl ? 0 : 1] >> 8;

	s->stop |= s->fault;
	if ((cmd >= 0x800004 && cmd <= 0x800009) || (cmd >= 0x5800 && cmd <= 0x58ff))
		so_loose(s, s->arg[3], 160);
	else
		s->stop |= s->ret >= 0 && cmd > 0x800003 && cmd != 0x800008;
}

/* Advice that changes what memory holds is the caller's; of other processes' memory, too, as it may be our own. */
static void advice(struct so *s)
{
	uint32_t adv = (uint32_t)s->arg[s->nr == __NR_madvise ? 2 : 3];

	switch (adv) {
	case 4: /* MADV_DONTNEED */
	case 8: /* MADV_FREE */
	case 9: /* MADV_REMOVE */
	case 24: /* MADV_DONTNEED_LOCKED */
	case 102: /* MADV_GUARD_INSTALL */
	case 103: /* MADV_GUARD_REMOVE */
		s->map = true;
		break;
	case 100: /* MADV_HWPOISON */
	case 101: /* MADV_SOFT_OFFLINE */
		s->stop |= s->ret >= 0;
		break;
	default:
		s->stop |= s->ret >= 0 && adv > 25;
	}
}

void so_ctl(struct so *s)
{
	switch (s->nr) {
	case __NR_fcntl:
		fcntl(s);
		break;
	case __NR_prctl:
		prctl(s);
		break;
	case __NR_arch_prctl:
		arch_prctl(s);
		break;
	case __NR_shmctl:
		shmctl(s);
		break;
	case __NR_semctl:
		semctl(s);
		break;
	case __NR_msgctl:
		msgctl(s);
		break;
	case __NR_ptrace:
		ptrace(s);
		break;
	case __NR_keyctl:
		keyctl(s);
		break;
	case __NR_quotactl:
	case __NR_quotactl_fd:
		quota(s);
		break;
	case __NR_madvise:
	case __NR_process_madvise:
		advice(s);
		break;
	case __NR_seccomp:
		if ((uint32_t)s->arg[0] == 3 /* SECCOMP_GET_NOTIF_SIZES */)
			so_add(s, s->arg[2], 6);
		break;
	case __NR_syslog: /* SYSLOG_ACTION_READ, _READ_ALL, _READ_CLEAR */
		s->stop |= s->fault;
		if (s->ret > 0 && s->arg[0] >= 2 && s->arg[0] <= 4)
			so_add(s, s->arg[1], s->ret);
		break;
	case __NR_restart_syscall: /* continues another call, of which nothing is known here; mostly there is none */
		s->stop |= s->ret != -EINTR;
		break;
	}
}
