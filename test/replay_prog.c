/* SPDX-License-Identifier: MIT
 *
 * replay_prog.c - what replay.sh records: signals, faults and ends that a recording must tell from each other
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t n, order[8];
static volatile unsigned long x;
static int *volatile nowhere;

static void note(int sig)
{
	order[n++ & 7] = sig;
}

static void blocked(int how, sigset_t *old)
{
	sigset_t s;

	sigemptyset(&s);
	sigaddset(&s, SIGUSR1);
	sigaddset(&s, SIGUSR2);
	sigaddset(&s, SIGHUP);
	sigprocmask(how, how == SIG_BLOCK ? &s : old, how == SIG_BLOCK ? old : NULL);
}

/* several wait, and come one at the entry of the other's handler */
static void several(void)
{
	sigset_t old;

	blocked(SIG_BLOCK, &old);
	raise(SIGUSR1);
	raise(SIGUSR2);
	raise(SIGHUP);
	blocked(SIG_SETMASK, &old);
}

/* and one when the other's handler returns */
static void chain(int sig)
{
	note(sig);
	if (sig == SIGUSR1)
		raise(SIGUSR2);
	x += sig;
}

static void returns(void)
{
	struct sigaction sa = {.sa_handler = chain};

	sigfillset(&sa.sa_mask);
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	raise(SIGUSR1);
}

/* as programs do that clean up when they are told to end: the default action, once more; that comes when this returns */
static void again(int sig)
{
	struct sigaction sa = {.sa_handler = SIG_DFL};

	sigaction(sig, &sa, NULL);
	raise(sig);
}

static void reraised(int sig)
{
	struct sigaction sa = {.sa_handler = again};

	sigaction(sig, &sa, NULL);
	raise(sig);
	puts("not reached");
}

/* at any instruction, a thousand times a second. late: the handler comes after the timer */
static void ticks(int late)
{
	struct itimerval it = {{0, 1000}, {0, 1000}};
	struct itimerspec ts = {{0, 1000000}, {0, 1000000}};
	timer_t t;

	sigset_t alarm;

	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	signal(SIGALRM, late ? SIG_DFL : note);
	if (late) {
		sigprocmask(SIG_BLOCK, &alarm, NULL);
		setitimer(ITIMER_REAL, &it, NULL);
		signal(SIGALRM, note);
		sigprocmask(SIG_UNBLOCK, &alarm, NULL);
	} else {
		timer_create(CLOCK_MONOTONIC, NULL, &t);
		timer_settime(t, 0, &ts, NULL);
	}
	while (n < 5)
		x++;
	signal(SIGALRM, SIG_IGN);
	n = 0;
}

static sigjmp_buf refused;

static void refuse(int sig)
{
	siglongjmp(refused, sig);
}

/* a <= b <= c */
static int ordered(const struct timespec *a, const struct timespec *b, const struct timespec *c)
{
	return (a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec <= b->tv_nsec)) &&
	       (b->tv_sec < c->tv_sec || (b->tv_sec == c->tv_sec && b->tv_nsec <= c->tv_nsec));
}

/* The time is what the kernel says, wherever it is kept: 0, or what was wrong. page: two of them */
static int times(char *page)
{
	static const clockid_t clock[] = {CLOCK_REALTIME,	  CLOCK_MONOTONIC,	  CLOCK_MONOTONIC_RAW,
					  CLOCK_REALTIME_COARSE,  CLOCK_BOOTTIME,	  CLOCK_TAI,
					  CLOCK_MONOTONIC_COARSE, CLOCK_THREAD_CPUTIME_ID};
	struct timespec a, b, c, *far = (void *)page, *across = (void *)(page + 4096 - 8);
	struct timeval tv;
	int bad = 0;

	for (int i = 0; i < 2000; i++) {
		clockid_t k = clock[i % 8];
		struct timespec *to = i % 3 == 0 ? &b : i % 3 == 1 ? far : across;

		syscall(SYS_clock_gettime, k, &a);
		bad |= clock_gettime(k, to) != 0;
		syscall(SYS_clock_gettime, k, &c);
		bad |= !ordered(&a, to, &c) << 1;
		syscall(SYS_clock_gettime, CLOCK_REALTIME, &a);
		bad |= (gettimeofday(&tv, NULL) != 0) << 2;
		syscall(SYS_clock_gettime, CLOCK_REALTIME, &c);
		b = (struct timespec){tv.tv_sec, tv.tv_usec * 1000 + 999};
		bad |= !ordered(&a, &b, &b) << 3;
		b.tv_nsec -= 999;
		bad |= !ordered(&b, &b, &c) << 4;
		syscall(SYS_clock_gettime, CLOCK_REALTIME_COARSE, &a);
		b.tv_sec = time(i % 2 ? &c.tv_sec : NULL);
		bad |= (i % 2 && b.tv_sec != c.tv_sec) << 5;
		syscall(SYS_clock_gettime, CLOCK_REALTIME_COARSE, &c);
		bad |= (b.tv_sec < a.tv_sec || b.tv_sec > c.tv_sec) << 6;
	}
	return bad;
}

