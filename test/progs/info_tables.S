// SPDX-License-Identifier: MIT
// BREAKS: code directly behind tables that a collector reads (GHC): no unwind tables, entered by jumps through closures and the
// program's own stack only, registers as the program likes. A patch in a table changes the output; taking its bytes for code, or a
// number for an address, leaves the code untraced.
// BUILD: cc -no-pie
// VARIANTS: stripped
// UNTRACED: 0
	/* GHC's registers: rbp the stack, r12 the heap, rbx a closure, r13 what it calls its own */
	.macro	TABLE layout, type
	.p2align 3
	.quad	\layout
	.long	\type, 0
	.endm

	.text
	.type	main, @function
	.globl	main
main:	.cfi_startproc
	push	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	push	%rbp
	.cfi_def_cfa_offset 24
	.cfi_offset %rbp, -24
	push	%r12
	.cfi_def_cfa_offset 32
	.cfi_offset %r12, -32
	push	%r13
	.cfi_def_cfa_offset 40
	.cfi_offset %r13, -40
	push	%r14
	.cfi_def_cfa_offset 48
	.cfi_offset %r14, -48
	push	%r15
	.cfi_def_cfa_offset 56
	.cfi_offset %r15, -56
	sub	$8, %rsp
	.cfi_def_cfa_offset 64
	lea	stack_end(%rip), %rbp
	lea	heap(%rip), %r12
	lea	base(%rip), %r13
	lea	stack(%rip), %r15
	movq	$done, (%rbp)
	mov	$list, %ebx
	mov	(%rbx), %rax
	jmp	*%rax
	.globl	back
back:	mov	%rbx, n(%rip)
	/* the collector: all words of the tables, by the addresses of the code behind them */
	mov	$closures, %esi
1:	mov	(%rsi), %rdi
	test	%rdi, %rdi
	je	2f
	mov	-16(%rdi), %rax
	rol	$7, %rbx
	add	%rax, %rbx
	mov	-8(%rdi), %rax
	rol	$7, %rbx
	add	%rax, %rbx
	add	$8, %rsi
	jmp	1b
2:	mov	n(%rip), %rsi
	mov	%rbx, %rdx
	lea	fmt(%rip), %rdi
	xor	%eax, %eax
	call	printf@PLT
	xor	%eax, %eax
	add	$8, %rsp
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	main, . - main

	/* the stack ends here */
	TABLE	1, 30
done:	jmp	back

	/* a list's sum: calls what makes the list, goes on at ret_sum with it in rbx */
	TABLE	0x90, 15		/* looks like padding at its beginning */
sum:	lea	-24(%rbp), %rax
	cmp	%r15, %rax
	jb	3f
	movq	$ret_sum, -24(%rbp)
	movq	$0, -16(%rbp)
	movq	$100, -8(%rbp)
	add	$-24, %rbp
	jmp	*gen(%rip)
3:	mov	$list, %ebx
	jmp	*-8(%r13)
	nop
	TABLE	0x9090909090909090, 30
ret_sum: mov	8(%rbp), %rax
	mov	16(%rbp), %rcx
	dec	%rcx
	je	4f
	mov	%rcx, 16(%rbp)
	add	%rbx, %rax
	mov	%rax, 8(%rbp)
	mov	%rcx, %rbx
	and	$6, %ebx
	inc	%ebx
	jmp	*cases(,%rbx,8)
4:	mov	%rax, %rbx
	add	$24, %rbp
	jmp	*(%rbp)
	/* reached by the table's words only; scratch registers have values here */
five:	add	%rcx, %rax
	mov	%rax, 8(%rbp)
	jmp	again
six:	lea	(%rax,%rcx,4), %rax
	mov	%rax, 8(%rbp)
again:	movq	$ret_sum, (%rbp)
	jmp	step_fast
	/* nobody takes this one's address */
	TABLE	7, 8
step_fast: add	$16, %r12
	cmp	$heap_end, %r12
	ja	5f
	movq	$cell, -8(%r12)
	mov	%rcx, (%r12)
	lea	-8(%r12), %rbx
	testb	$7, %bl
	jne	6f
	jmp	*(%rbx)
5:	mov	$heap, %r12d
	jmp	step_fast
6:	jmp	*-8(%r13)
	TABLE	0x1f0f, 1		/* nor is this padding */
cell:	mov	8(%rbx), %rbx
	jmp	*(%rbp)
	TABLE	3, 14
start:	mov	$7, %ebx
	jmp	*(%rbp)

	.data
	.p2align 3
list:	.quad	sum
gen:	.quad	start
closures: .quad	sum, ret_sum, cell, start, done, 0
base:	.quad	0
	.quad	six + 1			/* a number, as it happens, that looks like an address */
	.section .rodata
	.p2align 3
cases:	.quad	0, five, six, six, five, six, five, five
fmt:	.asciz	"info_tables %lx %lx\n"
	.local	n
	.comm	n, 8, 8
	.bss
	.p2align 4
heap:	.skip	160
heap_end: .skip	16
stack:	.skip	4096
stack_end: .skip 64
	.section .note.GNU-stack, "", @progbits
