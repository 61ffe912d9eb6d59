// SPDX-License-Identifier: MIT
// notype_lib.S - notype.c's library: transfer is a symbol of no type, without unwind tables, called through the PLT (ruby's
// coroutine_transfer); all coroutines come back to the one return site in co_swap
	.text
	.globl	transfer
transfer:
	push	%rbp
	push	%rbx
	push	%r12
	mov	%rsp, (%rdi)
	mov	(%rsi), %rsp
	pop	%r12
	pop	%rbx
	pop	%rbp
	ret
	.p2align 4
	.globl	co_swap
	.type	co_swap, @function
co_swap:	.cfi_startproc
	sub	$8, %rsp
	.cfi_def_cfa_offset 16
	call	transfer@PLT
	add	$8, %rsp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	co_swap, . - co_swap
	.section .note.GNU-stack, "", @progbits
