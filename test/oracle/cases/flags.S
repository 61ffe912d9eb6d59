/* SPDX-License-Identifier: MIT
 * What stepping must hide: the trap flag in pushf's image and in r11; mov ss. The
 * program checks itself and exits with status 9 when it sees a trace of the stepper. */
#include "expect.inc"
	START
9:	pushf
	X W, stack-8, 8
9:	testl	$0x100, (%rsp)
	X R, stack-8, 4
	jnz	bad
9:	popf
	X R, stack-8, 8
	mov	$39, %eax
	syscall
	test	$0x100, %r11d
	jnz	bad
	mov	%ss, %eax
9:	mov	%eax, (%rbx)
	X W, data, 4
9:	mov	(%rbx), %ss
	X R, data, 2
9:	mov	16(%rbx), %rax
	X R, data+16, 8
	mov	%ss, %eax
	mov	%eax, %ss
9:	pushf
	X W, stack-8, 8
9:	testl	$0x100, (%rsp)
	X R, stack-8, 4
	jnz	bad
	/* A jump to itself by way of memory must not look like a signal. */
	mov	$2, %ecx
9:	loop	9b
	EXIT
bad:
	mov	$231, %eax
	mov	$9, %edi
	syscall
