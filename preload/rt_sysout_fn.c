/* SPDX-License-Identifier: MIT
 *
 * rt_sysout_fn.c - what a system call wrote, where that takes a look at its arguments or at memory
 */
#include "rt_sysout_in.h"
#include "rt_sysout_nr.h"
#include <linux/errno.h>
#include <linux/futex.h>
#include <linux/sched.h>

/* fs/select.c: sets of n bits in words; what is left of the time also when a signal came, and with most errors */
static void sel(struct so *s)
{
	uint64_t bytes = (uint64_t)((uint32_t)s->arg[0] + 63) / 64 * 8;

	if ((s->ret >= 0 || s->fault) && (int32_t)s->arg[0] > 0)
		for (int i = 1; i <= 3; i++)
			so_loose(s, s->arg[i], bytes); /* n may be more than there can be descriptors */
	so_add(s, s->arg[4], 16);
}

static void futex(struct so *s)
{
	switch (s->arg[1] & 0x7f) {
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
	case FUTEX_TRYLOCK_PI:
	case FUTEX_UNLOCK_PI:
		so_add(s, s->arg[0], 4);
		break;
	case FUTEX_WAKE_OP:
	case FUTEX_WAIT_REQUEUE_PI:
	case FUTEX_CMP_REQUEUE_PI:
		so_add(s, s->arg[4], 4);
		break;
	}
}

/* The descriptor is stored before the last that can fail. */
static void clone3(struct so *s)
{
	uint64_t a[4]; /* struct clone_args: flags, pidfd, child_tid, parent_tid */

	if (rt_copy_out(a, s->arg[0], sizeof(a)))
		return;
	if (a[0] & CLONE_PIDFD)
		so_loose(s, a[1], 4);
	if (a[0] & CLONE_PARENT_SETTID)
		so_loose(s, a[3], 4);
}

/* struct file_handle: bytes, type, data. With EOVERFLOW only the bytes that it would take are stored. */
static void handle(struct so *s)
{
	if (s->ret >= 0 || s->fault || s->ret == -EOVERFLOW) {
		so_loose(s, s->arg[2], 8 + (uint64_t)so_u32(s->arg[2]));
		so_loose(s, s->arg[3], s->arg[4] & 1 /* AT_HANDLE_MNT_ID_UNIQUE */ ? 8 : 4);
	}
}

/* what it may write does not depend on its success */
static bool bounded(uint32_t nr)
{
	return nr == __NR_select || nr == __NR_pselect6 || nr == __NR_futex || nr == __NR_name_to_handle_at ||
	       nr == __NR_mincore || nr == __NR_get_mempolicy;
}

void so_fn(struct so *s)
{
	const uint64_t *a = s->arg;

	s->stop |= s->fault && !bounded(s->nr);
	switch (s->nr) {
	case __NR_select:
	case __NR_pselect6:
		sel(s);
		break;
	case __NR_futex:
		futex(s);
		break;
	case __NR_clone:
		if (a[0] & (CLONE_PIDFD | CLONE_PARENT_SETTID))
			so_add(s, a[2], 4);
		break;
	case __NR_clone3:
		clone3(s);
		break;
	case __NR_name_to_handle_at:
		handle(s);
		break;
	case __NR_mincore: /* in pieces: an error may come after some of them */
		so_add(s, a[2], (a[1] + 4095) / 4096);
		break;
	case __NR_get_mempolicy: /* a mask of arg[2] bits */
		so_add(s, a[0], 4);
		so_loose(s, a[1], (a[2] + 63) / 64 * 8);
		break;
	case __NR_io_uring_setup: /* struct io_uring_params is filled in before the last that can fail */
		s->stop = s->ret >= 0;
		so_add(s, a[1], 120);
		break;
	case __NR_msgrcv: /* struct msgbuf: the type before the text */
		if (s->ret >= 0)
			so_add(s, a[1], 8 + (uint64_t)s->ret);
		break;
	case __NR_statmount: /* struct statmount: its size first */
		if (s->ret >= 0)
			so_add(s, a[1], so_min(a[2], so_u32(a[1])));
		break;
	case __NR_lsm_get_self_attr: /* the size is stored also when it was too small */
		if (s->ret >= 0)
			so_loose(s, a[1], so_u32(a[2]));
		so_add(s, a[2], 4);
		break;
	case __NR_getxattrat: /* struct xattr_args: value, size */
		if (s->ret > 0)
			so_loose(s, so_u64(a[4]), so_min(s->ret, so_u32(a[4] + 8)));
		break;
	case __NR_modify_ldt: /* the only one whose error numbers have 32 bits */
		if ((int32_t)s->ret > 0 && ((uint32_t)a[0] == 0 || (uint32_t)a[0] == 2))
			so_add(s, a[1], (uint32_t)s->ret);
		break;
	case __NR_sysfs: /* option 2: the name of a file system */
		if (s->ret >= 0 && (int)a[0] == 2)
			so_loose(s, a[2], 64);
		break;
	}
}
