/* SPDX-License-Identifier: MIT
 *
 * step_prog.c - what step_sig interrupts: between two SIGURGs, one of every kind of code that the tracer
 * changes
 *
 * The handler finds registers that only this function uses and a position in a file; the function
 * finds them as it left them. Exit status 0 if all is well. With "full N" the log is N bytes from the end
 * of a chunk when it begins (that needs the tracer: its log pointer is at gs:0). But for the handler it does the
 * same, whatever is sent to it.
 */
#define _GNU_SOURCE
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include "progs/plt_lib.h"

#define MAGIC 0x1234567890abcdefl
#define SIGNALS 4096 /* more than are sent */
static volatile int signals, nested, bad, here;
static volatile unsigned long at[SIGNALS];
static unsigned long rt_lo, rt_size;
static long pid;

static void handler(int sig, siginfo_t *si, void *ctx)
{
	const greg_t *r = ((ucontext_t *)ctx)->uc_mcontext.gregs;

	(void)si;
	if (sig == SIGUSR2) {
		nested++;
		return;
	}
	if (signals < SIGNALS)
		at[signals] = (unsigned long)r[REG_RIP];
	signals++;
	bad |= here && (r[REG_R12] != ~MAGIC || r[REG_R15] != MAGIC);
}

static long getppid_by(long nr)
{
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "0"(nr) : "rcx", "r11", "memory");
	return r;
}

/* r15 as base, index, source and result, pushed, in a loop of its own, next to flags that are live */
static long __attribute__((noinline)) r15_forms(long *t)
{
	long s = 0, n = 3, f;

	__asm__ volatile("push %%r15\n\t"
			 "mov %2, %%r15\n\t"
			 "mov 8(%%r15), %0\n\t"
			 "cmp $5, %0\n\t"
			 "lea 16(%%r15), %%r15\n\t"
			 "setg %b3\n\t"
			 "movzbl %b3, %k3\n\t"
			 "1:\n\t"
			 "add (%%r15), %0\n\t"
			 "add $8, %%r15\n\t"
			 "dec %1\n\t"
			 "jnz 1b\n\t"
			 "xor %%r15, %0\n\t"
			 "xor %%r15, %0\n\t"
			 "mov $2, %%r15d\n\t"
			 "add (%2,%%r15,8), %0\n\t"
			 "pop %%r15"
			 : "+&r"(s), "+&r"(n), "+&r"(t), "=&r"(f)
			 :
			 : "cc", "memory");
	return s + f * 100;
}

static long loops(const int *t, int n)
{
	long s = 0;

	for (int i = 0; i < n; i++)
		s += t[t[i] & 15] > 4 ? t[i] : -1;
	return s;
}

static long cases(const int *t, int n)
{
	long s = 0;

	for (int i = 0; i < n; i++)
		switch (t[i] & 7) {
		case 0:
			s += 3;
			break;
		case 1:
			s ^= 12;
			break;
		case 2:
			s -= t[i];
			break;
		case 3:
			s *= 2;
			break;
		case 4:
			s += i;
			break;
		case 5:
			s = ~s;
			break;
		default:
			s |= 1;
		}
	return s;
}

static long calls_by(long (*volatile f)(const int *, int), const int *t)
{
	return f(t, 3) + f(t + 1, 2);
}

/* untraced code comes back: where no flags are in use, and where it returns some */
static long (*made)(long);
static long __attribute__((noinline)) unseen(long n)
{
	long above;

	n = made(n) + made(n + 1);
	__asm__ volatile("sub $128, %%rsp\n\t"
			 "call *%2\n\t"
			 "setg %b0\n\t"
			 "movzbl %b0, %k0\n\t"
			 "lea 128(%%rsp), %%rsp"
			 : "=&b"(above), "+D"(n)
			 : "r"(made)
			 : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "cc", "memory");
	return n * 2 + above;
}

