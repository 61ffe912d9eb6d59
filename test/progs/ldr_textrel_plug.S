// SPDX-License-Identifier: MIT
// The library of ldr_textrel.c: absolute addresses as immediates of instructions.
	.text
	.globl	textrel
	.type	textrel, @function
textrel:
	.cfi_startproc
	movabs	$table, %rdx
	mov	%edi, %eax
	and	$3, %eax
	mov	(%rdx,%rax,4), %ecx
	add	(%rsi,%rax,4), %ecx
	movabs	$counter, %rdx
	add	%ecx, (%rdx)
	movabs	$helper, %rdx
	call	*%rdx
	ret
	.cfi_endproc
	.size	textrel, . - textrel

	.type	helper, @function
helper:
	.cfi_startproc
	movabs	$counter, %rdx
	mov	(%rdx), %eax
	ret
	.cfi_endproc
	.size	helper, . - helper

	.section .rodata
	.balign	16
table:	.long	3, 5, 7, 11
	.data
	.balign	16
counter: .long	0
	.section .note.GNU-stack, "", @progbits
