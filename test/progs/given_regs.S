// SPDX-License-Identifier: MIT
// BREAKS: a register of the caller's own that one function sets and the next one reads: hand-written code gives
// values in whatever it likes, from callee to callee; the caller itself never names them.
// BUILD: cc
	.text
	.type	first, @function
first:	.cfi_startproc
	/* loads and stores behind what is given: scratch registers are wanted here */
	lea	(%rdi,%rdi,2), %r8
	mov	$0x55, %r9d
	mov	$0x66, %r10d
	mov	$0x77, %r11d
	lea	3(%rdi), %rsi
	mov	cell(%rip), %rcx
	mov	%rcx, cell + 8(%rip)
	ret
	.cfi_endproc
	.size	first, . - first
	.type	second, @function
second:	.cfi_startproc
	mov	cell + 8(%rip), %rcx
	lea	(%rcx,%r8), %rax
	add	%r9, %rax
	add	%r10, %rax
	add	%r11, %rax
	add	%rsi, %rax
	ret
	.cfi_endproc
	.size	second, . - second
	.type	third, @function
third:	.cfi_startproc		/* by way of one that reads nothing of it */
	call	third_in
	ret
	.cfi_endproc
	.size	third, . - third
	.type	third_in, @function
third_in: .cfi_startproc
	lea	(%rax,%r8), %rax
	jmp	third_end
	.cfi_endproc
	.size	third_in, . - third_in
	.type	third_end, @function
third_end: .cfi_startproc
	add	%r11, %rax
	ret
	.cfi_endproc
	.size	third_end, . - third_end
	.globl	main
	.type	main, @function
main:	.cfi_startproc
	push	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	push	%rbp
	.cfi_def_cfa_offset 24
	.cfi_offset %rbp, -24
	sub	$8, %rsp
	.cfi_def_cfa_offset 32
	mov	$40, %ebx
	xor	%ebp, %ebp
1:	mov	%rbx, %rdi
	call	first
	call	second
	add	%rax, %rbp
	mov	%rbx, %rdi
	call	first
	call	third
	add	%rax, %rbp
	dec	%ebx
	jnz	1b
	mov	%rbp, %rsi
	lea	fmt(%rip), %rdi
	xor	%eax, %eax
	call	printf@PLT
	xor	%eax, %eax
	add	$8, %rsp
	.cfi_def_cfa_offset 24
	pop	%rbp
	.cfi_def_cfa_offset 16
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	main, . - main
	.data
cell:	.quad	5, 6
	.section .rodata
fmt:	.asciz	"given_regs %ld\n"
	.section .note.GNU-stack, "", @progbits
