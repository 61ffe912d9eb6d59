/* SPDX-License-Identifier: MIT
 *
 * emit_step.S - runs a piece of code with every register set by the test
 *
 * step_run(code): loads step_in, jumps to code; the code ends with jmp step_out, which stores
 * step_res and returns. The log and the stack of the piece are the test's.
 */
	.text
	.globl	step_run, step_out
	.type	step_run, @function
step_run:
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	mov	%rdi, step_code(%rip)
	mov	%rsp, step_rsp(%rip)
	pushq	step_in+128(%rip)
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	movdqu	step_in+136+16*\n(%rip), %xmm\n
	.endr
	mov	step_in(%rip), %rax
	mov	step_in+8(%rip), %rcx
	mov	step_in+16(%rip), %rdx
	mov	step_in+24(%rip), %rbx
	mov	step_in+40(%rip), %rbp
	mov	step_in+48(%rip), %rsi
	mov	step_in+56(%rip), %rdi
	mov	step_in+64(%rip), %r8
	mov	step_in+72(%rip), %r9
	mov	step_in+80(%rip), %r10
	mov	step_in+88(%rip), %r11
	mov	step_in+96(%rip), %r12
	mov	step_in+104(%rip), %r13
	mov	step_in+112(%rip), %r14
	mov	step_in+120(%rip), %r15
	popfq
	mov	step_in+32(%rip), %rsp
	jmp	*step_code(%rip)
step_out:
	mov	%rax, step_res(%rip)
	mov	%rcx, step_res+8(%rip)
	mov	%rdx, step_res+16(%rip)
	mov	%rbx, step_res+24(%rip)
	mov	%rsp, step_res+32(%rip)
	mov	%rbp, step_res+40(%rip)
	mov	%rsi, step_res+48(%rip)
	mov	%rdi, step_res+56(%rip)
	mov	%r8, step_res+64(%rip)
	mov	%r9, step_res+72(%rip)
	mov	%r10, step_res+80(%rip)
	mov	%r11, step_res+88(%rip)
	mov	%r12, step_res+96(%rip)
	mov	%r13, step_res+104(%rip)
	mov	%r14, step_res+112(%rip)
	mov	%r15, step_res+120(%rip)
	mov	step_rsp(%rip), %rsp
	pushfq
	popq	step_res+128(%rip)
	andq	$~0x100, step_res+128(%rip)
	pushq	$2
	popfq
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	movdqu	%xmm\n, step_res+136+16*\n(%rip)
	.endr
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret

	.globl	step_chunk_full, step_syscall, step_back
step_chunk_full:
	incq	step_full(%rip)
	mov	step_chunk(%rip), %r15
	jmp	*%gs:0x30
step_back:
	incq	step_backs(%rip)
	mov	%gs:0x00, %r15
	jmp	*%gs:0x30
step_syscall:
	mov	%rax, (%r15)
	lea	12(%r15), %r15
	syscall
	mov	%gs:0x38, %rcx
	jmp	*%gs:0x30

	.bss
	.balign	16
	.globl	step_in, step_res, step_full, step_chunk, step_backs
step_in:	.skip	272
step_res:	.skip	272
step_code:	.skip	8
step_rsp:	.skip	8
step_full:	.skip	8
step_backs:	.skip	8
step_chunk:	.skip	8
	.section .note.GNU-stack,"",@progbits
