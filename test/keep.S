/* SPDX-License-Identifier: MIT
 *
 * Groups that return with the log pointer in r15 (analyzer/keep.c): a leaf, a recursive one, one that ends in a
 * tail jump; with the program's r15 in use. Then an entry into the leaf that nothing in the file shows: its
 * address is computed from a number in writable data.
 */
	.text
	.type	leaf, @function
leaf:	.cfi_startproc
	movslq	(%rdi), %rax
	add	(%rsi,%rax,4), %r15d
	ret
	.cfi_endproc
	.size	leaf, . - leaf

	.type	rec, @function
rec:	.cfi_startproc
	movslq	(%rdi), %rax
	addl	$1, (%rsi,%rax,4)
	dec	%edx
	jz	1f
	push	%r15
	.cfi_def_cfa_offset 16
	call	rec
	pop	%rax
	.cfi_def_cfa_offset 8
	add	%eax, %r15d
1:	ret
	.cfi_endproc
	.size	rec, . - rec

	.type	tail, @function
tail:	.cfi_startproc
	addl	$1, (%rdi)
	jmp	leaf
	.cfi_endproc
	.size	tail, . - tail

	.globl	main
	.type	main, @function
main:	.cfi_startproc
	push	%r15
	.cfi_def_cfa_offset 16
	.cfi_offset %r15, -16
	xor	%r15d, %r15d
	lea	index(%rip), %rdi
	lea	vec(%rip), %rsi
	call	leaf
	mov	$3, %edx
	call	rec
	call	tail
	movslq	where(%rip), %rcx
	lea	main(%rip), %rax
	add	%rcx, %rax
	call	*%rax
	mov	%r15d, %esi
	lea	fmt(%rip), %rdi
	xor	%eax, %eax
	call	printf@PLT
	xor	%eax, %eax
	pop	%r15
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	main, . - main
	.data
where:	.long	leaf - main
index:	.long	1
vec:	.long	1, 10, 100, 1000
	.section .rodata
fmt:	.asciz	"keep %d\n"
	.section .note.GNU-stack, "", @progbits
