/* SPDX-License-Identifier: MIT
 *
 * odd.S - functions no compiler makes, for unit_emit.c: r15 everywhere, calls back to back, calls
 * through r15 and rsp, loop and jrcxz, flags as return values, tail jumps
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

fn f_r15
	push	%r15
	push	%r14
	sub	$40, %rsp
	mov	%rsp, %r15
	mov	%rdi, (%r15)
	mov	%rsi, 8(%r15)
	mov	$3, %r14d
1:	add	(%r15,%r14,8), %rdi
	mov	%rdi, 16(%r15)
	lock xadd %rdi, 8(%r15)
	dec	%r14
	jnz	1b
	xor	%r15d, %r15d
	add	%rdi, %r15
	imul	$77, %r15, %r15
	bswap	%r15
	adc	%r15d, %r15d
	lea	4(%r15,%r15,2), %rax
	xchg	%r15, %rsi
	add	%rsi, %rax
	movzbl	%r15b, %ecx
	add	%rcx, %rax
	add	$40, %rsp
	pop	%r14
	pop	%r15
	ret
endfn f_r15

fn plus1
	inc	%rdi
	ret
endfn plus1
fn twice
	add	%rdi, %rdi
	ret
endfn twice
fn carry
	add	%rsi, %rdi
	ret
endfn carry

/* short return sites of every length */
fn f_calls
	push	%rbx
	call	plus1
	call	twice
	call	plus1
	nop
	call	twice
	xor	%esi, %edi
	call	plus1
	mov	%edi, %eax
	nop
	call	twice
	mov	%rdi, %rax
	pop	%rbx
	ret
endfn f_calls

/* a flag as the result */
fn f_flags
	mov	$-1, %rax
	call	carry
	adc	$7, %rax
	call	carry
	sbb	%rdi, %rax
	ret
endfn f_flags

fn f_icalls
	push	%r15
	push	%r14
	push	%r13
	lea	plus1(%rip), %r15
	push	%r15
	call	*%r15
	mov	%rsp, %r14
	call	*(%rsp)
	call	*(%r14)
	lea	twice(%rip), %r15
	push	%r15
	mov	%rsp, %r15
	call	*8(%rsp)
	call	*(%r15)
	call	*8(%r15)
	add	$16, %rsp
	mov	%rdi, %rax
	pop	%r13
	pop	%r14
	pop	%r15
	ret
endfn f_icalls

fn f_loops
	xor	%eax, %eax
	mov	%edi, %ecx
	and	$31, %ecx
	jrcxz	2f
1:	add	%rsi, %rax
	rol	$3, %rax
	loop	1b
2:	mov	%esi, %ecx
	and	$15, %ecx
	inc	%ecx
3:	inc	%rax
	test	$4, %al
	loopne	3b
	add	%rcx, %rax
	ret
endfn f_loops

fn f_tail
	push	%r15
	mov	%rdi, %r15
	shr	%r15
	mov	%r15, %rdi
	pop	%r15
	test	$1, %sil
	jnz	taken
	jmp	f_calls
endfn f_tail
fn taken
	mov	%rdi, %rax
	add	%rsi, %rax
	ret
endfn taken

fn f_ijump
	push	%r15
	lea	table(%rip), %r15
	and	$3, %edi
	movslq	(%r15,%rdi,4), %rax
	add	%r15, %rax
	jmp	*%rax
0:	lea	1(%rsi), %rax
	jmp	9f
1:	lea	3(%rsi), %rax
	jmp	9f
2:	lea	(%rsi,%rsi), %rax
	jmp	9f
3:	mov	%rsi, %rax
	not	%rax
9:	pop	%r15
	ret
endfn f_ijump
	.section .rodata
	.balign 4
table:	.long	0b-table, 1b-table, 2b-table, 3b-table
	.text

fn f_rep
	push	%r15
	sub	$128, %rsp
	mov	%rsp, %r15
	mov	%rdi, %rax
	mov	%r15, %rdi
	mov	$8, %ecx
	rep stosq
	mov	%r15, %rdi
	mov	%sil, 13(%r15)
	mov	%esi, %eax
	mov	$64, %ecx
	repne scasb
	lea	(%rcx,%rdi), %rax
	sub	%r15, %rax
	add	(%r15), %rax
	add	$128, %rsp
	pop	%r15
	ret
endfn f_rep

/* loops that keep r15 in a register: read, written, nested, two exits, a value logged inside */
fn f_r15loops
	push	%r15
	push	%rbx
	sub	$64, %rsp
	mov	%rsp, %rbx
	and	$63, %edi
	mov	%rdi, %r15
	xor	%eax, %eax
	mov	%rsi, (%rbx)
	movq	$8, 8(%rbx)
	movq	$16, 16(%rbx)
	movq	$0, 24(%rbx)
1:	add	%r15, %rax
	mov	$3, %ecx
2:	lea	(%rax,%r15,2), %rax
	mov	8(%rbx), %rdx
	add	(%rbx,%rdx), %rax
	dec	%ecx
	jnz	2b
	test	$0x80, %al
	jnz	3f
	sub	$1, %r15
	jns	1b
	add	%r15, %rax
	jmp	4f
3:	lea	7(%rax,%r15), %rax
4:	add	$64, %rsp
	pop	%rbx
	pop	%r15
	ret
endfn f_r15loops

fn f_syscall
	push	%rbx
	mov	$39, %eax
	syscall
	mov	%rax, %rbx
	mov	$39, %eax
	syscall
	cmp	%rbx, %rax
	sete	%al
	movzbl	%al, %eax
	add	%rdi, %rax
	pop	%rbx
	ret
endfn f_syscall
	.section .note.GNU-stack,"",@progbits
