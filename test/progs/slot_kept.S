// SPDX-License-Identifier: MIT
// BREAKS: a frame whose address is in a callee-saved register across a call of which nobody can prove that it keeps that one
// (ruby's compiler of ensure and case): it does, and the address goes to who writes there. What the frame held before is then
// taken for what a branch tests.
// BUILD: cc
// UNTRACED: 0
#include "main.h"
	.text
	.type	keeps, @function
keeps:	.cfi_startproc		/* %r12, by way of memory */
	mov	%r12, kept(%rip)
	mov	n(%rip), %r12
	lea	1(%r12), %rax
	mov	%rax, n(%rip)
	mov	kept(%rip), %r12
	ret
	.cfi_endproc
	.size	keeps, . - keeps
	.type	writes, @function
writes:	.cfi_startproc
	mov	n(%rip), %rax
	and	$3, %eax
	lea	n(%rip), %rdx
	cmovz	%rdx, %rax
	mov	%rax, 8(%rdi)
	ret
	.cfi_endproc
	.size	writes, . - writes
	.type	holds, @function
holds:	.cfi_startproc
	push	%r12
	.cfi_def_cfa_offset 16
	.cfi_offset %r12, -16
	sub	$32, %rsp
	.cfi_def_cfa_offset 48
	pxor	%xmm0, %xmm0
	movaps	%xmm0, (%rsp)
	lea	(%rsp), %r12
	call	keeps
	mov	%r12, %rdi
	call	writes
	mov	8(%rsp), %rax
	test	%rax, %rax
	je	1f
	cmp	$3, %rax
	jbe	1f
	addq	$2, (%rax)
1:	add	$32, %rsp
	.cfi_def_cfa_offset 16
	pop	%r12
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	holds, . - holds
	MAIN
	mov	$40, %ebx
1:	call	holds
	dec	%ebx
	jnz	1b
	PRINT_N
	.bss
	.balign	8
n:	.quad	0
kept:	.quad	0
	.section .rodata
fmt:	.asciz	"slot_kept %lx\n"
	.section .note.GNU-stack, "", @progbits
