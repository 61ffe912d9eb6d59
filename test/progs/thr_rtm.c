// SPDX-License-Identifier: MIT
// BREAKS: transactions that commit and ones that do not: counted loops, calls and returns, system calls and faults within, nested ones,
// ones begun in a helper; locks that are elided by several threads; signals meanwhile; logs that fill up within one.
// BUILD: cc -O2 -mrtm -pthread
// VARIANTS: O0 clang
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "check.h"
#include "rtm.h"

#define T 3

static unsigned table[1024], lock, committed[T + 1], rounds;
static volatile unsigned signals, zero;
static unsigned status_seen[256];

static unsigned __attribute__((noinline)) mix(unsigned x, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		x = x * 1664525u + 1013904223u;
		table[x >> 22]++;
	}
	return x;
}

static void __attribute__((noinline)) acquire(void)
{
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&lock, __ATOMIC_RELAXED))
			_mm_pause();
}

// true: in a transaction
static int __attribute__((noinline)) elide(unsigned tries)
{
	for (unsigned i = 0; i < tries; i++) {
		unsigned s = begin();

		if (s == _XBEGIN_STARTED) {
			if (!__atomic_load_n(&lock, __ATOMIC_RELAXED))
				return 1;
			_xabort(0xff);
		}
		__atomic_fetch_add(&status_seen[s >> 24], 1, __ATOMIC_RELAXED);
		if (!(s & _XABORT_RETRY))
			break;
		while (__atomic_load_n(&lock, __ATOMIC_RELAXED))
			_mm_pause();
	}
	acquire();
	return 0;
}

static void __attribute__((noinline)) release(int in, unsigned who)
{
	CHECK(in == _xtest());
	if (in)
		end();
	else
		__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
	committed[who] += (unsigned)in;
}

static void *run(void *arg)
{
	unsigned me = (unsigned)(long)arg, x = me + 1;

	for (unsigned i = 0; i < rounds; i++) {
		int in = elide(4);

		x = mix(x, 1 + (i & 7));
		release(in, me);
	}
	return NULL;
}

// one transaction after the other; the fallback has another place
static unsigned __attribute__((noinline)) alone(unsigned n)
{
	unsigned x = 5, s, ok = 0;

	for (unsigned i = 0; i < n; i++) {
		if (begin_far(&s)) {
			x = mix(x, 3 + (i & 3));
			if (i % 5 == 0)
				_xabort(1);
			if (i % 7 == 0)
				__asm__ volatile("syscall" : : "a"(39) : "rcx", "r11", "memory");
			if (i % 11 == 0)
				table[1] = *(volatile unsigned *)(unsigned long)zero;
			if (begin_far(&s)) { // nested
				x = mix(x, 2);
				_xend();
			}
			_xend();
			ok++;
		} else {
			table[s >> 24]++;
			mix(x, 3 + (i & 3) + 2);
			x = x * 7 + i;
		}
	}
	return ok;
}

static void on_alarm(int sig)
{
	unsigned x = (unsigned)sig;

	signals++;
	for (int i = 0; i < 20; i++)
		x = x * 1664525u + 1013904223u;
	CHECK(x != 1 && !_xtest());
}

static unsigned total(void)
{
	unsigned s = 0;

	for (unsigned i = 0; i < 1024; i++)
		s += table[i];
	return s;
}

int main(void)
{
	long usec = simulated() ? 50000 : 500;
	struct itimerval every = { { 0, usec }, { 0, usec } }, off = { { 0, 0 }, { 0, 0 } };
	struct sigaction sa = { .sa_handler = on_alarm };
	unsigned before, n = simulated() ? 100 : 20000;
	pthread_t t[T];

	if (!has_rtm())
		SKIP("thr_rtm", "no transactional memory here (RTM)");
	rounds = simulated() ? 80 : 3000;
	table[zero] = 0;
	before = alone(n); // those that fault have left nothing
	CHECK(simulated() || getenv("RTM_ABORTS") || before > n / 4);
	CHECK(before < n);

	memset(table, 0, sizeof(table));
	for (long i = 0; i < T; i++)
		CHECK(!pthread_create(&t[i], NULL, run, (void *)i));
	for (long i = 0; i < T; i++)
		CHECK(!pthread_join(t[i], NULL));
	CHECK(total() == T * (rounds / 8) * 36);

	// signals
	CHECK(!sigaction(SIGALRM, &sa, NULL) && !setitimer(ITIMER_REAL, &every, NULL));
	memset(table, 0, sizeof(table));
	for (unsigned i = 0; signals < (simulated() ? 2 : 100); i++) {
		int in = elide(1 + (i & 3));

		mix(i, 20);
		release(in, T);
	}
	CHECK(!setitimer(ITIMER_REAL, &off, NULL));
	CHECK(total() && total() % 20 == 0);
	CHECK(simulated() || getenv("RTM_ABORTS") || committed[T]);

	// more of the log than one chunk, within transactions
	memset(table, 0, sizeof(table));
	for (unsigned i = 0; i < n / 20; i++) {
		int in = elide(20);

		mix(i, 500);
		release(in, T);
	}
	CHECK(total() == n / 20 * 500);
	printf("thr_rtm %u\n", T);
	return 0;
}
