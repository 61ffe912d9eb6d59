/* SPDX-License-Identifier: MIT
 *
 * kinds.c - a program with every way in which control goes on, for ptsim: no libc, the same instructions in every run
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>

static long call(long nr, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = -1; /* mmap's */
	register long r9 __asm__("r9") = 0;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}

static volatile long sum;

__attribute__((noinline)) static long recurse(long n)
{
	return n ? 1 + recurse(n - 1) : sum;
}

static void fa(void)
{
	sum += 1;
}

static void fb(void)
{
	sum += 2;
}

static void (*volatile const fn[2])(void) = {fa, fb};

__attribute__((noinline)) static long table(unsigned i)
{
	switch (i) {
	case 0:
		return sum + 5;
	case 1:
		return sum ^ 3;
	case 2:
		return sum * 7;
	case 3:
		return sum - 1;
	case 4:
		return sum << 1;
	case 5:
		return sum >> 1;
	default:
		return 0;
	}
}

static void odd(void)
{
	static char from[100], to[100];
	static uint64_t word = 0x1122334455667788;

	__asm__ volatile("mov $5, %%ecx\n1: add %%rcx, %%rax\n loop 1b\n" /* loops */
			 "mov $5, %%ecx\n2: cmp $3, %%ecx\n loopne 2b\n"
			 "mov $5, %%ecx\n3: cmp %%eax, %%eax\n loope 3b\n"
			 "xor %%ecx, %%ecx\n jrcxz 4f\n nop\n4: jecxz 5f\n ud2\n5:\n"
			 "mov $1, %%rcx\n jrcxz 6f\n nop\n6:\n"
			 "call 7f\n7: pop %%rax\n" /* a call to the next instruction */
			 "lea 8f(%%rip), %%rax\n push %%rax\n ret\n8:\n" /* a return without a call */
			 "call 9f\n jmp 10f\n9: ret\n10:\n"
			 "call 11f\n nop\n jmp 12f\n11: incq (%%rsp)\n ret\n12:\n" /* a return elsewhere */
			 "pushf\n pop %%rax\n test $0x100, %%eax\n jnz 99f\n"
			 "mov %%ss, %%eax\n mov %%eax, %%ss\n nop\n"
			 "xor %%eax, %%eax\n cpuid\n rdtsc\n pause\n mov $0x12345678, %%eax\n mov $9, %%ecx\n"
			 "ptwrite %%rax\n ptwritel %%ecx\n ptwriteq (%[w])\n ptwritel 4(%[w])\n"
			 "jmp 13f\n99: ud2\n13:\n"
			 :
			 : [w] "r"(&word)
			 : "rax", "rcx", "rdx", "rbx", "cc", "memory");
	__asm__ volatile("rep movsb" : : "S"(from), "D"(to), "c"(100L) : "memory");
	__asm__ volatile("mov %%rsi, %%rsi\n push %%rcx\n rep movsb\n pop %%rcx\n repne scasb"
			 :
			 : "S"(from), "D"(to), "c"(0L), "a"(0L)
			 : "memory");
}

__attribute__((naked)) static void restorer(void)
{
	__asm__("mov $15, %eax\n syscall");
}

static void handler(int sig, siginfo_t *si, void *uc)
{
	uint64_t *regs = (uint64_t *)((char *)uc + 40); /* r8 … rip, asm/sigcontext.h */

	(void)si;
	sum += sig;
	if (sig == SIGSEGV || sig == SIGILL)
		regs[16] += 2; /* both are 2 bytes here */
}

static void signals(void)
{
	struct {
		void (*h)(int, siginfo_t *, void *);
		unsigned long flags;
		void (*restorer)(void);
		unsigned long mask;
	} sa = {handler, SA_SIGINFO | 0x04000000, restorer, 0};
	long pid = call(SYS_getpid, 0, 0, 0, 0);

	call(SYS_rt_sigaction, SIGSEGV, (long)&sa, 0, 8);
	call(SYS_rt_sigaction, SIGILL, (long)&sa, 0, 8);
	call(SYS_rt_sigaction, SIGTRAP, (long)&sa, 0, 8);
	call(SYS_rt_sigaction, SIGUSR1, (long)&sa, 0, 8);
	__asm__ volatile("xor %%eax, %%eax\n mov (%%rax), %%al\n nop" : : : "rax", "memory");
	__asm__ volatile("ud2");
	__asm__ volatile("int3");
	call(SYS_kill, pid, SIGUSR1, 0, 0);
	call(SYS_kill, pid, SIGTRAP, 0, 0);
}

/* Code that the program writes: run, changed, run. */
static void written(void)
{
	unsigned char *p = (unsigned char *)call(SYS_mmap, 0, 4096, 7, 0x22), *q;

	for (int i = 0; i < 3; i++) {
		p[0] = 0x83, p[1] = 0xc0, p[2] = (unsigned char)i; /* add $i, %eax */
		p[3] = 0xc3;
		__asm__ volatile("xor %%eax, %%eax\n call *%1\n add %%eax, %0"
				 : "+m"(sum)
				 : "r"(p)
				 : "rax", "cc");
	}
	q = (unsigned char *)call(SYS_mmap, 0, 4096, 3, 0x22);
	for (int i = 0; i < 3; i++) { /* as a loader does */
		call(SYS_mprotect, (long)q, 4096, 3, 0);
		q[0] = 0x83, q[1] = 0xc0, q[2] = 7;
		q[3] = 0x74, q[4] = 0; /* je over nothing */
		q[5] = 0xc3;
		call(SYS_mprotect, (long)q, 4096, 5, 0);
		__asm__ volatile("xor %%eax, %%eax\n call *%1\n add %%eax, %0"
				 : "+m"(sum)
				 : "r"(q)
				 : "rax", "cc");
	}
}

static void body(void)
{
	for (int i = 0; i < 4; i++)
		fn[i & 1]();
	for (unsigned i = 0; i < 7; i++)
		sum += table(i % 6);
	sum += recurse(100);
	odd();
	signals();
	written();
	for (int i = 0; i < 300; i++)
		sum += sum & i ? 1 : 2;
	call(SYS_exit_group, 0, 0, 0, 0);
}

__attribute__((naked)) void _start(void)
{
	__asm__("and $-16, %%rsp\n call %P0\n ud2" : : "i"(body));
}
