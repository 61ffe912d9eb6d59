// SPDX-License-Identifier: MIT
// BREAKS: clone by hand: the child comes out of the system call with a stack its parent wrote nothing on but
// what the child pops, the parent's fs base, and no library function that knows of it. Twice: with the
// registers the child needs in callee-saved registers, and on its stack.
// BUILD: cc -O2
// VARIANTS: clang
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>

#include "check.h"

#define FLAGS                                                                                                \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |                  \
	 CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

long raw_clone(unsigned long flags, void *stack, int *ptid, int *ctid, void (*fn)(void *), void *arg);
long raw_clone_popped(unsigned long flags, void *stack, int *ptid, int *ctid);
__asm__(".text\n"
	".globl raw_clone\n"
	".type raw_clone, @function\n"
	"raw_clone: .cfi_startproc\n"
	"mov %rcx, %r10\n" /* the kernel's fourth argument */
	"push %r12; push %r13; mov %r8, %r12; mov %r9, %r13\n"
	"xor %r8d, %r8d\n" /* tls: not asked for */
	"mov $56, %eax; syscall\n"
	"test %eax, %eax; jnz 1f\n"
	"xor %ebp, %ebp\n"
	"mov %r13, %rdi; call *%r12\n"
	"mov $60, %eax; xor %edi, %edi; syscall; hlt\n"
	"1: pop %r13; pop %r12; ret\n"
	".cfi_endproc\n"
	".size raw_clone, . - raw_clone\n"
	".globl raw_clone_popped\n"
	".type raw_clone_popped, @function\n"
	"raw_clone_popped: .cfi_startproc\n"
	"mov %rcx, %r10\n"
	"mov $56, %eax; syscall\n"
	"test %eax, %eax; jnz 1f\n"
	"pop %rax; pop %rdi; call *%rax\n"
	"mov $60, %eax; xor %edi, %edi; syscall; hlt\n"
	"1: ret\n"
	".cfi_endproc\n"
	".size raw_clone_popped, . - raw_clone_popped\n");

static _Alignas(16) char stack[65536];
static unsigned result;
static int tid, ptid;

/* No TLS here: fs is the parent's, which waits. */
static void child(void *arg)
{
	result = work((unsigned)(long)arg, 500);
}

static void wait_for(long made)
{
	int v;

	CHECK(made > 0 && ptid == made);
	while ((v = __atomic_load_n(&tid, __ATOMIC_ACQUIRE)))
		syscall(SYS_futex, &tid, FUTEX_WAIT, v, NULL, NULL, 0);
}

int main(void)
{
	void **sp = (void **)(stack + sizeof(stack));
	unsigned a;
	long r;

	tid = -1;
	r = raw_clone(FLAGS, sp, &ptid, &tid, child, (void *)7l);
	wait_for(r);
	a = result;
	CHECK(a == work(7, 500));
	tid = -1;
	*--sp = NULL; /* the call leaves rsp a multiple of 16 */
	*--sp = NULL;
	*--sp = (void *)8l;
	*--sp = (void *)child;
	r = raw_clone_popped(FLAGS, sp, &ptid, &tid);
	wait_for(r);
	CHECK(result == work(8, 500));
	printf("thr_clone_raw %x %x\n", a, result);
	return 0;
}
