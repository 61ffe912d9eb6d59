/* SPDX-License-Identifier: MIT
 *
 * rt_tsc.c - the time stamp counter, also of a thread that has it taken away (PR_SET_TSC, prctl(2)): rdtsc is a SIGSEGV there,
 * and would be one in the runtime, with every signal blocked
 *
 * Threads and processes inherit that. From then on their system calls have no time stamps (tcb.stamp), which the fast path
 * takes itself; all others come from here.
 */
#include "rt.h"

#define PR_GET_TSC 25
#define PR_SET_TSC 26
#define PR_TSC_ENABLE 1
#define PR_TSC_SIGSEGV 2

static bool taken; /* by some thread of this memory */

static uint64_t read_tsc(void)
{
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}

void rt_tsc_taken(struct rt_tcb *t)
{
	taken = true;
	t->stamp = 0;
}

bool rt_tsc_there(void)
{
	return !taken;
}

bool rt_tsc_takes(uint64_t nr, const uint64_t *arg)
{
	return nr == __NR_prctl && arg[0] == PR_SET_TSC && arg[1] == PR_TSC_SIGSEGV;
}

uint64_t rt_tsc(void)
{
	int how = 0;
	uint64_t v;

	if (!taken || rt_err(rt_sc(__NR_prctl, PR_GET_TSC, &how)) || how != PR_TSC_SIGSEGV)
		return read_tsc();
	rt_sc(__NR_prctl, PR_SET_TSC, PR_TSC_ENABLE);
	v = read_tsc();
	rt_sc(__NR_prctl, PR_SET_TSC, PR_TSC_SIGSEGV);
	return v;
}
