// SPDX-License-Identifier: MIT
// BREAKS: the rewriting of every kind of instruction that names r15: as data in all widths, as base and
// as index, together with high byte registers, implicit operands, VEX and EVEX encodings.
// BUILD: cc -no-pie
// Each block folds r15 and flags into the sum in rbx; the sum is printed.
// Not position independent, because addresses go into the sum.
	.macro	FOLD
	pushf
	pop	%rax
	and	$0x8d5, %eax
	rol	$5, %rbx
	xor	%rax, %rbx
	add	%r15, %rbx
	.endm

	.text
	.globl	main
	.type	main, @function
main:	.cfi_startproc
	push	%r15
	.cfi_def_cfa_offset 16
	.cfi_offset %r15, -16
	push	%rbx
	.cfi_def_cfa_offset 24
	.cfi_offset %rbx, -24
	push	%r14
	.cfi_def_cfa_offset 32
	.cfi_offset %r14, -32
	push	%rbp
	.cfi_def_cfa_offset 40
	.cfi_offset %rbp, -40
	sub	$24, %rsp
	.cfi_def_cfa_offset 64
	xor	%ebx, %ebx
	lea	buf(%rip), %r14

	/* Data, all widths. */
	movabs	$0x1122334455667788, %r15
	FOLD
	mov	%r15b, (%r14)
	mov	%r15w, 8(%r14)
	mov	%r15d, 16(%r14)
	mov	%r15, 24(%r14)
	add	24(%r14), %r15
	FOLD
	add	%r15d, 16(%r14)
	adc	8(%r14), %r15w
	FOLD
	mov	$0x5a, %r15b
	FOLD
	mov	$0x1234, %r15w
	mov	$-2, %r15d
	FOLD
	movzbl	(%r14), %r15d
	FOLD
	movzx	%r15w, %ecx
	add	%rcx, %rbx
	movsbq	(%r14), %r15
	movslq	16(%r14), %r15
	movzbw	(%r14), %r15w
	FOLD
	imul	$77, %r15, %r15
	FOLD
	imul	24(%r14), %r15
	FOLD
	lea	5(%r15,%r15,4), %r15
	neg	%r15
	FOLD
	not	%r15d
	bswap	%r15
	FOLD
	rol	$7, %r15w
	mov	$3, %cl
	shl	%cl, %r15
	FOLD
	shrd	%cl, %r15, 24(%r14)
	shld	$5, %r15, %r15
	FOLD
	inc	%r15b
	dec	%r15w
	test	%r15, %r15
	FOLD
	cmp	%r15, 24(%r14)
	FOLD
	sbb	%r15, %r15
	FOLD

	/* With high byte registers: no REX prefix can be added next to them. */
	mov	$0xabcd, %eax
	lea	40(%r14), %r15
	mov	%ah, %dl
	movzbl	%ah, %ecx
	mov	%cl, (%r15)
	mov	%ah, %ch
	mov	%ch, %al
	add	%al, (%r15)
	mov	(%r15), %al
	xchg	%al, %ah
	add	%rax, %rbx

	/* Base and index. */
	lea	64(%r14), %r15
	movl	$10, (%r15)
	movl	$11, 4(%r15)
	movq	$12, 128(%r15)
	mov	$2, %ecx
	mov	(%r15,%rcx,2), %eax
	add	%rax, %rbx
	mov	%r15, %rdx
	mov	$3, %r15d
	mov	(%rdx,%r15,8), %rax
	mov	%rax, 0x40(%rdx,%r15,4)
	add	-4(%rdx,%r15,4), %ebx
	lea	64(%r14), %r15
	mov	%r15, (%r15)
	mov	(%r15), %r15
	mov	8(%r15), %r15
	FOLD
	lea	64(%r14), %r15
	push	(%r15)
	pop	8(%r15)
	push	%r15
	push	$0
	pop	%r15
	FOLD
	pop	%r15
	incl	4(%r15)
	lock addl $3, 4(%r15)
	FOLD
	sub	%r14, %r15
	FOLD

	/* Implicit operands next to r15. */
	mov	$7, %r15d
	mov	$100, %eax
	mul	%r15
	FOLD
	mov	$1000, %eax
	xor	%edx, %edx
	div	%r15
	add	%rdx, %rbx
	mov	$-1000, %rax
	cqo
	idiv	%r15d
	add	%rax, %rbx
	imul	%r15
	xchg	%r15, %rax
	FOLD
	lea	24(%r14), %rdx
	xchg	%r15, (%rdx)
	FOLD
	xchg	%r15b, (%rdx)
	mov	(%rdx), %rax
	cmpxchg	%r15, (%rdx)
	FOLD
	mov	$5, %r15d
	lock cmpxchg %r15d, (%rdx)
	FOLD
	mov	%rdx, %r15
	lock cmpxchg %ecx, (%r15)
	xadd	%r15, (%rdx)
	FOLD
	cmp	%rax, %rax
	setz	%r15b
	FOLD
	lea	64(%r14), %r15
	setnz	(%r15)
	mov	$9, %eax
	cmovz	%rax, %r15
	FOLD
	cmovnz	8(%rdx), %r15d
	FOLD
	bts	$3, %r15
	mov	$130, %r15d
	btc	%r15, (%r14)
	FOLD
	bsf	%r15, %r15
	popcnt	%r15, %r15
	FOLD
	movd	%r15d, %xmm1
	movq	%r15, %xmm2
	cvtsi2sd %r15, %xmm3
	cvttsd2si %xmm3, %r15
	FOLD
	pextrq	$0, %xmm2, %r15
	movmskpd %xmm3, %r15d
	crc32q	24(%r14), %r15
	FOLD
	lea	24(%r14), %r15
	movups	(%r15), %xmm4
	movdqu	%xmm4, 64(%r15)
	movsd	8(%r15), %xmm5
	fildq	(%r15)
	fistpq	8(%r15)
	prefetcht0 (%r15)
	cmpxchg8b (%r15)
	FOLD

	/* BMI: three operands, VEX. */
	mov	$0x0f0f, %ecx
	mov	$0x1ff8, %r15d
	andn	%rcx, %r15, %rdx
	add	%rdx, %rbx
	andn	%r15, %rcx, %r15
	FOLD
	mov	$0x0804, %r15d
	bextr	%r15, %rcx, %rdx
	add	%rdx, %rbx
	pdep	%rcx, %r15, %r15
	FOLD
	pext	24(%r14), %r15, %r15
	FOLD
	mov	%rcx, %rdx
	mulx	%r15, %r15, %rcx
	FOLD
	mov	$13, %r15d
	shlx	%r15, %rcx, %r15
	rorx	$11, %r15, %r15
	blsr	%r15, %r15
	tzcnt	%r15, %r15
	FOLD
	adcx	%r15, %r15
	adox	24(%r14), %r15
	FOLD

	/* AVX with r15 as base and as index, and a gather from it. */
	lea	64(%r14), %r15
	vmovdqu	(%r15), %ymm1
	vmovdqu	%ymm1, 64(%r15)
	vpaddd	32(%r15), %ymm1, %ymm1
	vpxor	%xmm2, %xmm2, %xmm2
	vpcmpeqd %ymm3, %ymm3, %ymm3
	vpgatherdd %ymm3, 4(%r15,%ymm2,4), %ymm4
	vpmaskmovd %ymm4, %ymm1, (%r15)
	vmovd	%xmm4, %eax
	add	%rax, %rbx
	mov	$16, %r15d
	vmovups	(%r14,%r15,4), %xmm1
	vpinsrq	$1, %r15, %xmm1, %xmm1
	vpextrq	$1, %xmm1, %r15
	vzeroupper
	FOLD

	/* String instructions next to a live r15. */
	lea	(%r14), %rsi
	lea	128(%r14), %rdi
	mov	$5, %ecx
	rep movsb
	mov	$0x77, %r15d
	mov	$3, %ecx
	mov	%r15, %rax
	rep stosb
	FOLD

	/* A loop counter and a bound in r15, and memory compared with it. */
	xor	%r15d, %r15d
1:	add	(%r14,%r15,8), %rbx
	inc	%r15
	cmp	$12, %r15
	jb	1b
	FOLD
	mov	%rsp, %r15
	mov	$1, %eax
	push	%rax
	mov	%r15, %rsp
	sub	%rsp, %r15
	FOLD

	lea	fmt(%rip), %rdi
	mov	%rbx, %rsi
	xor	%eax, %eax
	call	printf@PLT
	xor	%eax, %eax
	add	$24, %rsp
	.cfi_def_cfa_offset 40
	pop	%rbp
	.cfi_def_cfa_offset 32
	pop	%r14
	.cfi_def_cfa_offset 24
	pop	%rbx
	.cfi_def_cfa_offset 16
	pop	%r15
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	main, . - main
	.bss
	.balign	64
buf:	.skip	512
	.section .rodata
fmt:	.asciz	"r15_forms %lx\n"
	.section .note.GNU-stack, "", @progbits
