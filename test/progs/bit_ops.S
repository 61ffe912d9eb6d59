// SPDX-License-Identifier: MIT
// BREAKS: bt/bts/btr/btc mem,reg with offsets far outside the operand and negative; bswap, xadd, movbe,
// lock forms; a result of them used as an address.
// BUILD: cc
#include "main.h"
	.text
	MAIN
	lea	mid(%rip), %rbx
	xor	%esi, %esi
	mov	$-512, %rcx
1:	bts	%rcx, (%rbx)
	adc	$0, %esi
	btc	%ecx, 8(%rbx)
	adc	%esi, %esi
	bt	%cx, -8(%rbx)
	adc	$0, %esi
	lock btr %rcx, (%rbx)
	adc	$0, %esi
	add	$37, %rcx
	cmp	$512, %rcx
	jl	1b
	btsl	$67, (%rbx)
	mov	$0x0500000000000000, %rax
	bswap	%rax
	mov	(%rbx,%rax,8), %rdx
	lock xadd %rax, (%rbx)
	xadd	%eax, 8(%rbx)
	and	$31, %eax
	add	(%rbx,%rax), %sil
	mov	$0x02000000, %eax
	bswap	%eax
	incb	(%rbx,%rax)
	bsf	(%rbx), %rax
	mov	(%rbx,%rax), %dl
	add	%edx, %esi
	PRINT
	.data
	.balign	64
	.fill	256, 1, 0xa5
mid:	.fill	256, 1, 0x3c
	.section .rodata
fmt:	.asciz	"bit_ops %u\n"
	.section .note.GNU-stack, "", @progbits
