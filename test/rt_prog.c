/* SPDX-License-Identifier: MIT
 *
 * rt_prog.c - exercises every path of the runtime's hooks; its functions in rt_prog.S are traced
 *
 * usage: rt_prog CASE. Prints what it saw; the output must be the same traced and untraced.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <linux/sched.h>
#include <sched.h>

long t_call(long nr, ...);
long t_vfork(void);
void t_log(long n);
long t_wait(volatile int *flag);
int t_trap(void);

static volatile int flag, hits;

static void on_signal(int sig, siginfo_t *si, void *p)
{
	ucontext_t *uc = p;
	long r15 = uc->uc_mcontext.gregs[REG_R15], rip = uc->uc_mcontext.gregs[REG_RIP];

	(void)si;
	hits++;
	flag = 1;
	if (rip >= (long)t_wait && rip < (long)t_trap)
		printf("signal %d in t_wait, r15 %lx\n", sig, r15);
	else
		printf("signal %d elsewhere\n", sig);
}

struct ksig {
	void *fn;
	unsigned long flags;
	void *restorer;
	unsigned long mask;
};
extern void t_restorer(void);
extern void t_exit9(void);
__asm__("t_exit9: mov $60, %eax; mov $9, %edi; syscall");
__asm__("t_restorer: mov $15, %eax; syscall");

static void install(int sig, int flags)
{
	struct ksig k = {on_signal, SA_SIGINFO | 0x04000000 | flags, t_restorer, 0x10}, old, now;

	printf("sigaction %ld\n", t_call(SYS_rt_sigaction, sig, &k, &old, 8));
	t_call(SYS_rt_sigaction, sig, NULL, &now, 8);
	printf("old %p, own %d, flags %lx, mask %lx\n", old.fn, now.fn == (void *)on_signal, now.flags,
	       now.mask);
}

static void alarm_in(int usec)
{
	struct itimerval it = {{0, 0}, {0, usec}};

	setitimer(ITIMER_REAL, &it, NULL);
}

static int c_signal(void)
{
	sigset_t now;

	install(SIGALRM, 0);
	alarm_in(20000);
	printf("waited: %lx\n", t_wait(&flag));
	sigprocmask(SIG_BLOCK, NULL, &now);
	printf("blocked now: %d\n", sigismember(&now, SIGALRM));
	alarm_in(20000);
	flag = 0;
	printf("waited: %lx, hits %d\n", t_wait(&flag), hits);
	return 3;
}

static int c_eintr(void)
{
	struct timespec ts = {1, 0};

	install(SIGALRM, SA_RESTART);
	alarm_in(20000);
	printf("nanosleep %ld\n", t_call(SYS_nanosleep, &ts, NULL));
	int p[2];
	char c = 0;

	if (pipe(p))
		return 1;
	if (!fork()) {
		usleep(60000);
		return write(p[1], "x", 1) != 1;
	}
	alarm_in(20000);
	printf("read %ld", t_call(SYS_read, p[0], &c, 1));
	printf(" %c\n", c);
	wait(NULL);
	return 0;
}

static int c_fork(void)
{
	int st;
	long pid = t_call(SYS_fork);

	if (!pid) {
		t_log(100);
		printf("child %ld\n", t_call(SYS_write, 1, "in child\n", 9));
		fflush(stdout);
		t_call(SYS_exit_group, 5);
	}
	printf("forked %d, %d\n", pid > 0, waitpid(pid, &st, 0) == pid);
	printf("status %d\n", WEXITSTATUS(st));
	t_log(3000000);
	return 0;
}

static int c_vfork(void)
{
	char *argv[] = {"sh", "-c", "echo from sh", NULL};
	long pid;
	int st;

	for (int i = 0; i < 3; i++) {
		pid = t_vfork();
		if (!pid) {
			t_log(2000000);
			if (i == 0)
				t_call(SYS_execve, "/bin/sh", argv, environ);
			t_call(SYS_exit_group, 6 + i);
		}
		printf("vforked %d, %d\n", pid > 0, waitpid(pid, &st, 0) == pid);
		printf("status %d\n", WEXITSTATUS(st));
		fflush(stdout);
		t_log(100);
	}
	return 0;
}

static void *thread(void *p)
{
	t_log(1000);
	return p;
}

static int c_thread(void)
{
	pthread_t t;
	void *r;

	static char stack[65536] __attribute__((aligned(16)));
	void **top = (void **)(stack + sizeof(stack) - 64);
	long pid;
	int st;

	*top = (void *)t_exit9; /* what the child's t_call returns to */
	pid = t_call(SYS_clone, CLONE_VM | SIGCHLD, top, 0, 0, 0);
	waitpid(pid, &st, 0);
	printf("clone %d\n", WEXITSTATUS(st));
	pthread_create(&t, NULL, thread, (void *)7);
	pthread_join(t, &r);
	printf("thread %ld\n", (long)r);
	return 0;
}

