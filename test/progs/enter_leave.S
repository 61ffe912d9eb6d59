// SPDX-License-Identifier: MIT
// BREAKS: enter with nesting levels, leave, and ret imm16 (the callee pops its arguments).
// BUILD: cc
	.text
	.type	nested, @function
nested:	.cfi_startproc
	enter	$32, $0
	mov	%rdi, -8(%rbp)
	enter	$16, $1
	enter	$8, $3
	mov	-8(%rbp), %rax
	mov	%rsi, -16(%rbp)
	leave
	leave
	mov	-8(%rbp), %rax
	leave
	ret
	.cfi_endproc
	.size	nested, . - nested
	.type	pops, @function
pops:	.cfi_startproc
	mov	8(%rsp), %rax
	sub	16(%rsp), %rax
	ret	$16
	.cfi_endproc
	.size	pops, . - pops
	.globl	main
	.type	main, @function
main:	.cfi_startproc
	push	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	push	%rbx
	.cfi_def_cfa_offset 24
	.cfi_offset %rbx, -24
	push	%r12
	.cfi_def_cfa_offset 32
	xor	%ebx, %ebx
	mov	$6, %r12d
1:	mov	%r12, %rdi
	call	nested
	add	%rax, %rbx
	push	%rbx
	push	%r12
	call	pops
	add	%rax, %rbx
	dec	%r12
	jnz	1b
	mov	%rbx, %rsi
	lea	fmt(%rip), %rdi
	xor	%eax, %eax
	call	printf@PLT
	xor	%eax, %eax
	pop	%r12
	.cfi_def_cfa_offset 24
	pop	%rbx
	.cfi_def_cfa_offset 16
	pop	%rbp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	main, . - main
	.section .rodata
fmt:	.asciz	"enter_leave %ld\n"
	.section .note.GNU-stack, "", @progbits
