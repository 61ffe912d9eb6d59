// SPDX-License-Identifier: MIT
// BREAKS: a function that falls through its end, over padding, into the next one (libc's __*_chk), and calls
// and jumps into the middle of a function.
// BUILD: cc
#include "main.h"
	.text
	.globl	checked
	.type	checked, @function
checked:
	.cfi_startproc
	cmp	%rdx, %rcx
	jb	fail
	incl	n(%rip)
	.cfi_endproc
	.size	checked, . - checked
	.p2align 4
	.globl	plain
	.type	plain, @function
plain:	.cfi_startproc
	mov	(%rsi), %rax
	mov	%rax, (%rdi)
middle:	mov	8(%rdi), %rax
	add	%rdx, %rax
	ret
	.cfi_endproc
	.size	plain, . - plain
	.type	fail, @function
fail:	.cfi_startproc
	mov	$-1, %rax
	jmp	middle
	.cfi_endproc
	.size	fail, . - fail
	MAIN
	lea	buf(%rip), %rdi
	lea	8(%rdi), %rsi
	mov	$8, %edx
	mov	$16, %ecx
	call	checked
	mov	%rax, %rbx
	mov	$4, %ecx
	call	checked
	add	%rax, %rbx
	call	plain
	add	%rax, %rbx
	call	middle
	add	%rax, %rbx
	mov	%rbx, %rsi
	mov	n(%rip), %edx
	PRINT
	.data
	.balign	8
buf:	.quad	1, 2, 3
n:	.long	0
	.section .rodata
fmt:	.asciz	"fallthrough %ld %d\n"
	.section .note.GNU-stack, "", @progbits
