// SPDX-License-Identifier: MIT
// BREAKS: what the flags of an action mean: which signals are blocked in its handler, what is read back, that
// it is reset, that siginfo says who raised it.
// BUILD: cc -O1
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile int runs, depth, deepest, blocked_self, blocked_usr2, wrong_info;

static void look(void)
{
	sigset_t s;

	runs++;
	deepest = ++depth > deepest ? depth : deepest;
	sigprocmask(SIG_BLOCK, NULL, &s);
	blocked_self = sigismember(&s, SIGUSR1);
	blocked_usr2 = sigismember(&s, SIGUSR2);
}

static void plain(int sig)
{
	look();
	if (runs < 3)
		raise(sig);
	depth--;
}

static void info(int sig, siginfo_t *si, void *ctx)
{
	look();
	wrong_info |= si->si_signo != sig || si->si_pid != getpid() || si->si_code != SI_TKILL || !ctx;
	depth--;
}

static void other(int sig)
{
	runs += sig == SIGUSR2 ? 100 : 1000;
}

static void masked(int sig)
{
	look();
	raise(SIGUSR2); /* waits until this handler has returned */
	runs += runs < 100 ? 10 : 10000;
	depth--;
	(void)sig;
}

static void show(const char *what)
{
	struct sigaction sa;

	sigaction(SIGUSR1, NULL, &sa);
	printf("%s: runs %d deepest %d self %d usr2 %d info %d; flags %x default %d mask %d\n", what, runs,
	       deepest, blocked_self, blocked_usr2, wrong_info, (unsigned)sa.sa_flags,
	       sa.sa_handler == SIG_DFL, sigismember(&sa.sa_mask, SIGUSR2));
	runs = deepest = depth = 0;
}

static void run(const char *what, void (*h)(int), int flags, int mask_usr2)
{
	struct sigaction sa, old;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = h;
	sa.sa_flags = flags;
	if (mask_usr2)
		sigaddset(&sa.sa_mask, SIGUSR2);
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR1, NULL, &old);
	if (old.sa_handler != h || (old.sa_flags & ~0x4000000) != flags) /* SA_RESTORER */
		printf("%s: reads back wrong\n", what);
	raise(SIGUSR1);
	show(what);
}

int main(void)
{
	signal(SIGUSR2, other);
	run("plain", plain, 0, 0);
	run("nodefer", plain, SA_NODEFER, 0);
	run("siginfo", (void (*)(int))info, SA_SIGINFO, 0);
	run("mask", masked, 0, 1);
	run("mask, nodefer", masked, SA_NODEFER, 1);
	run("open", masked, 0, 0);
	run("reset", other, SA_RESETHAND | SA_NODEFER, 0);
	return 0;
}
