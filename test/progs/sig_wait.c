// SPDX-License-Identifier: MIT
// BREAKS: signals that are waited for: sigwait, signalfd, and handlers run by sigsuspend, ppoll and pselect,
// which have masks of their own; what is blocked in those handlers.
// BUILD: cc -O1
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <unistd.h>

static volatile int runs1, runs2, mask1, order;

static int bits(void)
{
	sigset_t s;

	sigprocmask(SIG_BLOCK, NULL, &s);
	return sigismember(&s, SIGUSR1) | sigismember(&s, SIGUSR2) << 1 | sigismember(&s, SIGHUP) << 2;
}

static void usr1(int sig)
{
	runs1++;
	mask1 = bits();
	raise(SIGUSR2); /* nests where the waiting call had it open */
	order = order * 10 + 1;
	(void)sig;
}

static void usr2(int sig)
{
	runs2++;
	order = order * 10 + 2;
	(void)sig;
}

static void show(const char *what, int r)
{
	int e = errno;

	printf("%s: %d %d, runs %d %d order %d, in it %d now %d\n", what, r, r < 0 ? e : 0, runs1, runs2,
	       order, mask1, bits());
	runs1 = runs2 = order = 0;
}

int main(void)
{
	struct timespec soon = {0, 0};
	struct signalfd_siginfo si;
	struct epoll_event ev;
	sigset_t both, one, hup;
	int sig = 0, fd, ep = epoll_create1(0);

	signal(SIGUSR1, usr1);
	signal(SIGUSR2, usr2);
	sigemptyset(&both);
	sigaddset(&both, SIGUSR1);
	one = both; /* SIGUSR1 alone */
	sigaddset(&both, SIGUSR2);
	sigprocmask(SIG_BLOCK, &both, NULL);
	sigemptyset(&hup);
	sigaddset(&hup, SIGHUP);

	raise(SIGUSR1);
	sigwait(&one, &sig);
	show("sigwait", sig);
	raise(SIGUSR1);
	show("sigtimedwait", sigtimedwait(&both, NULL, &soon));
	show("sigtimedwait", sigtimedwait(&both, NULL, &soon));
	fd = signalfd(-1, &both, SFD_NONBLOCK);
	raise(SIGUSR2);
	show("signalfd", (int)read(fd, &si, sizeof(si)));
	show("signalfd", (int)read(fd, &si, sizeof(si)));
	raise(SIGUSR1);
	show("sigsuspend", sigsuspend(&hup));
	raise(SIGUSR1);
	show("ppoll", ppoll(NULL, 0, NULL, &hup));
	raise(SIGUSR1);
	show("pselect", pselect(0, NULL, NULL, NULL, NULL, &hup));
	raise(SIGUSR1);
	show("epoll_pwait", epoll_pwait(ep, &ev, 1, -1, &hup));
	raise(SIGUSR1);
	sigaddset(&hup, SIGUSR2);
	show("sigsuspend", sigsuspend(&hup)); /* SIGUSR2 waits */
	sigprocmask(SIG_UNBLOCK, &both, NULL);
	show("unblocked", 0);
	raise(SIGUSR1);
	show("raised", 0);
	return 0;
}
