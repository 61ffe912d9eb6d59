/* SPDX-License-Identifier: MIT
 *
 * main.h - how the assembly programs begin their main, in which rbx is theirs, and end it: printf(fmt, rsi); with n, a quadword
 */
	.macro	MAIN
	.globl	main
	.type	main, @function
main:	.cfi_startproc
	push	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	.endm
	.macro	PRINT
	lea	fmt(%rip), %rdi
	xor	%eax, %eax
	call	printf@PLT
	xor	%eax, %eax
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	main, . - main
	.endm
	.macro	PRINT_N
	mov	n(%rip), %rsi
	PRINT
	.endm
