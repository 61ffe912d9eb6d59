/* SPDX-License-Identifier: MIT
 *
 * sigs_plug.c - preloaded, it makes any program one that signals interrupt (sigs.sh)
 *
 * SIGS_USEC=N: every N microseconds, whichever thread is running then. Else it
 * says to step_sig that it may begin. A program that blocks or handles these signals, or ends by one, does what it does.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long count;

/* uses registers, flags, its stack and what the interrupted function may keep below rsp */
static void handler(int sig, siginfo_t *si, void *ctx)
{
	char junk[64];

	(void)si;
	(void)ctx;
	memset(junk, sig + (int)count, sizeof(junk));
	count += junk[count % sizeof(junk)] ? 1 : 2;
}

static void __attribute__((constructor)) begin(void)
{
	const char *usec = getenv("SIGS_USEC");
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMAX - 1};
	struct itimerspec it;
	int was = errno;
	timer_t timer;

	sigaction(SIGRTMAX - 1, &sa, NULL);
	sigaction(SIGRTMAX, &sa, NULL);
	if (!usec) {
		kill(getpid(), SIGURG);
	} else if (!timer_create(CLOCK_MONOTONIC, &ev, &timer)) {
		it.it_value = it.it_interval = (struct timespec){0, 1000 * atol(usec)};
		timer_settime(timer, 0, &it, NULL);
	}
	errno = was;
}
