// SPDX-License-Identifier: MIT
// BREAKS: a switch that only calls: what is between two calls is a return site of two bytes and a jump's target of
// three, all of which the shortest jumps take, so nothing is left for the islands that those lead to.
// BUILD: cc
// UNTRACED: 0
#include "main.h"
	.macro	CASE n, far
.Lcase\n:
	mov	%r12, %rdi
	call	add\n
	.ifnb	\far	/* a return site of five bytes, as behind the first 12 cases */
	.byte	0xe9
	.long	.Lend - . - 4
	.else
	jmp	.Lend
	.endif
	.endm
	.macro	FUN n
	.globl	add\n
	.type	add\n, @function
add\n:	.cfi_startproc
	mov	(%rdi), %rax
	lea	\n(%rax,%rax,2), %rax
	mov	%rax, (%rdi)
	ret
	.cfi_endproc
	.size	add\n, . - add\n
	.p2align 4
	.endm
	.text
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19
	FUN	\n
	.endr
	.globl	pick
	.type	pick, @function
pick:	.cfi_startproc
	push	%r12
	.cfi_def_cfa_offset 16
	.cfi_offset %r12, -16
	mov	%rsi, %r12
	cmp	$19, %edi
	ja	.Lend
	lea	.Ltable(%rip), %rdx
	movslq	(%rdx,%rdi,4), %rax
	add	%rdx, %rax
	jmp	*%rax
	.irp	n, 0, 1, 2, 3, 4
	CASE	\n far
	.endr
.Lend:	pop	%r12
	.cfi_def_cfa_offset 8
	ret
	.cfi_def_cfa_offset 16
	.irp	n, 5, 6, 7, 8, 9, 10, 11
	CASE	\n
	.endr
	.irp	n, 12, 13, 14, 15, 16, 17, 18, 19
	CASE	\n far
	.endr
	.cfi_endproc
	.size	pick, . - pick
	MAIN
	mov	$61, %ebx
1:	mov	%ebx, %eax
	xor	%edx, %edx
	mov	$21, %ecx
	div	%ecx
	mov	%edx, %edi
	lea	n(%rip), %rsi
	call	pick
	dec	%ebx
	jnz	1b
	PRINT_N
	.bss
	.balign	8
n:	.quad	0
	.section .rodata
	.balign	4
.Ltable:
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19
	.long	.Lcase\n - .Ltable
	.endr
fmt:	.asciz	"jt_calls %lx\n"
	.section .note.GNU-stack, "", @progbits
