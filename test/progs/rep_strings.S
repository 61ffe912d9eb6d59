// SPDX-License-Identifier: MIT
// BREAKS: rep counts: zero, one, early end by ZF, direction flag, 16/32/64-bit elements, counts and
// pointers left in rcx/rsi/rdi afterwards.
// BUILD: cc
	.text
	.globl	main
	.type	main, @function
main:	.cfi_startproc
	push	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	push	%r12
	.cfi_def_cfa_offset 24
	sub	$8, %rsp
	.cfi_def_cfa_offset 32
	lea	a(%rip), %rbx
	lea	b(%rip), %r12
	cld
	mov	%rbx, %rsi
	mov	%r12, %rdi
	mov	$100, %ecx
	rep movsb
	mov	(%rsi), %al
	mov	%al, (%rdi)
	xor	%ecx, %ecx
	rep movsb
	rep stosq
	rep lodsl
	repe cmpsb
	repne scasw
	mov	%rbx, %rsi
	mov	%r12, %rdi
	mov	$13, %ecx
	rep movsq
	mov	(%rdi), %eax
	mov	%rbx, %rdi
	mov	$0x01020304, %eax
	mov	$9, %ecx
	rep stosl
	mov	$3, %ecx
	rep stosw
	stosb
	lodsb
	movsl
	mov	%rbx, %rsi
	mov	%r12, %rdi
	mov	$300, %ecx
	repe cmpsb
	mov	(%rsi,%rcx), %dl
	mov	%rbx, %rdi
	xor	%eax, %eax
	mov	$-1, %rcx
	repne scasb
	not	%rcx
	mov	(%rbx,%rcx), %dl
	mov	%r12, %rsi
	mov	$5, %ecx
	rep lodsq
	std
	lea	200(%rbx), %rsi
	lea	208(%rbx), %rdi
	mov	$20, %ecx
	rep movsq
	mov	$7, %ecx
	rep stosl
	mov	$4, %ecx
	repne scasw
	cmpsq
	cld
	mov	$5, %ecx
2:	movsb
	loop	2b
	xor	%eax, %eax
	xor	%ecx, %ecx
3:	movzbl	(%rbx,%rcx), %edx
	rol	$3, %eax
	add	%edx, %eax
	inc	%ecx
	cmp	$256, %ecx
	jb	3b
	mov	%eax, %esi
	lea	fmt(%rip), %rdi
	xor	%eax, %eax
	call	printf@PLT
	xor	%eax, %eax
	add	$8, %rsp
	.cfi_def_cfa_offset 24
	pop	%r12
	.cfi_def_cfa_offset 16
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	main, . - main
	.data
	.balign	64
a:	.fill	64, 4, 0x61626364
	.skip	64
b:	.fill	64, 4, 0x61626364
	.skip	256
	.section .rodata
fmt:	.asciz	"rep_strings %u\n"
	.section .note.GNU-stack, "", @progbits
