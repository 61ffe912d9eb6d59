// SPDX-License-Identifier: MIT
// BREAKS: `call next; next: pop`: the pushed address must be the original one, and the call has no return.
// BUILD: cc
#include "main.h"
	.text
	MAIN
	call	1f
1:	pop	%rbx
	mov	2f - 1b(%rbx), %esi
	call	thunk
3:	add	$here - 3b, %rax
	add	(%rax), %esi
	PRINT
	.type	thunk, @function
thunk:	.cfi_startproc
	mov	(%rsp), %rax
	ret
	.cfi_endproc
	.size	thunk, . - thunk
2:	.long	0x1234
here:	.long	0x1111
	.section .rodata
fmt:	.asciz	"getpc %x\n"
	.section .note.GNU-stack, "", @progbits
