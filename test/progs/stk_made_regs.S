// SPDX-License-Identifier: MIT
// BREAKS: generated code that changes registers which the psABI has it keep, and callers written by hand that know: they use
// what they get. Code that leaves values on the stack, to a caller with a frame pointer that does not care.
// PT_ENV: PTRACE_PT_RETC=0
// BUILD: cc
	.text
	.type	gets, @function
gets:	.cfi_startproc		/* of rdi, with cells at rsi: moves rbx, rbp, r12 to r15 on by one cell each */
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	push	%rcx
	mov	%rsi, %rbx
	lea	64(%rsi), %rbp
	lea	128(%rsi), %r12
	lea	192(%rsi), %r13
	lea	256(%rsi), %r14
	lea	320(%rsi), %r15
	movl	$5, (%rsp)
1:	call	*%rdi
	add	(%rbx), %rax
	add	(%rbp), %rax
	add	(%r12), %rax
	add	(%r13), %rax
	add	(%r14), %rax
	add	(%r15), %rax
	mov	%rax, (%r12)
	decl	(%rsp)
	jnz	1b
	pop	%rcx
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret
	.cfi_endproc
	.size	gets, . - gets
	.type	moved, @function
moved:	.cfi_startproc		/* of rdi, with cells at rsi */
	push	%rbp
	mov	%rsp, %rbp
	push	%rbx
	sub	$24, %rsp
	mov	%rsi, %rbx
	mov	%rsi, -16(%rbp)
	call	*%rdi
	add	(%rbx), %rax
	mov	%rax, %rdi
	call	twice
	mov	-16(%rbp), %rcx
	add	8(%rcx), %rax
	lea	-8(%rbp), %rsp
	pop	%rbx
	pop	%rbp
	ret
	.cfi_endproc
	.size	moved, . - moved
	.type	twice, @function
twice:	.cfi_startproc		/* called back: rdi + 1, with a callee-saved register that it keeps */
	push	%rbx
	mov	%rdi, %rbx
	add	cell(%rip), %rbx
	lea	1(%rbx), %rax
	pop	%rbx
	ret
	.cfi_endproc
	.size	twice, . - twice
	.globl	main
	.type	main, @function
main:	.cfi_startproc
	push	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	push	%r12
	.cfi_def_cfa_offset 24
	push	%r13
	.cfi_def_cfa_offset 32
	xor	%edi, %edi
	mov	$4096, %esi
	mov	$7, %edx		/* PROT_READ | PROT_WRITE | PROT_EXEC */
	mov	$0x22, %ecx		/* MAP_PRIVATE | MAP_ANONYMOUS */
	mov	$-1, %r8d
	xor	%r9d, %r9d
	call	mmap@PLT
	cmp	$-1, %rax
	je	3f
	mov	%rax, %rbx
	mov	%rax, %rdi
	lea	made(%rip), %rsi
	mov	$made_end - made, %ecx
	rep movsb
	lea	cell(%rip), %rsi
	mov	%rbx, %rdi
	call	gets
	mov	%rax, %r12
	lea	twice(%rip), %rdx
	lea	cell(%rip), %rsi
	lea	made_back - made(%rbx), %rdi
	call	gets
	lea	(%r12, %rax, 2), %r12
	lea	cell(%rip), %rsi
	lea	made_moves - made(%rbx), %rdi
	call	moved
	lea	(%r12, %rax, 2), %rsi
	lea	fmt(%rip), %rdi
	xor	%eax, %eax
	call	printf@PLT
	xor	%eax, %eax
2:	pop	%r13
	.cfi_def_cfa_offset 24
	pop	%r12
	.cfi_def_cfa_offset 16
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_def_cfa_offset 32
3:	mov	$1, %eax
	jmp	2b
	.cfi_endproc
	.size	main, . - main
	.data
	.balign	8
cell:	.quad	11, 12, 13, 14, 15, 16, 17, 18
	.fill	40, 8, 3
made:	/* copied before it runs */
	lea	8(%rbx), %rbx
	lea	8(%rbp), %rbp
	lea	8(%r12), %r12
	lea	8(%r13), %r13
	lea	8(%r14), %r14
	lea	8(%r15), %r15
	mov	$7, %eax
	ret
made_back:	/* the same, with a call of rdx */
	push	%rdi
	push	%rdx
	lea	8(%rbx), %rbx
	lea	8(%rbp), %rbp
	lea	8(%r12), %r12
	push	%rdx
	mov	$5, %edi
	call	*%rdx
	pop	%rdx
	lea	8(%r13), %r13
	lea	8(%r14), %r14
	lea	8(%r15), %r15
	pop	%rdx
	pop	%rdi
	ret
made_moves:	/* leaves six values */
	pop	%rcx
	lea	-48(%rsp), %rsp
	mov	$9, %eax
	jmp	*%rcx
made_end:
	.section .rodata
fmt:	.asciz	"stk_made_regs %lx\n"
	.section .note.GNU-stack, "", @progbits
