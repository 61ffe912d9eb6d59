// SPDX-License-Identifier: MIT
// BREAKS: functions of 1 to 4 bytes, packed without padding: no room for a 5-byte jump at the entry, and
// a patch of one must not touch the next.
// BUILD: cc
	.macro	FN name
	.globl	\name
	.type	\name, @function
\name:	.cfi_startproc
	.endm
	.macro	END name
	.cfi_endproc
	.size	\name, . - \name
	.endm
	.text
	FN f1
	ret
	END f1
	FN f2
	nop
	ret
	END f2
	FN f3
	incl	%ebx
	ret
	END f3
	FN f3b
	push	%rax
	pop	%rax
	ret
	END f3b
	FN f4
	add	(%rdi), %ebx
	nop
	ret
	END f4
	FN f5
	mov	%ebx, (%rdi)
	ret
	END f5
	FN main
	push	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	push	%r12
	.cfi_def_cfa_offset 24
	push	%r13
	.cfi_def_cfa_offset 32
	xor	%ebx, %ebx
	mov	$5, %r12d
1:	lea	cell(%rip), %rdi
	call	f1
	call	f2
	call	f3
	call	f3b
	call	f4
	call	f5
	lea	table(%rip), %r13
	call	*(%r13)
	call	*16(%r13)
	call	*24(%r13)
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
	END main
	.bss
	.balign	4
cell:	.long	0
	.section .data.rel.ro, "aw"
	.balign	8
table:	.quad	f1, f2, f3, f4
	.section .rodata
fmt:	.asciz	"tiny_funcs %d\n"
	.section .note.GNU-stack, "", @progbits
