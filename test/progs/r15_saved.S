// SPDX-License-Identifier: MIT
// BREAKS: r15 as an ordinary callee-saved register held across calls, while a tracer keeps its own
// pointer in it.
// BUILD: cc
	.text
	.type	clobber, @function
clobber:
	.cfi_startproc
	push	%r15
	.cfi_def_cfa_offset 16
	.cfi_offset %r15, -16
	push	%r14
	.cfi_def_cfa_offset 24
	mov	%rdi, %r15
	lea	(%r15,%r15,2), %r14
	mov	%r14, %rax
	xor	%r15d, %r15d
	pop	%r14
	.cfi_def_cfa_offset 16
	pop	%r15
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	clobber, . - clobber

	.globl	main
	.type	main, @function
main:	.cfi_startproc
	push	%r15
	.cfi_def_cfa_offset 16
	push	%r14
	.cfi_def_cfa_offset 24
	push	%rbx
	.cfi_def_cfa_offset 32
	mov	$20, %r15d
	lea	buf(%rip), %rbx
	xor	%r14d, %r14d
1:	mov	%r15, %rdi
	call	clobber
	add	%rax, %r14
	mov	%r14, -8(%rbx,%r15,8)
	mov	%r15, %rdi
	call	labs@PLT
	cmp	%r15, %rax
	jne	2f
	dec	%r15
	jnz	1b
	mov	buf(%rip), %rdx
	mov	%r14, %rsi
	lea	fmt(%rip), %rdi
	xor	%eax, %eax
	call	printf@PLT
	xor	%eax, %eax
	jmp	3f
2:	mov	$1, %eax
3:	pop	%rbx
	.cfi_def_cfa_offset 24
	pop	%r14
	.cfi_def_cfa_offset 16
	pop	%r15
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	main, . - main
	.bss
	.balign	8
buf:	.skip	160
	.section .rodata
fmt:	.asciz	"r15_saved %ld %ld\n"
	.section .note.GNU-stack, "", @progbits
