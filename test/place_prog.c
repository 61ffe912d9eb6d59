/* SPDX-License-Identifier: MIT
 *
 * place_prog.c - what replay.sh interrupts while it computes: place_prog count|wait|work|frames [MICROSECONDS]
 *
 *   count  a loop in which no register changes, nor is there anything to log: only memory tells where it is. The handler
 *          says how often it went round, and ends the process
 *   wait   the same, but nobody sets a timer
 *   work   loops of all kinds; the handler changes memory, and they go on. 0: no timer
 *   frames the same, below callers that no unwind table tells, or one that lies: what their registers hold is used as addresses
 *          behind it
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile unsigned long counter;
static volatile unsigned hits;
static unsigned char from[1 << 18], to[1 << 18];
static double values[256];

static void say(int sig)
{
	char line[32];
	int n = snprintf(line, sizeof(line), "%lu\n", counter);

	(void)sig;
	_exit(write(1, line, (size_t)n) != n);
}

static void hit(int sig)
{
	(void)sig;
	hits++;
}

__attribute__((noinline)) static void count_up(void)
{
	__asm__ volatile("1: incq %0; jmp 1b" : "+m"(counter));
}

/* counters in memory, within each other */
__attribute__((noinline)) static void nested(void)
{
	volatile int i, j, k;

	for (i = 0; i < 100; i++)
		for (j = 0; j < 100; j++)
			for (k = 0; k < 20; k++)
				to[0]++;
}

/* nothing but a vector register changes */
__attribute__((noinline)) static double floats(double lim)
{
	double x = 0, one = 1;

	__asm__ volatile("1: addsd %1, %0; comisd %2, %0; jb 1b" : "+x"(x) : "x"(one), "x"(lim) : "cc");
	return x;
}

/* interrupted between two elements, forwards and backwards, over itself and not */
__attribute__((noinline)) static void strings(void)
{
	unsigned long n = sizeof(to), c = sizeof(from) / 8;
	void *d = to, *s = from, *p = from;

	__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
	__asm__ volatile("rep stosq" : "+D"(p), "+c"(c) : "a"(0x0101010101010101ul) : "memory");
	n = sizeof(to) - 64;
	d = to;
	s = to + 1;
	__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
	n = 4096;
	d = to + 8191;
	s = to + 8000;
	__asm__ volatile("std; rep movsb; cld" : "+D"(d), "+S"(s), "+c"(n) : : "memory", "cc");
	n = sizeof(to);
	d = to;
	__asm__ volatile("repne scasb" : "+D"(d), "+c"(n) : "a"(99) : "memory", "cc");
}

static int ascending(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static void library(void)
{
	static int v[2000];
	unsigned x = 1;
	char line[200];

	for (int i = 0; i < 2000; i++)
		v[i] = (int)((x = x * 1103515245 + 12345) >> 8);
	qsort(v, 2000, sizeof(*v), ascending);
	for (int i = 0; i < 200; i++) {
		void *p = malloc((size_t)(16 + i * 7));

		snprintf(line, sizeof(line), "%d %g %x", i, i * 0.1, i * 77);
		values[i] += (double)strlen(line);
		memset(p, i, 16);
		free(p);
	}
}

/* unsigned long bare(unsigned long *t, void (*next)(void)): t and its neighbours in all registers that a callee saves,
 * across next */
#define KEEPS(name, table, end)                                                                              \
	__asm__(".text\n.type " name ", @function\n" name ": " table "\n"                                    \
		"push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; sub $8, %rsp\n"           \
		"mov %rdi, %rbx; lea 64(%rdi), %rbp; lea 128(%rdi), %r12; lea 192(%rdi), %r13\n"             \
		"lea 256(%rdi), %r14; lea 320(%rdi), %r15\n"                                                 \
		"call *%rsi\n"                                                                               \
		"incq (%rbx); incq (%rbp); incq (%r12); incq (%r13); incq (%r14); incq (%r15)\n"             \
		"mov (%rbx), %rax; add $8, %rsp\n"                                                           \
		"pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"                               \
		"ret\n" end "\n.size " name ", . - " name "\n")
KEEPS("bare", "", "");
KEEPS("lying", ".cfi_startproc", ".cfi_endproc");
unsigned long bare(unsigned long *t, void (*next)(void));
unsigned long lying(unsigned long *t, void (*next)(void));

static unsigned long table[2][64];

__attribute__((noinline)) static void work(void)
{
	nested();
	values[0] += floats(200000);
	strings();
	library();
}

__attribute__((noinline)) static void below(void)
{
	values[7] += (double)bare(table[1], work);
}

int main(int argc, char **argv)
{
	long usec = argc > 2 ? atol(argv[2]) : 0;
	struct itimerval t = {{0, 0}, {0, usec}};
	int framed = argc > 1 && !strcmp(argv[1], "frames");
	int counts = argc > 1 && strcmp(argv[1], "work") && !framed;

	printf("%p\n", (void *)&counter);
	fflush(stdout);
	if (argc > 1 && strcmp(argv[1], "wait")) {
		signal(SIGALRM, counts ? say : hit);
		setitimer(ITIMER_REAL, &t, NULL);
	}
	if (counts)
		count_up();
	for (int i = 0; i < 4; i++) {
		if (framed)
			values[8] += (double)lying(table[0], below);
		else
			work();
	}
	printf("%g\n", values[0] + values[7]);
	return hits > 1 ? 1 : usec && !hits ? 2 : 0; /* 2: it was through before the signal came */
}
