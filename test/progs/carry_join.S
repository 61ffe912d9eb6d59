// SPDX-License-Identifier: MIT
// BREAKS: how many bits a sum with the carry has, where the carry is known to be clear on one way only: 255 and a carry are
// more than a byte holds.
// BUILD: cc
	.bss
table:	.skip	512
	.data
byte:	.byte	255
	.balign 8
low:	.quad	1
high:	.quad	2
	.text
# table[byte + (way ? low < high : 0)]: the index is cheaper to log than what the carry is made of
	.type	look, @function
look:	.cfi_startproc
	movzbl	(%rdi), %eax
	test	%r8, %r8
	jz	1f
	mov	(%rsi), %r9
	cmp	(%rdx), %r9
	jmp	2f
1:	xor	%r10d, %r10d
2:	adc	$0, %eax
	movzbl	(%rcx,%rax), %eax
	ret
	.cfi_endproc
	.size	look, . - look
	.globl	main
	.type	main, @function
main:	.cfi_startproc
	push	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	mov	$4, %ebx
3:	lea	byte(%rip), %rdi
	lea	low(%rip), %rsi
	lea	high(%rip), %rdx
	lea	table(%rip), %rcx
	mov	%rbx, %r8
	and	$1, %r8
	call	look
	dec	%ebx
	jnz	3b
	xor	%eax, %eax
	pop	%rbx
	.cfi_def_cfa_offset 8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size	main, . - main
	.section .note.GNU-stack,"",@progbits
