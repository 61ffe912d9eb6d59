/* SPDX-License-Identifier: MIT
 *
 * step_sig.c - runs a program and sends it a signal after exactly N instructions
 *
 * usage: step_sig N PROG ARGS...
 *
 * Counting begins when the program gets a SIGURG, which is kept from it; N = 0 sends nothing. Exit
 * status: the program's, or 100 if a second SIGURG came first, 101 for what should not happen.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static int stop(pid_t p, int request, int sig)
{
	int st;

	if (ptrace(request, p, NULL, (long)sig) || waitpid(p, &st, 0) != p) {
		perror("step_sig");
		exit(101);
	}
	return st;
}

static int finish(pid_t p, int st)
{
	while (WIFSTOPPED(st))
		st = stop(p, PTRACE_CONT,
			  WSTOPSIG(st) == SIGTRAP || WSTOPSIG(st) == SIGURG ? 0 : WSTOPSIG(st));
	return WIFEXITED(st) ? WEXITSTATUS(st) : 101;
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[1]) : -1;
	int st, r;
	pid_t p;

	if (n < 0) {
		fprintf(stderr, "usage: step_sig N PROG ARGS...\n");
		return 101;
	}
	p = fork();
	if (!p) {
		personality(ADDR_NO_RANDOMIZE);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(argv[2], argv + 2);
		_exit(101);
	}
	if (waitpid(p, &st, 0) != p)
		return 101;
	while (WIFSTOPPED(st) && WSTOPSIG(st) != SIGURG)
		st = stop(p, PTRACE_CONT, WSTOPSIG(st) == SIGTRAP ? 0 : WSTOPSIG(st));
	for (long i = 0; i < n && WIFSTOPPED(st); i++) {
		st = stop(p, PTRACE_SINGLESTEP, 0);
		if (WIFSTOPPED(st) && WSTOPSIG(st) == SIGURG) {
			finish(p, st);
			return 100;
		}
	}
	if (n && WIFSTOPPED(st))
		st = stop(p, PTRACE_CONT, SIGUSR1);
	r = finish(p, st);
	return r;
}
