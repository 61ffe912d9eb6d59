// SPDX-License-Identifier: MIT
// BREAKS: targets of nine bytes in a row, of which a jump leaves four, and some of two among them (C++ landing pads in cold
// text, cmake's): no island is in reach but by way of what the others leave.
// BUILD: cc
// UNTRACED: 0
#include "main.h"
	.macro	CASES n		/* 9 bytes each */
	.rept	\n
	addq	$word, (%rsi)
	.byte	0xe9
	.long	.Lend - . - 4
	.set	word, word + 2
	.endr
	.endm
	.macro	PLACES n, from, size
	.set	at, 0
	.rept	\n
	.long	\from - .Ltable + at
	.set	at, at + \size
	.endr
	.endm
	.set	word, 1
	.text
	.globl	pick
	.type	pick, @function
pick:	.cfi_startproc
	cmp	$69, %edi
	ja	.Lout
	lea	.Ltable(%rip), %rcx
	movslq	(%rcx,%rdi,4), %rax
	add	%rcx, %rax
	jmp	*%rax
	.p2align 4
.Lend:	mov	(%rsi), %rax
	lea	(%rax,%rax,2), %rax
	mov	%rax, (%rsi)
.Lout:	ret
.Lcases: CASES	30
.Lrow:	.rept	10
	jmp	.Lcases2
	.endr
.Lcases2: CASES	30
	.cfi_endproc
	.size	pick, . - pick
	MAIN
	mov	$141, %ebx
1:	mov	%ebx, %eax
	xor	%edx, %edx
	mov	$71, %ecx
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
	PLACES	30, .Lcases, 9
	PLACES	10, .Lrow, 2
	PLACES	30, .Lcases2, 9
fmt:	.asciz	"jt_rows %lx\n"
	.section .note.GNU-stack, "", @progbits