static bool make(void)
{
	static const unsigned char code[] = {0x48, 0x8d, 0x47, 0x07, 0x48,
					     0x83, 0xff, 0x09, 0xc3}; /* lea 7(%rdi),%rax; cmp $9,%rdi; ret */
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	memcpy(p, code, sizeof(code));
	made = (long (*)(long))p;
	return true;
}

static long __attribute__((noinline)) everything(int *t)
{
	static long quads[8] = {3, 1, 4, 1, 5, 9, 2, 6};
	struct sigaction sa;
	char a[32], b[32];
	long s = r15_forms(quads);

	s += loops(t, 6) + cases(t, 7) + calls_by(loops, t);
	s += getppid_by(110) == getppid();
	s += unseen(t[0]);
	sigaction(SIGUSR1, NULL, &sa); /* the hook's long way */
	s += sa.sa_flags & SA_SIGINFO;
	memset(a, (int)s, sizeof(a));
	memcpy(b, a, sizeof(b));
	__asm__ volatile("cld\n\trep movsb" : : "S"(a), "D"(b), "c"(9l) : "memory");
	return s + b[7];
}

static long __attribute__((noinline)) calls(int *table)
{
	register long r12 __asm__("r12") = ~MAGIC, r15 __asm__("r15") = MAGIC;
	long r, s; /* r: of kill(2) */

	here = 1;
	__asm__ volatile("syscall"
			 : "=a"(r), "+r"(r12), "+r"(r15)
			 : "0"(62l), "D"(pid), "S"((long)SIGURG)
			 : "rcx", "r11", "memory");
	s = lib_tail(table, 5);
	__asm__ volatile("" : "+r"(r12), "+r"(r15));
	s += lib_hook(table, 2);
	__asm__ volatile("movl $0, %2" : "+r"(r12), "+r"(r15), "=m"(here));
	s += everything(table);
	__asm__ volatile("syscall"
			 : "=a"(r), "+r"(r12), "+r"(r15)
			 : "0"(62l), "D"(pid), "S"((long)SIGURG)
			 : "rcx", "r11", "memory");
	bad |= r12 != ~MAGIC || r15 != MAGIC;
	return s + r;
}

/* where the runtime is: the program must not see that it was there */
static int runtime(struct dl_phdr_info *i, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	if (!strstr(i->dlpi_name, "libptrace_rt"))
		return 0;
	rt_lo = i->dlpi_addr;
	for (int k = 0; k < i->dlpi_phnum; k++)
		if (i->dlpi_phdr[k].p_type == PT_LOAD)
			rt_size = i->dlpi_phdr[k].p_vaddr + i->dlpi_phdr[k].p_memsz;
	return 1;
}

/* Not to be moved, as it uses gs, and so not part of what is. A log of some bytes at a time, until less than `left` of the chunk's 1 MiB are free */
static int __attribute__((noinline)) fill(const int *t, unsigned long left)
{
	unsigned long lp;
	int s = 0;

	do {
		s += lib_hook(t, s);
		__asm__ volatile("mov %%gs:0, %0" : "=r"(lp));
	} while ((1ul << 20) - (lp & ((1ul << 20) - 1)) > left);
	return s;
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	static int table[16] = {3, 14, 15, 92, 65, 35, 89, 79, 32, 38, 46, 26, 43, 38, 32, 79};
	long s;

	dl_iterate_phdr(runtime, NULL);
	pid = getpid();
	if (!make())
		return 2;
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	if (lib_tail(table, 1) + lib_hook(table, 1) != 31) /* slots are bound */
		return 2;
	if (argc > 2 && !strcmp(argv[1], "full") && !fill(table, strtoul(argv[2], NULL, 10)))
		return 2;
	s = calls(table);
	for (int k = 0; k < SIGNALS; k++)
		bad |= at[k] - rt_lo < rt_size;
	printf("%ld\n", s);
	if (bad)
		printf("wrong state in the handler, or after it\n");
	return bad ? 4 : 0;
}
