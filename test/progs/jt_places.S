// SPDX-License-Identifier: MIT
// BREAKS: a jump to a label plus eight times an index: no table, code in places of eight bytes (libffi's ways to store a
// result). The index is copied between its comparison and the branch.
// BUILD: cc
// UNTRACED: 0
#include "main.h"
	.text
	.globl	store
	.type	store, @function
store:	.cfi_startproc		/* rdi: to; esi: how; rdx: what */
	mov	%rdx, %rax
	cmp	$5, %sil
	movzbl	%sil, %r10d
	lea	.Lplaces(%rip), %r11
	ja	.Lout
	lea	(%r11,%r10,8), %r10
	lea	-8(%rsp), %r8
	jmp	*%r10
	.balign	8
.Lplaces: ret
	.balign	8
	movzbl	%al, %eax
	mov	%rax, (%rdi)
	ret
	.balign	8
	mov	%rax, (%r8)
	jmp	.Lmove
	.balign	8
	add	%rax, (%rdi)
	ret
	.balign	8
	mov	%eax, (%rdi)
	ret
	.balign	8
	xor	%rax, (%rdi)
	ret
	.balign	8
.Lmove:	mov	(%r8), %rax
	lea	1(%rax), %rax
	mov	%rax, (%rdi)
.Lout:	ret
	.cfi_endproc
	.size	store, . - store
	MAIN
	mov	$200, %ebx
1:	mov	%ebx, %esi
	and	$7, %esi
	lea	0x100(%rbx), %rdx
	lea	n(%rip), %rdi
	call	store
	dec	%ebx
	jnz	1b
	PRINT_N
	.bss
	.balign	8
n:	.quad	0
	.section .rodata
fmt:	.asciz	"jt_places %ld\n"
	.section .note.GNU-stack, "", @progbits
