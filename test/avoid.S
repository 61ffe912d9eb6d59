/* SPDX-License-Identifier: MIT
 *
 * An entry that nothing in the file shows: the middle of `work`, at an address computed from a
 * number in writable data.
 */
#include "progs/main.h"
	.text
	.type	work, @function
work:	.cfi_startproc
	mov	$1, %eax
	add	%eax, total(%rip)
	nopw	0(%rax,%rax)
inner:	addl	$10, total(%rip)
	ret
	.cfi_endproc
	.size	work, . - work

	MAIN
	mov	$3, %ebx
1:	call	work
	movslq	where(%rip), %rcx
	lea	work(%rip), %rax
	add	%rcx, %rax
	call	*%rax
	dec	%ebx
	jnz	1b
	mov	total(%rip), %esi
	PRINT
	.data
where:	.long	inner - work
total:	.long	0
	.section .rodata
fmt:	.asciz	"avoid %d\n"
	.section .note.GNU-stack, "", @progbits
