// SPDX-License-Identifier: MIT
// BREAKS: branches through r15 and through the stack: call *%r15, jmp *%r15, jmp *(%r15,%rax,8),
// call *(%r15), call *(%rsp), jmp *(%rsp), and push/ret as a jump.
// BUILD: cc
	.text
	.type	inc, @function
inc:	.cfi_startproc
	add	$1, %rbx
	ret
	.cfi_endproc
	.size	inc, . - inc
	.type	triple, @function
triple:	.cfi_startproc
	lea	(%rbx,%rbx,2), %rbx
	ret
	.cfi_endproc
	.size	triple, . - triple

	.globl	main
	.type	main, @function
main:	.cfi_startproc
	push	%r15
	.cfi_def_cfa_offset 16
	.cfi_offset %r15, -16
	push	%rbx
	.cfi_def_cfa_offset 24
	.cfi_offset %rbx, -24
	push	%rbp
	.cfi_def_cfa_offset 32
	mov	$1, %ebx
	lea	inc(%rip), %r15
	call	*%r15
	call	*%r15
	lea	funcs(%rip), %r15
	call	*(%r15)
	call	*8(%r15)
	mov	$1, %eax
	call	*(%r15,%rax,8)
	lea	triple(%rip), %rax
	push	%rax
	call	*(%rsp)
	pop	%rax
	xor	%ebp, %ebp
loop:	lea	labels(%rip), %r15
	movslq	(%r15,%rbp,4), %rax
	add	%r15, %rax
	mov	%rax, %r15
	jmp	*%r15
case0:	call	inc
	jmp	next
case1:	call	triple
	jmp	next
case2:	lea	back(%rip), %rax
	push	%rax
	ret
back:	add	$5, %rbx
next:	inc	%ebp
	cmp	$3, %ebp
	jb	loop
	lea	ptrs(%rip), %r15
	mov	$1, %eax
	jmp	*(%r15,%rax,8)
p0:	ud2
p1:	add	$100, %rbx
	lea	p2(%rip), %rax
	push	%rax
	jmp	*(%rsp)
p2:	pop	%rax
	lea	fmt(%rip), %rdi
	mov	%rbx, %rsi
	xor	%eax, %eax
	call	printf@PLT
	xor	%eax, %eax
	pop	%rbp
	.cfi_def_cfa_offset 24
	pop	%rbx
	.cfi_def_cfa_offset 16
	pop	%r15
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	main, . - main
	.section .data.rel.ro, "aw"
	.balign	8
funcs:	.quad	inc, triple
ptrs:	.quad	p0, p1
	.section .rodata
	.balign	4
labels:	.long	case0 - labels, case1 - labels, case2 - labels
fmt:	.asciz	"r15_branch %ld\n"
	.section .note.GNU-stack, "", @progbits