/* first alone, then while signals come; and where the time cannot be kept any more, it is not */
static void clocks(void)
{
	struct itimerval it = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int bad = times(page);

	signal(SIGSEGV, refuse);
	mprotect(page, 8192, PROT_READ);
	if (!sigsetjmp(refused, 1) && !clock_gettime(CLOCK_MONOTONIC, (void *)page))
		bad |= 1 << 7;
	mprotect(page, 8192, PROT_READ | PROT_WRITE);
	signal(SIGALRM, note);
	setitimer(ITIMER_REAL, &it, NULL);
	bad |= times(page);
	setitimer(ITIMER_REAL, &off, NULL);
	n = 0; /* how many there were is a matter of time */
	for (int i = 0; i < 8; i++)
		order[i] = 0;
	munmap(page, 8192);
	if (!sigsetjmp(refused, 1) && !clock_gettime(CLOCK_MONOTONIC, (void *)page))
		bad |= 1 << 8;
	signal(SIGSEGV, SIG_DFL);
	printf("clocks: %x\n", bad);
}

/* a system call that no recording sees: mov $39,%eax; syscall; ret */
static void hidden(void)
{
	static const unsigned char code[] = {0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3};
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(p, code, sizeof(code));
	n = ((int (*)(void))p)() == getpid();
}

/* contents that go: at once, or when the kernel likes */
static void dropped(void)
{
	int how[] = {MADV_DONTNEED, 8 /* MADV_FREE */, MADV_HUGEPAGE, MADV_DONTNEED};
	int flags[] = {MAP_PRIVATE, MAP_PRIVATE, MAP_PRIVATE, MAP_SHARED};

	for (int i = 0; i < 4; i++) {
		unsigned char *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, flags[i] | MAP_ANONYMOUS, -1, 0);

		memset(p, 1, 65536);
		madvise(p, 32768, how[i]);
		order[i] = 0;
		for (int k = 0; k < 65536; k++)
			order[i] += i == 1 && k < 32768 ? 0 : p[k];
		munmap(p, 65536);
	}
}

/* somebody sends signals all the time, also while a fork makes the recording go over to full logging */
static void storm(void)
{
	sigset_t all;
	pid_t pid;

	while (n < 20)
		usleep(100);
	pid = fork();
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	n = 0;
}

static int sum(const unsigned char *p, int size)
{
	int s = 0;

	for (int i = 0; i < size; i++)
		s = s * 31 + p[i];
	return s;
}

/* a file of 10,000 bytes: read only; written to by the program while it is mapped; by somebody else, as it seems */
static void mapped(const char *how, const char *path)
{
	int fd = open(path, O_RDONLY), out = -1;
	const unsigned char *p = mmap(NULL, 10000, PROT_READ, MAP_SHARED, fd, 0);
	unsigned char *q = mmap(NULL, 5000, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 4096);

	close(fd);
	order[0] = sum(p, 10000);
	q[0]++;
	if (!strcmp(how, "mapped-written")) {
		out = open(path, O_WRONLY);
		x = pwrite(out, "changed", 7, 100);
		close(out);
	} else if (!strcmp(how, "mapped-changed")) {
		utimensat(AT_FDCWD, path, NULL, 0);
	}
	order[1] = sum(p, 10000);
	order[2] = sum(q, 5000);
}

/* The direction flag is set while a call is made with which the recording ends: a process, which has it, too. */
static void down(void)
{
	static char to[64];
	char *p = to + 40;
	long r = SYS_fork, count = 30;

	__asm__ volatile("std\n\tsyscall\n\tmov %%eax,%%edx\n\tmov $'x',%%eax\n\tmov %%rbx,%%rcx\n\trep "
			 "stosb\n\tcld\n\t"
			 "test %%edx,%%edx\n\tjnz 1f\n\tmov %3,%%eax\n\txor %%edi,%%edi\n\tsyscall\n1:"
			 : "+a"(r), "+D"(p), "+b"(count)
			 : "i"(SYS_exit)
			 : "rcx", "rdx", "r11", "memory");
	wait(NULL);
	printf("%s\n", to + 11);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	signal(SIGUSR1, note);
	signal(SIGUSR2, note);
	signal(SIGHUP, note);
	printf("%s\n", what);
	fflush(stdout);
	if (!strcmp(what, "several"))
		several();
	else if (!strcmp(what, "returns"))
		returns();
	else if (!strcmp(what, "ticks") || !strcmp(what, "late"))
		ticks(!strcmp(what, "late"));
	else if (!strcmp(what, "reraised"))
		reraised(SIGPIPE);
	else if (!strcmp(what, "reraised-term"))
		reraised(SIGTERM);
	else if (!strcmp(what, "clocks"))
		clocks();
	else if (!strcmp(what, "hidden"))
		hidden();
	else if (!strcmp(what, "dropped"))
		dropped();
	else if (!strcmp(what, "storm"))
		storm();
	else if (!strcmp(what, "down"))
		down();
	else if (!strncmp(what, "mapped", 6))
		mapped(what, argv[2]);
	for (int i = 0; i < 1000; i++)
		x += i;
	if (!strcmp(what, "fault"))
		*nowhere = 1;
	while (!strcmp(what, "loop"))
		x++;
	printf("%d: %d %d %d\n", n, order[0], order[1], order[2]);
	return 0;
}
