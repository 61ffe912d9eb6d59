// SPDX-License-Identifier: MIT
// BREAKS: overlapping instructions: the immediate of one is the code of another. A group with them must
// stay opaque or be split, never be decoded one way only.
// BUILD: cc
#include "main.h"
	.text
	.type	hidden, @function
hidden:	.cfi_startproc
	xor	%eax, %eax
	test	%edi, %edi
	jne	1f + 1
1:	.byte	0xb8			/* mov $imm32, %eax; entered at +1: the imm is code */
	mov	(%rsi), %al		/* 8a 06 */
	jmp	2f			/* eb xx */
2:	movzbl	%al, %eax
	add	8(%rsi), %eax
	ret
	.cfi_endproc
	.size	hidden, . - hidden
	MAIN
	lea	data(%rip), %rsi
	xor	%edi, %edi
	call	hidden
	mov	%eax, %ebx
	mov	$1, %edi
	lea	data(%rip), %rsi
	call	hidden
	mov	%eax, %edx
	mov	%ebx, %esi
	PRINT
	.data
	.balign	8
data:	.quad	0x55, 0x1000
	.section .rodata
fmt:	.asciz	"overlap %x %x\n"
	.section .note.GNU-stack, "", @progbits
