// SPDX-License-Identifier: MIT
// BREAKS: rows of `call handler; jmp *(%r15)` (php's interpreter: opcodes that are not inlined), each begins where a table of
// opcodes leads to: no byte is left over for an island, and none for a way to one. The last bytes of a jump must be
// the first of the next. Some pass an argument (xor, mov), which leaves two bytes before a call.
// BUILD: cc
// UNTRACED: 0
#include "main.h"
	.macro	FAR name	/* text as it is around an interpreter in a large program */
	.globl	\name
	.type	\name, @function
\name:	.cfi_startproc
	.rept	25000
	lea	1(%rax, %rdi), %rax
	.endr
	ret
	.cfi_endproc
	.size	\name, . - \name
	.endm
	.macro	OPCODES n
	.rept	\n
	call	step
	jmp	*(%r15)
	.endr
	.endm
	.text
	FAR	before
	.type	step, @function
step:	.cfi_startproc
	add	$8, %r15
	mov	n(%rip), %rax
	lea	7(%rax, %rax, 2), %rax
	mov	%rax, n(%rip)
	ret
	.cfi_endproc
	.size	step, . - step
	.type	add, @function
add:	.cfi_startproc
	push	%rdi
	add	$8, %r15
	pop	%rax
	add	%rax, n(%rip)
	ret
	.cfi_endproc
	.size	add, . - add
	.globl	run
	.type	run, @function
run:	.cfi_startproc
	push	%r15
	.cfi_def_cfa_offset 16
	.cfi_offset %r15, -16
	mov	%rdi, %r15
	jmp	*(%r15)
.Lend:	pop	%r15
	.cfi_def_cfa_offset 8
	ret
	.cfi_def_cfa_offset 16
.Lrow:	OPCODES	40
.Lzero:	xor	%edi, %edi
	call	add
	jmp	*(%r15)
.Lone:	mov	$1, %edi
	call	add
	jmp	*(%r15)
.Lrow2:	OPCODES	40
	.cfi_endproc
	.size	run, . - run
	MAIN
	mov	$3, %ebx
1:	lea	ops(%rip), %rdi
	call	run
	dec	%ebx
	jnz	1b
	PRINT_N
	FAR	behind
	.bss
	.balign	8
n:	.quad	0
	.section .data.rel.ro, "aw"
	.balign	8
	.macro	WORDS from
	.set	i, 0
	.rept	40
	.quad	\from + i
	.set	i, i + 8
	.endr
	.endm
ops:	WORDS	.Lrow
	.quad	.Lzero, .Lone, .Lzero
	WORDS	.Lrow2
	.quad	.Lrow, .Lrow2, .Lone, .Lend
	.section .rodata
fmt:	.asciz	"jt_opcodes %lx\n"
	.section .note.GNU-stack, "", @progbits
