// SPDX-License-Identifier: MIT
// BREAKS: a callee that returns its result in CF and ZF (hand-written asm): flags live across ret and at the
// return site; and flags passed into a callee.
// BUILD: cc
	.text
	.type	test_bit, @function
test_bit:
	.cfi_startproc
	bt	%edi, bits(%rip)
	ret
	.cfi_endproc
	.size	test_bit, . - test_bit
	.type	compare, @function
compare:
	.cfi_startproc
	mov	(%rsi), %eax
	cmp	%edi, %eax
	ret
	.cfi_endproc
	.size	compare, . - compare
	.type	takes_cf, @function
takes_cf:
	.cfi_startproc
	mov	bits(%rip), %eax
	adc	$1, %eax
	ret
	.cfi_endproc
	.size	takes_cf, . - takes_cf
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
	xor	%ebx, %ebx
	mov	$20, %r12d
1:	mov	%r12d, %edi
	call	test_bit
	jnc	2f
	inc	%ebx
2:	mov	%r12d, %edi
	lea	limit(%rip), %rsi
	call	compare
	je	3f
	ja	4f
	add	$16, %ebx
	jmp	4f
3:	add	$1000, %ebx
4:	mov	%r12d, %edi
	call	test_bit
	call	takes_cf
	add	%eax, %ebx
	call	test_bit
	adc	$0, %ebx
	dec	%r12d
	jnz	1b
	mov	%ebx, %esi
	lea	fmt(%rip), %rdi
	xor	%eax, %eax
	call	printf@PLT
	xor	%eax, %eax
	pop	%r13
	.cfi_def_cfa_offset 24
	pop	%r12
	.cfi_def_cfa_offset 16
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	main, . - main
	.data
	.balign	4
bits:	.long	0x00054321
limit:	.long	7
	.section .rodata
fmt:	.asciz	"flags_return %d\n"
	.section .note.GNU-stack, "", @progbits
