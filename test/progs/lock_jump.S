// SPDX-License-Identifier: MIT
// BREAKS: a branch over a `lock` prefix into the byte after it (libc does this when single-threaded): two
// instructions that share their last bytes, both executed.
// BUILD: cc
#include "main.h"
	.text
	.type	bump, @function
bump:	.cfi_startproc
	test	%edi, %edi
	je	1f
	.byte	0xf0
1:	incl	count(%rip)
	test	%edi, %edi
	jne	2f
	jmp	3f
2:	.byte	0xf0
3:	xadd	%edi, count(%rip)
	mov	%edi, %eax
	ret
	.cfi_endproc
	.size	bump, . - bump
	MAIN
	mov	$10, %ebx
1:	mov	%ebx, %edi
	and	$3, %edi
	call	bump
	dec	%ebx
	jnz	1b
	mov	count(%rip), %esi
	PRINT
	.bss
	.balign	4
count:	.long	0
	.section .rodata
fmt:	.asciz	"lock_jump %d\n"
	.section .note.GNU-stack, "", @progbits
