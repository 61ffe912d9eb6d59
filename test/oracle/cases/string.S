/* SPDX-License-Identifier: MIT
 * String instructions: one set of records per iteration, none for a zero count. */
#include "expect.inc"
	START
	cld
	lea	(%rbx), %rsi
	lea	256(%rbx), %rdi
	mov	$3, %ecx
9:	rep movsl
	X R, data, 4
	X W, data+256, 4
	X R, data+4, 4
	X W, data+260, 4
	X R, data+8, 4
	X W, data+264, 4
	xor	%ecx, %ecx
	rep movsb
	rep stosq
	repe cmpsb
	repne scasb
	rep lodsb
9:	movsb
	X R, data+12, 1
	X W, data+268, 1
9:	stosw
	X W, data+269, 2
	std
	lea	64(%rbx), %rdi
	mov	$4, %ecx
9:	rep stosq
	X W, data+64, 8
	X W, data+56, 8
	X W, data+48, 8
	X W, data+40, 8
	cld
	/* Equal for two bytes, different at the third: three iterations of eight. */
9:	movb	$1, 1026(%rbx)
	X W, data+1026, 1
9:	movb	$2, 2050(%rbx)
	X W, data+2050, 1
	lea	1024(%rbx), %rsi
	lea	2048(%rbx), %rdi
	mov	$8, %ecx
9:	repe cmpsb
	X R, data+1024, 1
	X R, data+2048, 1
	X R, data+1025, 1
	X R, data+2049, 1
	X R, data+1026, 1
	X R, data+2050, 1
	lea	1024(%rbx), %rdi
	mov	$1, %al
	mov	$-1, %rcx
9:	repne scasb
	X R, data+1024, 1
	X R, data+1025, 1
	X R, data+1026, 1
	lea	(%rbx), %rsi
	mov	$2, %ecx
9:	rep lodsw
	X R, data, 2
	X R, data+2, 2
	/* Address size 32: esi, edi and ecx count, their upper halves do not. */
	movabs	$0x500000000 + data, %rsi
	movabs	$0x500000000 + data + 128, %rdi
	movabs	$0x500000001, %rcx
9:	addr32 rep movsb
	X R, data, 1
	X W, data+128, 1
	EXIT
