// SPDX-License-Identifier: MIT
// BREAKS: system calls that a signal interrupts: EINTR without SA_RESTART, restarted with it, what nanosleep says
// is left; and a SIGTRAP that is sent.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int ticks, feed = -1;

static void handler(int sig)
{
	(void)sig;
	if (++ticks >= 5 && feed >= 0) {
		write(feed, "x", 1);
		feed = -1;
	}
}

static void timer(long us)
{
	struct itimerval it = {{0, us}, {0, us}};

	ticks = 0;
	setitimer(ITIMER_REAL, &it, NULL);
}

int main(void)
{
	struct sigaction sa = {.sa_handler = handler};
	struct timespec ts = {0, 50000000}, left = {9, 9};
	char buf[8];
	int p[2], r;

	pipe(p);
	for (int restart = 0; restart < 2; restart++) {
		sa.sa_flags = restart ? SA_RESTART : 0;
		sigaction(SIGALRM, &sa, NULL);
		feed = p[1];
		timer(20000);
		r = (int)read(p[0], buf, 1);
		printf("read %d %d, %s\n", r, r < 0 ? errno : 0, ticks >= (restart ? 5 : 1) ? "ok" : "early");
		timer(0);
		feed = -1;
		timer(20000);
		r = nanosleep(&ts, &left);
		printf("nanosleep %d %d left %d\n", r, r < 0 ? errno : 0,
		       left.tv_nsec > 0 && left.tv_nsec < 50000000);
		r = poll(NULL, 0, 1000);
		printf("poll %d %d\n", r, r < 0 ? errno : 0);
		timer(0);
	}
	sigaction(SIGTRAP, &sa, NULL); /* the tracer's own signal */
	ticks = 0;
	raise(SIGTRAP);
	raise(SIGTRAP);
	printf("trap %d\n", ticks);
	return 0;
}
