/* SPDX-License-Identifier: MIT
 * Plain operands: addressing forms, order, sizes, implicit stack operands. */
#include "expect.inc"
	START
	mov	$3, %ecx
9:	mov	8(%rbx), %rax
	X R, data+8, 8
9:	mov	%al, 1(%rbx,%rcx,4)
	X W, data+13, 1
9:	addl	$1, data+16(%rip)
	X R, data+16, 4
	X W, data+16, 4
9:	mov	data+24, %ax
	X R, data+24, 2
	lea	-16(%rbx), %rdx
9:	mov	0x20(%edx,%ecx,8), %eax
	X R, data+40, 4
	mov	$-8, %rsi
9:	mov	64(%rbx,%rsi,2), %eax
	X R, data+48, 4
9:	push	%rax
	X W, stack-8, 8
9:	push	8(%rbx)
	X R, data+8, 8
	X W, stack-16, 8
9:	pushw	$7
	X W, stack-18, 2
9:	popw	(%rbx)
	X R, stack-18, 2
	X W, data, 2
9:	pop	8(%rsp)
	X R, stack-16, 8
	X W, stack, 8
9:	pop	%rax
	X R, stack-8, 8
9:	call	sub
	X W, stack-8, 8
	XAT subret, R, stack-8, 8
9:	movq	$sub, (%rbx)
	X W, data, 8
9:	call	*(%rbx)
	X R, data, 8
	X W, stack-8, 8
	XAT subret, R, stack-8, 8
9:	push	%fs
	X W, stack-8, 8
9:	pop	%fs
	X R, stack-8, 8
9:	push	$1
	X W, stack-8, 8
	mov	%rsp, %rbp
9:	leave
	X R, stack-8, 8
	mov	$data+256, %ebp
9:	enter	$32, $3
	X W, stack-8, 8
	X R, data+248, 8
	X W, stack-16, 8
	X R, data+240, 8
	X W, stack-24, 8
	X W, stack-32, 8
	/* rbp is now stack-8. */
9:	leave
	X R, stack-8, 8
9:	xchg	%rax, (%rbx)
	X R, data, 8
	X W, data, 8
9:	lock xadd %eax, 4(%rbx)
	X R, data+4, 4
	X W, data+4, 4
9:	cmpxchg	%ecx, 8(%rbx)
	X R, data+8, 4
	X W, data+8, 4
9:	lock cmpxchg16b 16(%rbx)
	X R, data+16, 16
	X W, data+16, 16
	xor	%eax, %eax
9:	cmovnz	8(%rbx), %eax
	X R, data+8, 4
9:	setz	(%rbx)
	X W, data, 1
9:	cmpb	$1, (%rbx)
	X R, data, 1
	nopw	8(%rbx,%rax,1)
	lea	8(%rbx), %rax
9:	prefetcht0 0x123(%rbx)
	X P, data+0x123, 64
	mov	$0x800000000000, %rax
9:	prefetchnta 8(%rax,%rax)
	X P, 0x1000000000008, 64
9:	clflush	3(%rbx)
	X P, data+3, 64
	mov	$-3, %rax
9:	bt	%rax, 64(%rbx)
	X R, data+56, 8
	mov	$-65, %eax
9:	btsl	%eax, 64(%rbx)
	X R, data+52, 4
	X W, data+52, 4
	mov	$17, %eax
9:	btw	%ax, 64(%rbx)
	X R, data+66, 2
9:	btl	$70, 64(%rbx)
	X R, data+64, 4
	mov	$5, %eax
9:	xlat
	X R, data+5, 1
	/* fs and gs bases. */
	mov	$158, %eax
	mov	$0x1002, %edi	/* ARCH_SET_FS */
	mov	$data+512, %esi
	syscall
9:	mov	%fs:-8, %rax
	X R, data+504, 8
	mov	$-16, %rdx
9:	mov	%fs:16(%rdx), %eax
	X R, data+512, 4
	EXIT
sub:	nop
subret:	ret
