// SPDX-License-Identifier: MIT
// BREAKS: data in .text: a table between and inside functions, immediates and code bytes that are read as
// data. A patch or an int3 there changes the output.
// BUILD: cc
#include "main.h"
	.text
	MAIN
	xor	%ebx, %ebx
	lea	table(%rip), %rsi
	mov	$4, %ecx
1:	add	-4(%rsi,%rcx,4), %ebx
	loop	1b
	call	over
2:	add	imm + 1(%rip), %ebx
imm:	mov	$0x1000, %eax
	add	%eax, %ebx
	/* A checksum of this function's own first bytes. */
	lea	callee(%rip), %rsi
	mov	$6, %ecx
3:	movzbl	-1(%rsi,%rcx), %eax
	rol	$3, %ebx
	add	%eax, %ebx
	loop	3b
	jmp	4f
inside:	.quad	0x1122334455667788
	.ascii	"text in text"
4:	add	inside(%rip), %ebx
	mov	%ebx, %esi
	PRINT
table:	.long	1, 2, 3, 0xcccccccc
over:	.cfi_startproc
	pop	%rax
	jmp	*%rax
	.cfi_endproc
	.size	over, . - over
	.type	callee, @function
callee:	.cfi_startproc
	mov	$77, %eax
	ret
	.cfi_endproc
	.size	callee, . - callee
	.section .rodata
fmt:	.asciz	"data_in_text %x\n"
	.section .note.GNU-stack, "", @progbits
