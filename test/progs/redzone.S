// SPDX-License-Identifier: MIT
// BREAKS: anything inserted that pushes, calls or clobbers below rsp: leaf functions keep live data there.
// BUILD: cc
	.text
	.type	leaf, @function
leaf:	.cfi_startproc
	mov	%rdi, -8(%rsp)
	mov	%rsi, -16(%rsp)
	movups	%xmm0, -128(%rsp)
	lea	-128(%rsp), %rax
	mov	$10, %ecx
1:	add	%rcx, -24(%rsp)
	mov	-8(%rsp), %rdx
	xor	%rdx, -16(%rsp)
	dec	%ecx
	jnz	1b
	mov	-16(%rsp), %rax
	add	-8(%rsp), %rax
	add	-128(%rsp), %rax
	ret
	.cfi_endproc
	.size	leaf, . - leaf

	.globl	main
	.type	main, @function
main:	.cfi_startproc
	push	%rbx
	.cfi_def_cfa_offset 16
	xor	%ebx, %ebx
	pcmpeqd	%xmm0, %xmm0
	mov	$100, %edi
	mov	$7, %esi
	call	leaf
	add	%rax, %rbx
	mov	%rbx, %rdi
	mov	$9, %esi
	call	leaf
	mov	%rax, %rsi
	lea	fmt(%rip), %rdi
	xor	%eax, %eax
	call	printf@PLT
	xor	%eax, %eax
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	main, . - main
	.section .rodata
fmt:	.asciz	"redzone %ld\n"
	.section .note.GNU-stack, "", @progbits
