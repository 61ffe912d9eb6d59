// SPDX-License-Identifier: MIT
// BREAKS: a branch over a `lock` prefix into the byte after it (libc does this when single-threaded): two
// instructions that share their last bytes, both executed.
// BUILD: cc
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
	.globl	main
	.type	main, @function
main:	.cfi_startproc
	push	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	mov	$10, %ebx
1:	mov	%ebx, %edi
	and	$3, %edi
	call	bump
	dec	%ebx
	jnz	1b
	mov	count(%rip), %esi
	lea	fmt(%rip), %rdi
	xor	%eax, %eax
	call	printf@PLT
	xor	%eax, %eax
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	main, . - main
	.bss
	.balign	4
count:	.long	0
	.section .rodata
fmt:	.asciz	"lock_jump %d\n"
	.section .note.GNU-stack, "", @progbits
