// SPDX-License-Identifier: MIT
// BREAKS: a function that is only called directly and starts with a loop over r15: the loop that keeps r15 in
// another register must be entered with it there.
// BUILD: cc
	.macro	FN name
	.type	\name, @function
\name:	.cfi_startproc
	.endm
	.macro	END name
	.cfi_endproc
	.size	\name, . - \name
	.endm
	.text
	/* rsi: rounds. Its entry is the head of its loop; r15 is an array's address, and moves. */
	FN sum
	addq	(%r15), %rax
	add	$8, %r15
	add	%r15, %rdx
	dec	%rsi
	jne	sum
	ret
	END sum
	FN twice
	call	sum
	mov	$3, %esi
	call	sum
	movq	-8(%r15), %rcx
	ret
	END twice
	.globl	main
	.type	main, @function
main:	.cfi_startproc
	push	%r15
	.cfi_adjust_cfa_offset 8
	push	%rbx
	.cfi_adjust_cfa_offset 8
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	mov	$50, %ebx
1:	lea	array(%rip), %r15
	mov	$5, %esi
	xor	%eax, %eax
	call	twice
	cmp	$36, %rax	/* 1 to 8 */
	jne	bad
	cmp	$8, %rcx
	jne	bad
	lea	array+64(%rip), %rdx
	cmp	%rdx, %r15
	jne	bad
	dec	%ebx
	jne	1b
	xor	%eax, %eax
2:	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	pop	%r15
	.cfi_adjust_cfa_offset -8
	ret
bad:	mov	$1, %eax
	.cfi_adjust_cfa_offset 24
	jmp	2b
	.cfi_endproc
	.size	main, . - main
	.section .rodata
	.balign 8
array:	.quad	1, 2, 3, 4, 5, 6, 7, 8
	.section .note.GNU-stack, "", @progbits
