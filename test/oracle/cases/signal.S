/* SPDX-License-Identifier: MIT
 * Signals: a faulting access counts once, when it completes; the handler's own come
 * before it; int3 belongs to the program; an ignored signal swallows no instruction. */
#include "expect.inc"
	.macro	SYS nr, a=0, b=0, c=0, d=0
	mov	$\nr, %eax
	mov	$\a, %edi
	mov	$\b, %esi
	mov	$\c, %edx
	mov	$\d, %r10d
	syscall
	.endm

	START
	SYS	13, 11, act_segv, 0, 8		/* rt_sigaction */
	SYS	13, 5, act_trap, 0, 8
	SYS	10, guard, 4096, 0		/* mprotect: no access */
9:	mov	guard+8, %rcx
	XAT in_segv, W, count, 4
	X R, guard+8, 8
	int3
	XAT in_trap, W, count+4, 4
9:	mov	8(%rbx), %rcx
	X R, data+8, 8
	/* SIGCHLD to itself: ignored. */
	mov	$39, %eax
	syscall
	mov	%eax, %edi
	mov	$62, %eax
	mov	$17, %esi
	syscall
9:	mov	16(%rbx), %rcx
	X R, data+16, 8
	EXIT

	/* The frame's address depends on the processor's register state size, so the
	 * handlers make no access to the stack: sigreturn without ret. */
segv:
in_segv:
	movl	$1, count
	SYS	10, guard, 4096, 3
	jmp	out
trap:
in_trap:
	movl	$1, count+4
out:	add	$8, %rsp
	mov	$15, %eax
	syscall
	.data
	.balign	8
act_segv: .quad	segv, 0x4000000, out, 0
act_trap: .quad	trap, 0x4000000, out, 0
count:	.quad	0
	.bss
	.balign	4096
guard:	.skip	4096
