// SPDX-License-Identifier: MIT
// BREAKS: a switch whose cases load a constant and call through a pointer (libseccomp's tables of names): a return site
// of two bytes, a target of seven, of which five are taken, and a call of three between them. Only call and rest together
// are an island.
// BUILD: cc
// UNTRACED: 0
#include "main.h"
	.macro	CASES n, far	/* 12 bytes each; far: 15 */
	.rept	\n
	lea	words + word(%rip), %rdi
	call	*0x20(%rdx)
	.ifnb	\far
	.byte	0xe9
	.long	.Lend - . - 4
	.else
	jmp	.Lend
	.endif
	.set	word, word + 8
	.endr
	.endm
	.macro	PLACES n, from, size
	.set	at, 0
	.rept	\n
	.long	\from - .Ltable + at
	.set	at, at + \size
	.endr
	.endm
	.set	word, 0
	.text
	.globl	add
	.type	add, @function
add:	.cfi_startproc
	mov	n(%rip), %rax
	lea	(%rax,%rax,2), %rax
	add	(%rdi), %rax
	mov	%rax, n(%rip)
	ret
	.cfi_endproc
	.size	add, . - add
	.p2align 4
	.globl	pick
	.type	pick, @function
pick:	.cfi_startproc
	cmp	$39, %edi
	ja	.Lout
	lea	.Ltable(%rip), %rcx
	sub	$8, %rsp
	.cfi_def_cfa_offset 16
	mov	%rsi, %rdx
	movslq	(%rcx,%rdi,4), %rax
	add	%rcx, %rax
	jmp	*%rax
.Lfar:	CASES	10, far
.Lnear:	CASES	10
.Lend:	add	$8, %rsp
	.cfi_def_cfa_offset 8
.Lout:	ret
	.cfi_def_cfa_offset 16
.Lnear2: CASES	10
.Lfar2:	CASES	10, far
	.cfi_endproc
	.size	pick, . - pick
	MAIN
	mov	$81, %ebx
1:	mov	%ebx, %eax
	xor	%edx, %edx
	mov	$41, %ecx
	div	%ecx
	mov	%edx, %edi
	lea	how(%rip), %rsi
	call	pick
	dec	%ebx
	jnz	1b
	PRINT_N
	.bss
	.balign	8
n:	.quad	0
	.section .data.rel.ro, "aw"
	.balign	8
how:	.quad	0, 0, 0, 0, add
	.section .rodata
	.balign	8
words:	.set	i, 1
	.rept	40
	.quad	i
	.set	i, i + 3
	.endr
.Ltable:
	PLACES	10, .Lfar, 15
	PLACES	10, .Lnear, 12
	PLACES	10, .Lnear2, 12
	PLACES	10, .Lfar2, 15
fmt:	.asciz	"jt_icalls %lx\n"
	.section .note.GNU-stack, "", @progbits
