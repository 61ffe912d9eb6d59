// SPDX-License-Identifier: MIT
// BREAKS: a return site of one byte (a function's last `ret`) right before the next function's entry: the two
// bytes of the shortest jump are not all its own.
// BUILD: cc
// UNTRACED: 0
	.macro	FN name
	.globl	\name
	.type	\name, @function
\name:	.cfi_startproc
	.endm
	.macro	END name
	.cfi_endproc
	.size	\name, . - \name
	.endm
	/* what a function has besides: room for islands */
	.macro	BODY
	lea	16(%rsi,%rsi,2), %r8d
	imul	$37, %r8d, %r8d
	xor	$0x1234, %r8d
	lea	1(%r8,%rsi,4), %r9d
	add	$0x10000, %r9d
	.endm
	.text
	FN step
	incl	n(%rip)
	ret
	END step
	FN before		/* its ret stands before an entry with room for a jump behind a prefix */
	incl	n(%rip)
	mov	%rdi, %rax
	call	step
	BODY
	call	step
	ret
	END before
	FN entry5
	push	%r12
	mov	%rsi, %r12
	add	%r12, n(%rip)
	pop	%r12
	call	step
	BODY
	call	step
	ret
	END entry5
	FN entry3		/* room for a prefix and a short jump only, then a call */
	addl	%ebx, %ecx
	inc	%ecx
	call	step
	BODY
	call	step
	ret
	END entry3
	FN marked		/* keeps its endbr64, whose first byte is the only choice */
	endbr64
	mov	n(%rip), %eax
	lea	7(%rax), %edx
	BODY
	ret
	END marked
	FN target		/* a jump's target that begins with a call, right after a return site of one byte */
	lea	7f(%rip), %rax
	test	$1, %bl
	jz	6f
	jmp	*%rax
6:	BODY
	call	step
	nop
7:	call	step
	BODY
	ret
	END target
	FN main
	push	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	push	%r12
	.cfi_def_cfa_offset 24
	push	%r13
	.cfi_def_cfa_offset 32
	mov	$3, %ebx
1:	mov	$2, %esi
	call	before
	call	entry5
	call	entry3
	call	marked
	call	target
	lea	table(%rip), %r13
	mov	$4, %r12d
2:	mov	$5, %esi
	call	*-8(%r13,%r12,8)
	dec	%r12d
	jnz	2b
	dec	%ebx
	jnz	1b
	mov	n(%rip), %esi
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
	.balign	8
n:	.quad	0
	.section .data.rel.ro, "aw"
	.balign	8
table:	.quad	before, entry5, entry3, marked
	.section .rodata
fmt:	.asciz	"last_ret %d\n"
	.section .note.GNU-stack, "", @progbits
