// SPDX-License-Identifier: MIT
// BREAKS: cmov with a memory source reads whether or not it moves; the 32-bit form clears the upper half
// either way; a moved pointer is an address later.
// BUILD: cc
#include "main.h"
	.text
	MAIN
	xor	%ebx, %ebx
	mov	$9, %ecx
1:	lea	t1(%rip), %rsi
	lea	t2(%rip), %rdi
	test	$1, %ecx
	cmovnz	%rdi, %rsi
	add	(%rsi,%rcx,4), %ebx
	cmp	$5, %ecx
	mov	$-1, %rax
	cmova	t1(%rip), %eax
	add	%rax, %rbx
	cmovbe	ptr(%rip), %rsi
	add	(%rsi), %ebx
	dec	%ecx
	jns	1b
	mov	%rbx, %rsi
	PRINT
	.section .data.rel.ro, "aw"
	.balign	8
ptr:	.quad	t2
t1:	.long	1, 2, 3, 4, 5, 6, 7, 8, 9, 10
t2:	.long	100, 200, 300, 400, 500, 600, 700, 800, 900, 1000
	.section .rodata
fmt:	.asciz	"cmov_mem %lx\n"
	.section .note.GNU-stack, "", @progbits
