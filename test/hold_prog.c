/* SPDX-License-Identifier: MIT
 *
 * hold_prog.c - system calls in which step_sig sends signals, between two SIGURGs
 *
 * usage: hold_prog [plain|alt|on-alt|rt|reset]
 * Says how many SIGUSR1 it got. Exit status 0 if all calls had their results, and the handler its siginfo; 1 if not.
 * alt: handlers run on an alternate stack; on-alt: the calls are made there, too; rt: there is a handler for a realtime
 * signal; reset: one that is reset when it is called, for SIGUSR2.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile int got, bad, reset;
static char stack[64 << 10];
static int fd[2];
static pid_t pid;

static void handler(int sig, siginfo_t *si, void *uc)
{
	(void)uc;
	got++;
	bad |= (sig != SIGUSR1 || si->si_signo != SIGUSR1 ||
		(si->si_code && si->si_code != SI_TKILL && si->si_code != SI_KERNEL))
	       << 1;
}

static void once(int sig)
{
	(void)sig;
	reset++;
}

static void calls(void)
{
	char a[16] = "fifteen letters", b[16] = "";
	struct timespec t = {0, 0};
	sigset_t set, old;

	kill(pid, SIGURG);
	bad |= (syscall(SYS_getpid) != pid) << 2;
	bad |= (write(fd[1], a, sizeof(a)) != sizeof(a) || read(fd[0], b, sizeof(b)) != sizeof(b) ||
		memcmp(a, b, sizeof(a)))
	       << 3;
	bad |= (syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t) || !t.tv_sec) << 4;
	for (int i = 0; i < 2; i++) { /* the second time by the vDSO (rt_clock.c) */
		t.tv_sec = 0;
		bad |= (clock_gettime(CLOCK_MONOTONIC, &t) || !t.tv_sec) << 4;
	}
	errno = 0;
	bad |= (close(-1) != -1 || errno != EBADF) << 5;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, &old);
	bad |= (sigismember(&old, SIGUSR1)) << 6;
	sigprocmask(SIG_SETMASK, &old, &set);
	bad |= (sigismember(&set, SIGUSR1) != 1) << 7;
	kill(pid, SIGURG);
}

static void on_alt(int sig)
{
	volatile char here[512];

	(void)sig;
	memset((char *)here, 0x5a, sizeof(here));
	calls();
	for (size_t i = 0; i < sizeof(here); i++)
		bad |= (here[i] != 0x5a) << 8;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "plain";
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
	stack_t ss = {.ss_sp = stack, .ss_size = sizeof(stack)};

	pid = getpid();
	if (strstr(how, "alt")) {
		sa.sa_flags |= SA_ONSTACK;
		sigaltstack(&ss, NULL);
	}
	if (pipe(fd) || sigaction(SIGUSR1, &sa, NULL))
		return 1;
	sa.sa_flags = strcmp(how, "reset") ? SA_ONSTACK : (int)SA_RESETHAND;
	sa.sa_handler = strcmp(how, "on-alt") ? once : on_alt;
	if (strcmp(how, "plain") && sigaction(strcmp(how, "rt") ? SIGUSR2 : SIGRTMIN, &sa, NULL))
		return 1;
	if (strcmp(how, "on-alt"))
		calls();
	else
		raise(SIGUSR2);
	if (!strcmp(how, "reset"))
		raise(SIGUSR2);
	printf("%d\n", got);
	fprintf(stderr, "bad %#x, %d reset\n", (unsigned)bad, reset);
	return bad || reset != !strcmp(how, "reset");
}
