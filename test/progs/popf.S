// SPDX-License-Identifier: MIT
// BREAKS: flags that come from memory others may have written: the direction of a string instruction after
// popf, loope and loopne on flags of before a popf, jrcxz on a count from memory.
// BUILD: cc
// UNTRACED: 0
	.text
	.type	setdf, @function
setdf:	.cfi_startproc			/* changes what its caller has pushed */
	xorl	$0x400, (%rdi)
	ret
	.cfi_endproc
	.size	setdf, . - setdf
/* what popf takes lies where rsp says alone: in no slot of the frame */
	.type	nowhere, @function
nowhere: .cfi_startproc
	push	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	mov	count(%rip), %eax
	shl	$4, %eax
	sub	%rax, %rsp
	mov	count(%rip), %edx
6:	pushf
	test	$1, %dl
	jz	7f
	xorl	$0x400, (%rsp)
7:	lea	buf+64(%rip), %rdi
	lea	buf+32(%rip), %rsi
	mov	$2, %ecx
	popf
	rep movsl
	cld
	dec	%edx
	jnz	6b
	leave
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size	nowhere, . - nowhere
	.globl	main
	.type	main, @function
main:	.cfi_startproc
	push	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	push	%r15
	.cfi_def_cfa_offset 24
	push	%r12
	.cfi_def_cfa_offset 32
	xor	%ebx, %ebx
	mov	$4, %r12d
	lea	far(%rip), %r15
	call	nowhere
1:	pushf
	.cfi_adjust_cfa_offset 8
	mov	%rsp, %rdi
	test	$1, %r12b
	jz	2f
	call	setdf
2:	lea	buf+64(%rip), %rdi
	lea	buf+32(%rip), %rsi
	mov	$3, %ecx
	popf
	.cfi_adjust_cfa_offset -8
	rep movsl
	lodsb
	cld
	add	%al, %bl
	/* loopne, loope: ZF is what the popf says */
	mov	count(%rip), %ecx
	cmp	$3, %r12d
	pushf
	.cfi_adjust_cfa_offset 8
	mov	%rsp, %rdi
	call	keep
	popf
	.cfi_adjust_cfa_offset -8
3:	lea	(%r15,%rcx,4), %rax
	mov	(%rax), %edx
	loopne	3b
	add	%ecx, %ebx
	mov	count(%rip), %ecx
	pushf
	.cfi_adjust_cfa_offset 8
	mov	%rsp, %rdi
	call	keep
	popf
	.cfi_adjust_cfa_offset -8
4:	incl	n(%rip)
	loope	4b
	add	%ecx, %ebx
	mov	zero(%rip), %rcx
	jrcxz	5f
	incl	n(%rip)
5:	xorq	$1, zero(%rip)
	dec	%r12d
	jnz	1b
	mov	n(%rip), %edx
	mov	%ebx, %esi
	lea	fmt(%rip), %rdi
	xor	%eax, %eax
	call	printf@PLT
	xor	%eax, %eax
	pop	%r12
	.cfi_def_cfa_offset 24
	pop	%r15
	.cfi_def_cfa_offset 16
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	main, . - main
	.type	keep, @function
keep:	.cfi_startproc
	mov	(%rdi), %rax
	mov	%rax, (%rdi)
	ret
	.cfi_endproc
	.size	keep, . - keep
	.data
	.balign	8
zero:	.quad	0
count:	.long	5
n:	.long	0
buf:	.ascii	"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz01234567890ABCDEF"
far:	.space	64
	.section .rodata
fmt:	.asciz	"popf %d %d\n"
	.section .note.GNU-stack, "", @progbits
