// SPDX-License-Identifier: MIT
// BREAKS: flags live where they rarely are: an adc chain over a loop back edge (lea/dec keep CF), lahf and
// sahf, pushf/popf, jrcxz and loop, DF, flags across a jmp and over stores.
// BUILD: cc
#include "main.h"
	.text
	.type	bigadd, @function
bigadd:	.cfi_startproc			/* rdi += rsi, rdx words */
	xor	%ecx, %ecx
	clc
1:	mov	(%rsi,%rcx,8), %rax
	adc	%rax, (%rdi,%rcx,8)
	inc	%rcx
	dec	%rdx
	jnz	1b
	setc	%al
	movzbl	%al, %eax
	ret
	.cfi_endproc
	.size	bigadd, . - bigadd
	.type	odd, @function
odd:	.cfi_startproc
	mov	%rdi, %rcx
	xor	%eax, %eax
	jrcxz	3f
2:	add	(%rsi), %eax
	lahf
	mov	%ah, (%rsi,%rcx)
	loop	2b
3:	cmp	%edi, %eax
	lahf
	mov	8(%rsi), %edx
	sahf
	jbe	4f
	mov	$1, %edx
4:	jmp	5f
5:	mov	%edx, 12(%rsi)
	setbe	16(%rsi)
	cmovbe	8(%rsi), %eax
	pushf
	xor	%edx, %edx
	popf
	adc	$0, %edx
	loopne	6f
6:	lea	(%rax,%rdx), %eax
	ret
	.cfi_endproc
	.size	odd, . - odd
	MAIN
	lea	a(%rip), %rdi
	lea	b(%rip), %rsi
	mov	$8, %edx
	call	bigadd
	mov	%eax, %ebx
	xor	%edi, %edi
	lea	b(%rip), %rsi
	call	odd
	add	%eax, %ebx
	mov	$5, %edi
	call	odd
	add	%eax, %ebx
	cmp	$1, %ebx
	mov	a(%rip), %rax
	mov	%rax, c(%rip)
	sbb	$3, %ebx
	bt	$3, %ebx
	rclq	c(%rip)
	adc	%ebx, %ebx
	mov	%ebx, %esi
	PRINT
	.data
	.balign	8
a:	.quad	-1, -1, 5, -1, -1, 0, 7, -1
b:	.quad	1, 0, -6, -1, 3, 4, 5, 6, 7, 8
c:	.quad	0
	.section .rodata
fmt:	.asciz	"flags_odd %x\n"
	.section .note.GNU-stack, "", @progbits