static int c_exec(char **argv)
{
	char *no[] = {"x", NULL}, *yes[] = {argv[0], "log", NULL};

	t_log(500);
	printf("exec %ld\n", t_call(SYS_execve, "/nonexistent", no, environ));
	fflush(stdout);
	t_log(500);
	t_call(SYS_execve, "/proc/self/exe", yes, environ);
	return 1;
}

static int c_fds(void)
{
	int n = 0;

	for (int i = 3; i < 1000; i++)
		n += fcntl(i, F_GETFD) >= 0;
	printf("open fds %d, next %d\n", n, dup(1));
	for (int i = 3; i < 1024; i++)
		close(i);
	t_log(3000000);
	return 0;
}

static int c_mem(void)
{
	char *a = (char *)t_call(SYS_mmap, 0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *b = mmap(NULL, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	printf("adjacent %ld, brk %d\n", (long)(a - b), sbrk(0) > (void *)&flag);
	printf("bad %ld %ld\n", t_call(SYS_munmap, 1, 1), t_call(9999));
	printf("gs %ld", t_call(SYS_arch_prctl, 0x1004, &a));
	printf(" %p\n", a);
	/* writing to traced text: tracing must stop, the change must stay */
	long page = (long)t_trap & ~4095l;

	printf("mprotect %ld\n", t_call(SYS_mprotect, page, 8192, 7));
	((char *)t_trap)[1] = 9;
	printf("trap %d\n", t_trap());
	return 0;
}

static int c_gs(void)
{
	long x = 0;

	printf("set gs %ld", t_call(SYS_arch_prctl, 0x1001, &x));
	t_call(SYS_arch_prctl, 0x1004, &x);
	printf(" same %d\n", x == (long)&x);
	return 0;
}

int main(int argc, char **argv)
{
	const char *c = argc > 1 ? argv[1] : "log";

	setvbuf(stdout, NULL, _IOFBF, 4096);
	if (!strcmp(c, "signal"))
		return c_signal();
	if (!strcmp(c, "eintr"))
		return c_eintr();
	if (!strcmp(c, "fork"))
		return c_fork();
	if (!strcmp(c, "vfork"))
		return c_vfork();
	if (!strcmp(c, "thread"))
		return c_thread();
	if (!strcmp(c, "exec"))
		return c_exec(argv);
	if (!strcmp(c, "fds"))
		return c_fds();
	if (!strcmp(c, "mem"))
		return c_mem();
	if (!strcmp(c, "gs"))
		return c_gs();
	if (!strcmp(c, "trap")) {
		printf("trap %d\n", t_trap());
		return 0;
	}
	if (!strcmp(c, "kill")) {
		t_log(2500000);
		t_call(SYS_getpid);
		kill(getpid(), SIGKILL);
	}
	if (!strcmp(c, "abort"))
		abort();
	if (!strcmp(c, "big"))
		for (int i = 0; i < 200; i++)
			t_log(1 << 20);
	t_log(argc > 2 ? atol(argv[2]) : 5000000);
	fflush(stdout);
	t_call(SYS_exit_group, 42);
	return 1;
}
