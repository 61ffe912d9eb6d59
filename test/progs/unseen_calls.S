// SPDX-License-Identifier: MIT
// BREAKS: code without unwind tables that nothing in the file shows calls, jumps to and takes the address of places that all
// known code reaches by jumps only, right behind where a patch lies (chromium).
// BUILD: cc
// UNTRACED: 200
#include "main.h"
	.macro	FUNCTION name, inside	/* rdi: what to add */
	.balign	16
\name:	push	%rbx
	mov	%rdi, %rbx
	test	%rdi, %rdi
	js	2f
	call	tick
	jmp	1f			/* two bytes to come back to: what leads on from there needs room */
2:	call	_exit@PLT
	int3				/* here, and it goes on over what is next */
\inside: push	%rbp
	mov	%rsp, %rbp
	incq	n(%rip)
	add	%rdi, n(%rip)
	pop	%rbp
	ret
1:	mov	%rbx, %rdi
	pop	%rbx
	jmp	\inside
	.endm
	.text
	FUNCTION first, inner
	FUNCTION second, inside
	FUNCTION third, within
	.balign	16
	.type	tick, @function
tick:	.cfi_startproc
	incq	n(%rip)
	ret
	.cfi_endproc
	.balign	16
unseen:	lea	(%rbx,%rbx), %rdi	/* rbx: no function of C's takes it: nothing to follow an address to */
	call	inner
	lea	within(%rip), %rax
	mov	%rbx, %rdi
	call	*%rax
	lea	1(%rbx), %rdi
	jmp	inside
	MAIN
	mov	$100, %ebx
1:	mov	%rbx, %rdi
	call	first
	mov	%rbx, %rdi
	call	second
	mov	%rbx, %rdi
	call	third
	movslq	where(%rip), %rcx
	lea	tick(%rip), %rax
	add	%rcx, %rax
	call	*%rax
	dec	%ebx
	jnz	1b
	PRINT_N
	.data
	.balign	8
n:	.quad	0
where:	.long	unseen - tick
	.section .rodata
fmt:	.asciz	"unseen_calls %ld\n"
	.section .note.GNU-stack, "", @progbits
