/* SPDX-License-Identifier: MIT
 *
 * rt_chld.c - does a program see the end of children that are not its own?
 *
 * It has a handler for SIGCHLD and waits for any child. One child of its own ends, then a library is loaded, whose map
 * is made meanwhile when there is none: one signal, one child.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t seen;

static void handler(int sig)
{
	(void)sig;
	seen++;
}

int main(void)
{
	struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
	pid_t p;

	if (sigaction(SIGCHLD, &a, NULL))
		return 1;
	p = fork();
	if (p == 0)
		_exit(0);
	if (p < 0 || wait(NULL) != p || !dlopen("libm.so.6", RTLD_NOW))
		return 1;
	printf("%d signals, then %s\n", (int)seen,
	       wait(NULL) < 0 && errno == ECHILD ? "no child" : "a child");
	return 0;
}
