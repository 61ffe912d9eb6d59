// SPDX-License-Identifier: MIT
// BREAKS: code made at run time that comes back with another rsp than a C function would, to callers written by hand
// (a Lisp's entry from C): it takes its arguments off the stack (pops), takes the caller's frame pointer, too (frame), or
// leaves values there, says so in CF and tells where the stack was in rbx (values). What the callers pop then is elsewhere.
// PT_ENV: PTRACE_PT_RETC=0
// BUILD: cc
	.text
	.globl	pops
	.type	pops, @function
pops:	.cfi_startproc		/* of rdi, with two arguments on the stack */
	push	%rbx
	push	%r12
	mov	%rsi, %r12
	mov	$3, %ebx
	xor	%edx, %edx
1:	push	%rbx
	push	(%rsi)
	call	*%rdi		/* rax = first + second; ret $16 */
	add	%rax, %rdx
	dec	%ebx
	jnz	1b
	mov	%rdx, (%r12)
	mov	%rdx, %rax
	push	%rax
	push	$5
	call	*%rdi
	pop	%r12
	pop	%rbx
	ret
	.cfi_endproc
	.size	pops, . - pops
	.globl	frame
	.type	frame, @function
frame:	.cfi_startproc		/* of rdi, which returns by pop %rbp; ret $8 from a frame that is made here */
	push	%rbp
	mov	%rsp, %rbp
	push	%rbx
	push	%r12
	push	%r13
	push	%rbp
	push	%rbp
	mov	%rsp, %rbp
	call	*%rdi
	pop	%r13
	pop	%r12
	pop	%rbx
	leave
	ret
	.cfi_endproc
	.size	frame, . - frame
	.globl	values
	.type	values, @function
values:	.cfi_startproc		/* of rdi, which leaves rsi values on the stack; their sum, and rsi is 0: none, and CF clear */
	push	%rbp
	mov	%rsp, %rbp
	push	%rbx
	push	%r12
	xor	%ebx, %ebx
	call	*%rdi
	jae	2f
	mov	%rbx, %r12
	xor	%eax, %eax
1:	add	(%rsp), %rax
	lea	8(%rsp), %rsp
	cmp	%r12, %rsp
	jb	1b
	call	id
	mov	%rbx, %rsp
2:	pop	%r12
	pop	%rbx
	leave
	ret
	.cfi_endproc
	.size	values, . - values
	.type	id, @function
id:	.cfi_startproc
	push	%rax
	pop	%rax
	ret
	.cfi_endproc
	.size	id, . - id
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
	call	pops
	mov	%rax, %r12
	lea	made_frame - made(%rbx), %rdi
	call	frame
	add	%rax, %r12
	xor	%r13d, %r13d
1:	lea	made_values - made(%rbx), %rdi
	mov	%r13d, %esi
	call	values
	lea	(%r12, %r12, 2), %r12
	add	%rax, %r12
	inc	%r13d
	cmp	$4, %r13d
	jb	1b
	mov	%r12, %rsi
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
cell:	.quad	11
made:	/* copied before it runs */
	mov	8(%rsp), %rax
	add	16(%rsp), %rax
	ret	$16
made_frame:
	mov	(%rbp), %rax
	xor	8(%rbp), %rax
	pop	%rcx
	mov	%rbp, %rsp
	pop	%rbp
	add	$8, %rsp
	lea	7(%rax), %rax
	jmp	*%rcx
made_values:
	pop	%rcx
	mov	%rsp, %rbx
	mov	$1, %eax
	test	%esi, %esi
	jz	2f
1:	push	%rsi
	dec	%esi
	jnz	1b
	stc
2:	jmp	*%rcx
made_end:
	.section .rodata
fmt:	.asciz	"callee_pops %lx\n"
	.section .note.GNU-stack, "", @progbits
