/* SPDX-License-Identifier: MIT
 *
 * An entry that nothing in the file shows: the middle of `work`, at an address computed from a
 * number in writable data.
 */
	.text
	.type	work, @function
work:	.cfi_startproc
	mov	$1, %eax
	add	%eax, total(%rip)
	nopw	0(%rax,%rax)
inner:	addl	$10, total(%rip)
	ret
	.cfi_endproc
	.size	work, . - work

	.globl	main
	.type	main, @function
main:	.cfi_startproc
	push	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	mov	$3, %ebx
1:	call	work
	movslq	where(%rip), %rcx
	lea	work(%rip), %rax
	add	%rcx, %rax
	call	*%rax
	dec	%ebx
	jnz	1b
	mov	total(%rip), %esi
	lea	fmt(%rip), %rdi
	xor	%eax, %eax
	call	printf@PLT
	xor	%eax, %eax
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	main, . - main
	.data
where:	.long	inner - work
total:	.long	0
	.section .rodata
fmt:	.asciz	"avoid %d\n"
	.section .note.GNU-stack, "", @progbits
