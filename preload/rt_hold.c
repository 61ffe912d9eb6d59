/* SPDX-License-Identifier: MIT
 *
 * rt_hold.c - signals that come while a recording's system call hook is at work
 *
 *   hook ─▶ tcb.lazy = 1 ─▶ C code ─▶ tcb.lazy = 0 ─┬─▶ the call, the program
 *                             ▲  │                  └─ held: rt_hold_give() ─▶ unblock: it comes once more
 *           signal ─▶ rt_sig_entry: siginfo and mask kept, all signals blocked
 *
 * The runtime's C code takes no signals. To block them and back are two system calls, on either side of the program's own:
 * five instead of one. So they are not, as a rule; the first that comes all the same blocks the others and is sent again
 * when the program's registers are back. Where that would make a difference they are blocked as ever:
 *
 *   the program is on its alternate stack       the kernel would put the frame at its beginning, over what is there
 *   it has a handler for a realtime signal      those that wait come in the order in which they were sent
 *   or one that is reset (SA_RESETHAND)         the kernel would have done so the second time
 *   system calls that the runtime makes itself  EINTR
 */
#include "rt.h"

#define SIGRTMIN 32 /* the kernel's */
#define SA_RESETHAND 0x80000000u
#define SS_DISABLE 2

_Static_assert(offsetof(struct rt_tcb, lazy) == T_LAZY && offsetof(struct rt_tcb, held) == T_HELD,
	       "rt_off.h");
_Static_assert(offsetof(struct rt_tcb, alt_lo) == T_ALT_LO && offsetof(struct rt_tcb, alt_size) == T_ALT_SIZE,
	       "rt_off.h");
_Static_assert(offsetof(struct rt_tcb, held_mask) == T_HELD_MASK, "rt_off.h");
_Static_assert(offsetof(struct rt_tcb, held_info) == T_HELD_INFO, "rt_off.h");

/* never for this program: from here on */
static bool never;

void rt_hold_never(struct rt_tcb *t)
{
	t->alt_lo = 0;
	t->alt_size = ~0ull;
}

/* All signals are blocked, one is held: it waits, as the others do. */
void rt_hold_give(struct rt_tcb *t)
{
	uint64_t info[16];
	long pid = rt_getpid(), tid = rt_sc(__NR_gettid);

	memcpy(info, t->held_info, sizeof(info));
	t->held = 0;
	t->sv.mask = t->held_mask;
	if (rt_err(rt_sc(__NR_rt_tgsigqueueinfo, pid, tid, (int)info[0], info)))
		rt_sc(__NR_tgkill, pid, tid,
		      (int)info[0]); /* no room for what comes with it (RLIMIT_SIGPENDING) */
}

/* from here on they are blocked indeed */
void rt_hold_block(struct rt_tcb *t)
{
	static const uint64_t all = ~0ull;

	if (!t->lazy)
		return;
	rt_sc(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, &all, &t->sv.mask, 8);
	t->lazy = 0;
	if (t->held)
		rt_hold_give(t);
}

/* an alternate stack (stack_t: address, flags, size) that is, or may be, the program's from here on */
void rt_hold_stack(struct rt_tcb *t, const uint64_t *stack)
{
	uint64_t lo = stack[0], hi = lo + stack[2];

	if ((stack[1] & SS_DISABLE) || !stack[2] || never)
		return;
	if (t->alt_size) {
		lo = lo < t->alt_lo ? lo : t->alt_lo;
		hi = hi > t->alt_lo + t->alt_size ? hi : t->alt_lo + t->alt_size;
	}
	t->alt_lo = lo;
	t->alt_size = hi - lo;
}

/* the program is about to have a handler */
void rt_hold_handler(int sig, uint64_t flags)
{
	if (sig < SIGRTMIN && !(flags & SA_RESETHAND))
		return;
	never = true;
	if (rt.how == RT_RECORD && rt.main)
		rt_hold_never(rt.main);
}

/* recording begins */
void rt_hold_start(struct rt_tcb *t)
{
	uint64_t stack[3] = {0};

	for (int sig = 1; sig <= 64; sig++)
		if (rt.sig[sig].act.handler > 1)
			rt_hold_handler(sig, rt.sig[sig].act.flags);
	if (never)
		return;
	t->alt_lo = t->alt_size = 0;
	if (rt_err(rt_sc(__NR_sigaltstack, 0, stack)))
		rt_hold_never(t);
	else
		rt_hold_stack(t, stack);
}
