// SPDX-License-Identifier: MIT
// BREAKS: return sites with no room before the next call: back-to-back calls, calls one or two register
// instructions apart, a call as the first and as the last instruction of a function.
// BUILD: cc
	.text
	.type	step, @function
step:	.cfi_startproc
	incl	n(%rip)
	ret
	.cfi_endproc
	.size	step, . - step
	.type	stop, @function
stop:	.cfi_startproc
	mov	n(%rip), %esi
	lea	fmt(%rip), %rdi
	xor	%eax, %eax
	call	printf@PLT
	xor	%edi, %edi
	call	exit@PLT
	.cfi_endproc
	.size	stop, . - stop
	.type	twice, @function
twice:	.cfi_startproc
	call	step
	call	step
	ret
	.cfi_endproc
	.size	twice, . - twice
	.globl	main
	.type	main, @function
main:	.cfi_startproc
	push	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	mov	$3, %ebx
1:	call	step
	call	twice
	call	step
	inc	%eax
	call	step
	mov	%ebx, %ecx
	call	step
	mov	%ecx, %eax
	dec	%ebx
	jnz	1b
	call	twice
	push	%rax
	call	step
	pop	%rax
	call	stop
	.cfi_endproc
	.size	main, . - main
	.bss
	.balign	4
n:	.long	0
	.section .rodata
fmt:	.asciz	"back_to_back %d\n"
	.section .note.GNU-stack, "", @progbits
