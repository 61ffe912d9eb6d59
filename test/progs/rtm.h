// SPDX-License-Identifier: MIT
// rtm.h - what the programs with transactions share
#ifndef RTM_H
#define RTM_H

#include <cpuid.h>
#include <immintrin.h>

// Does xbegin exist here, and may a transaction commit? (SDM Vol. 2, CPUID 7: RTM, RTM_ALWAYS_ABORT)
static int has_rtm(void)
{
	unsigned a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 11 & 1) && !(d >> 11 & 1);
}

// The fallback elsewhere than behind the xbegin; 1 in the transaction, 0 where it was aborted.
static inline __attribute__((always_inline)) int begin_far(unsigned *status)
{
	unsigned s;
	int in;

	__asm__ volatile("xbegin 2f\n"
			 "mov $1, %1\n"
			 "xor %0, %0\n"
			 "1:\n"
			 ".subsection 1\n"
			 "2: xor %1, %1\n"
			 "jmp 1b\n"
			 ".previous\n"
			 : "=&a"(s), "=&r"(in)
			 :
			 : "memory", "cc");
	*status = s;
	return in;
}

// Begun and ended in functions of their own: the fallback is reached from frames deeper than the xbegin's.
static unsigned __attribute__((noinline, unused)) begin(void)
{
	return _xbegin();
}

static void __attribute__((noinline, unused)) end(void)
{
	_xend();
}

#endif
