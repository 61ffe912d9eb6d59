/* SPDX-License-Identifier: MIT
 *
 * golden.S - small inputs whose copy and patches are compared with golden.txt
 */
	.macro	fn name
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
	.endm
	.macro	endfn name
	.cfi_endproc
	.size	\name, .-\name
	.endm
	.text

/* every way r15 is rewritten: slot, twin opcode, destination as the borrowed register, borrow */
fn r15_forms
	endbr64
	push	%r15
	mov	%r15, %rax
	mov	%rdi, %r15
	add	%r15, %rax
	sub	%rsi, %r15
	mov	%r15d, %ecx
	mov	$5, %r15d
	lea	3(%r15,%rsi,4), %rax
	inc	%r15d
	pop	%r15
	ret
endfn r15_forms

fn leaf
	inc	%eax
	ret
endfn leaf

/* back-to-back calls: the second and third are emulated or their return sites use islands */
fn back_to_back
	call	leaf
	call	leaf
	nop
	nop
	call	leaf
	ret
endfn back_to_back

fn count
	mov	$100, %ecx
1:	dec	%edi
	loop	1b
	mov	%edi, %eax
	jmp	leaf
endfn count

/* two ways to a join with different offsets in the log: only the later one moves r15 */
fn joins
	cmp	%esi, (%rdi)
	je	1f
	mov	(%rdi), %rdi
1:	mov	(%rdi), %rax
	ret
endfn joins

/* a function that only `private_caller` knows: its ret leaves the log pointer in r15 (keep.c) */
fn private_caller
	call	private
	mov	(%rax), %rax
	ret
endfn private_caller

	.type	private, @function
private: .cfi_startproc
	mov	(%rdi), %rax
	ret
	.cfi_endproc
	.size	private, . - private

/* a transaction: whether it aborts is logged on both ways; eax only where the fallback asks for it */
fn begins
	xbegin	1f
	mov	(%rdi), %rcx
	mov	(%rcx), %rax
	xend
	ret
1:	mov	(%rsi,%rax,8), %eax
	ret
endfn begins

	# what signal handlers return to: five of its bytes are patched, the others stay
	.balign	16
	.cfi_startproc
	nop
	.globl	sigret
	.type	sigret, @function
sigret:
	mov	$15, %rax
	syscall
	.cfi_endproc
	.size	sigret, . - sigret
	.section .note.GNU-stack,"",@progbits
