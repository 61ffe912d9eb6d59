// SPDX-License-Identifier: MIT
// BREAKS: untraced code that takes the arguments, in its caller's frame and so above its own return address, for its stack
// and calls from there, as libffi does: twice, nested, left by longjmp; a thread is started and a process made within.
// BUILD: cc -O2 -pthread
// VARIANTS: O0 clang
// THREADS: 4
#include <pthread.h>
#include <setjmp.h>
#include <sys/wait.h>

#include "check.h"

// int n is not copied: what it does only the kernel knows
long on_area(char *area, long (*fn)(long), long arg);
__asm__(".text\n"
	".type on_area, @function\n"
	"on_area: .cfi_startproc\n"
	"test %rdi, %rdi; jz 1f\n"
	"lea 256(%rdi), %rax\n"
	"mov (%rsp), %r10\n"
	"mov %rbp, (%rax); mov %r10, 8(%rax); mov %rsp, 16(%rax); mov %rsi, 24(%rax)\n"
	"mov %rax, %rbp\n"
	"lea 192(%rdi), %rsp\n"
	"mov %rdx, %rdi; call *%rsi\n"
	"mov %rax, %rdi; call *24(%rbp)\n"
	"mov 8(%rbp), %r10; mov 16(%rbp), %rsp; mov %r10, (%rsp)\n" // what it called has written there
	"mov (%rbp), %rbp; ret\n"
	"1: int $0x81; ret\n"
	".cfi_endproc\n"
	".size on_area, . - on_area\n");

static jmp_buf env;
static int depth;

static __attribute__((noinline)) long invoke(long (*fn)(long), long arg)
{
	char area[512] __attribute__((aligned(16)));

	work((unsigned)arg, 3);
	return on_area(area, fn, arg) * 3 + work((unsigned)arg, 5) % 7;
}

static long leaf(long x)
{
	unsigned v[16];

	for (int i = 0; i < 16; i++)
		v[i] = work((unsigned)x + (unsigned)i, 2);
	return v[v[3] % 16] % 1000 + x % 1000;
}

static long nest(long x)
{
	long r;

	if (depth == 5)
		return leaf(x);
	depth++;
	r = invoke(nest, x + 1) % 10007;
	depth--;
	return r;
}

static long leave(long x)
{
	if (x > 6)
		longjmp(env, (int)x);
	return invoke(leave, x + 3) % 100;
}

static void *thread(void *p)
{
	return (void *)invoke(nest, (long)p);
}

static long starts(long x)
{
	pthread_t t;
	void *r;

	CHECK(!pthread_create(&t, NULL, thread, (void *)x) && !pthread_join(t, &r));
	return (long)r % 10007;
}

static long forks(long x)
{
	int status;
	pid_t pid;

	if (depth++)
		return leaf(x);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		return leaf(x) % 100;
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return leaf(x) % 100 + WEXITSTATUS(status);
}

int main(void)
{
	volatile long s = invoke(leaf, 1);
	pid_t me = getpid();

	s = s * 3 + invoke(nest, 2);
	for (volatile int i = 0; i < 3; i++)
		if (!setjmp(env))
			s += invoke(leave, i);
		else
			s = s * 3 + invoke(leaf, i);
	s = s * 3 + invoke(starts, 4);
	depth = 0;
	s = s * 3 + invoke(forks, 5);
	if (getpid() != me)
		_exit((int)(s & 63));
	printf("stk_args_area %lx\n", s);
	return 0;
}
