/* SPDX-License-Identifier: MIT
 *
 * rt_undo.c - system calls that would undo what the runtime did to the program's text, or keep it from undoing that, or take its own
 * system calls away
 *
 *   madvise, MADV_DONTNEED and the like, on text   the pages would come back without patches: that part is left out. What the
 *                                                  program sees is the same, as it has not changed them
 *   mseal on text                                  done; the patches are there for good, so nobody leaves the copies any more
 *   prctl PR_SET_SYSCALL_USER_DISPATCH             each of our calls would be a SIGSYS: the trace ends
 */
#include "rt.h"

#define PR_SYSCALL_USER_DISPATCH 59

static bool drops(uint64_t advice)
{
	return advice == MADV_DONTNEED || advice == 8 /* FREE */ || advice == 9 /* REMOVE */ ||
	       advice == 24 /* DONTNEED_LOCKED */;
}

enum rt_undo rt_undoes(uint64_t nr, const uint64_t *arg)
{
	if (nr == __NR_madvise && drops(arg[2]) && rt_mod_text(arg[0], arg[1]))
		return RT_UNDO_DROP;
	if (nr == MSEAL_NR && rt_mod_text(arg[0], arg[1]))
		return RT_UNDO_SEAL;
	if (nr == __NR_prctl && arg[0] == PR_SYSCALL_USER_DISPATCH && arg[1])
		return RT_UNDO_DISPATCH;
	return RT_UNDO_NOT;
}

/* The advice, for all pages but those of patched text. 0 or -errno, as the kernel would say: it goes on behind a range that is not
 * mapped, and remembers that */
long rt_undo_drop(const uint64_t *arg)
{
	uint64_t end = arg[0] + arg[1], at = arg[0], to;
	long r = 0, err = 0;

	if (at & (RT_PAGE - 1) || end < at)
		return rt_sc(__NR_madvise, arg[0], arg[1], arg[2]);
	for (; at < end && (!err || err == -ENOMEM); at = to) {
		bool text = rt_mod_text(at, RT_PAGE);

		for (to = at; to < end && rt_mod_text(to, RT_PAGE) == text; to += RT_PAGE)
			;
		r = text ? 0 : rt_sc(__NR_madvise, at, to - at, arg[2]);
		err = rt_err(r) ? r : err;
	}
	return err;
}
