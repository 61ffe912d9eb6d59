// SPDX-License-Identifier: MIT
// BREAKS: transactions that never commit, whoever watches: what ran in them is undone, its accesses never were. The fallback goes on
// with the registers and the stack of the xbegin, in that function's frame, and with eax, which addresses depend on.
// BUILD: cc -O2 -mrtm
// VARIANTS: O0 O3 clang nopie
#include <stdio.h>

#include "rtm.h"

static volatile unsigned table[256], cell, *volatile nowhere;
static unsigned sum;

static void __attribute__((noinline)) touch(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		table[i * 37 & 255] += i;
}

// Reads by what eax says: as many times whatever that is.
static void __attribute__((noinline)) fallback(unsigned status)
{
	for (unsigned i = 0; i < 4; i++)
		sum += table[(status >> 24) * 0] + i;
}

static void __attribute__((noinline)) explicitly(unsigned n)
{
	unsigned s = _xbegin();

	if (s == _XBEGIN_STARTED) {
		touch(n);
		cell = n;
		_xabort(7);
	}
	fallback(s);
}

static void __attribute__((noinline)) far_away(unsigned n)
{
	unsigned kept = n * 3, s;

	if (begin_far(&s)) {
		kept += table[n & 255];
		touch(n);
		__asm__ volatile("" : "+r"(kept));
		_xabort(9);
	}
	sum += table[kept & 255] + n;
	fallback(s);
}

static void __attribute__((noinline)) by_call(unsigned n)
{
	unsigned s = _xbegin();

	if (s == _XBEGIN_STARTED) {
		long nr = 39; // getpid

		touch(n);
		__asm__ volatile("syscall" : "+a"(nr) : : "rcx", "r11", "memory");
		_xend();
	}
	fallback(s);
}

static void __attribute__((noinline)) by_fault(unsigned n)
{
	unsigned s = _xbegin();

	if (s == _XBEGIN_STARTED) {
		touch(n);
		*nowhere = n;
		_xend();
	}
	fallback(s);
}

static void __attribute__((noinline)) nested(unsigned n)
{
	unsigned s = _xbegin(), in;

	if (s == _XBEGIN_STARTED) {
		touch(n);
		in = _xbegin();
		if (in == _XBEGIN_STARTED)
			_xabort(3);
		touch(n + 1); // never: the outer one aborts
		_xabort(4);
	}
	fallback(s);
}

static void __attribute__((noinline)) deeper(unsigned n)
{
	volatile unsigned local[8] = { n };

	touch(n);
	cell = local[n & 7];
	_xabort(5);
}

static void __attribute__((noinline)) by_helper(unsigned n)
{
	unsigned s = begin();

	if (s == _XBEGIN_STARTED) {
		deeper(n);
		end();
	}
	fallback(s);
}

int main(void)
{
	if (!has_rtm()) {
		// xabort is nothing outside of a transaction, where it exists; the rest is there, and not executed
		touch(50);
		printf("rtm_abort 0\n");
		return 0;
	}
	for (unsigned i = 0; i < 50; i++) {
		explicitly(i);
		far_away(i);
		by_call(i);
		by_fault(i);
		nested(i);
		by_helper(i);
		cell += _xtest();
	}
	printf("rtm_abort %u\n", cell || table[37] ? 0 : 50);
	return 0;
}
