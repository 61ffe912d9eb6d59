/* SPDX-License-Identifier: MIT
 *
 * rt_libc.c - processes, threads and signals through libc, for rt_libc.sh
 *
 * usage: rt_libc CASE. Prints the same traced and untraced.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile int n;

static void *thread(void *p)
{
	n++;
	return p;
}

static void on_segv(int sig)
{
	siglongjmp(back, sig);
}

static void on_usr(int sig)
{
	n += sig;
}

static void c_thread(void)
{
	pthread_t t;

	for (int i = 0; i < 4; i++)
		if (!pthread_create(&t, NULL, thread, NULL))
			pthread_join(t, NULL);
	printf("threads %d\n", n);
}

static void c_spawn(char *self)
{
	char *argv[] = {self, "nothing", NULL}, line[32];
	pid_t pid;
	int st = 0;
	FILE *f;

	printf("spawn %d\n", posix_spawn(&pid, self, NULL, NULL, argv, environ));
	waitpid(pid, &st, 0);
	printf("status %d\n", WEXITSTATUS(st));
	fflush(stdout);
	printf("system %d\n", WEXITSTATUS(system("exit 4")));
	f = popen("echo popen", "r");
	printf("%s", f && fgets(line, sizeof(line), f) ? line : "nothing\n");
	pclose(f);
}

static void c_signals(void)
{
	struct sigaction sa = {.sa_handler = on_usr, .sa_flags = SA_RESETHAND}, now;

	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR1, NULL, &now);
	printf("mine %d\n", now.sa_handler == on_usr);
	raise(SIGUSR1);
	sigaction(SIGUSR1, NULL, &now);
	printf("sum %d, reset %d\n", n, now.sa_handler == SIG_DFL);
	signal(SIGUSR2, on_usr);
	kill(getpid(), SIGUSR2);
	printf("sum %d\n", n);
}

static void c_fork(void)
{
	for (int i = 0; i < 3; i++) {
		int st = 0;

		fflush(stdout);
		if (!fork()) {
			printf("child %d\n", i);
			exit(i);
		}
		wait(&st);
		printf("status %d\n", WEXITSTATUS(st));
	}
}

static void c_map(void)
{
	void *a = malloc(1 << 20), *b = mmap(NULL, 8192, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *h, *c;
	double (*f)(double);

	h = dlopen("libm.so.6", RTLD_NOW);
	f = (double (*)(double))dlsym(h, "cbrt");
	c = mmap(NULL, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	printf("%p %p %p %p %p %.3f\n", a, b, (void *)f, c, sbrk(0), f(27));
	dlclose(h);
}

int main(int argc, char **argv)
{
	const char *c = argc > 1 ? argv[1] : "";

	if (!strcmp(c, "thread"))
		c_thread();
	if (!strcmp(c, "spawn"))
		c_spawn(argv[0]);
	if (!strcmp(c, "signals"))
		c_signals();
	if (!strcmp(c, "fork"))
		c_fork();
	if (!strcmp(c, "map"))
		c_map();
	if (!strcmp(c, "segv")) {
		signal(SIGSEGV, on_segv);
		if (!sigsetjmp(back, 1))
			*(volatile int *)16 = 1;
		puts("caught");
	}
	if (!strcmp(c, "daemon")) {
		fflush(stdout);
		if (daemon(1, 0))
			return 1;
		closefrom(0);
		usleep(1000);
	}
	return 5;
}
