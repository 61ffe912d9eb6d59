/* SPDX-License-Identifier: MIT
 * AVX2 and SSE masked stores and gathers, x87, state saving. */
#include "expect.inc"
	START
	.data
	.balign	64
idx:	.long	0, 4, -4, 1000, 8, 16, 32, 64
mask:	.long	-1, 0, 0x80000000, 0x7fffffff, -1, 0, 0, -1
qidx:	.quad	1, -1, 2, 3
bytes:	.byte	0x80, 0, 0xff, 0x7f, 0, 0, 0, 0x81, 0, 0, 0, 0, 0, 0, 0, 0x80
	.bss
	.balign	64
area:	.skip	1024	/* zero: xrstor checks the header */
	.text
9:	vmovdqa	idx, %ymm1
	X R, idx, 32
9:	vmovdqa	mask, %ymm2
	X R, mask, 32
	lea	512(%rbx), %rax
9:	vpgatherdd %ymm2, 8(%rax,%ymm1,4), %ymm3
	X R, data+520, 4
	X R, data+504, 4
	X R, data+552, 4
	X R, data+776, 4
9:	vmovdqa	mask, %ymm2
	X R, mask, 32
9:	vpmaskmovd %ymm1, %ymm2, (%rbx)
	X W, data, 4
	X W, data+8, 4
	X W, data+16, 4
	X W, data+28, 4
9:	vmaskmovpd 32(%rbx), %xmm2, %xmm4
	/* Quadword signs: dword 1 is 0, dword 3 is 0x7fffffff: no element is active. */
9:	vmovdqa	mask, %ymm2
	X R, mask, 32
9:	vmaskmovps 32(%rbx), %xmm2, %xmm4
	X R, data+32, 4
	X R, data+40, 4
9:	vmovdqa	qidx, %ymm1
	X R, qidx, 32
	vpcmpeqd %ymm2, %ymm2, %ymm2
9:	vgatherqps %xmm2, (%rax,%ymm1,8), %xmm5
	X R, data+520, 4
	X R, data+504, 4
	X R, data+528, 4
	X R, data+536, 4
	vpcmpeqd %ymm2, %ymm2, %ymm2
9:	vmovdqa	idx, %xmm1
	X R, idx, 16
9:	vpgatherdq %xmm2, (%rax,%xmm1,2), %xmm5
	X R, data+512, 8
	X R, data+520, 8
9:	vmovdqa	bytes, %xmm6
	X R, bytes, 16
	mov	%rbx, %rdi
9:	maskmovdqu %xmm6, %xmm1
	X W, data, 1
	X W, data+2, 1
	X W, data+7, 1
	X W, data+15, 1
	vzeroupper
9:	fldl	(%rbx)
	X R, data, 8
9:	fstpt	16(%rbx)
	X W, data+16, 10
9:	fildq	(%rbx)
	X R, data, 8
9:	fistps	(%rbx)
	X W, data, 2
9:	fnstenv	(%rbx)
	X W, data, 28
9:	fldenv	(%rbx)
	X R, data, 28
9:	fnstcw	(%rbx)
	X W, data, 2
9:	fnsave	(%rbx)
	X W, data, 108
9:	frstor	(%rbx)
	X R, data, 108
9:	fxsave	(%rbx)
	X W, data, 512
9:	fxrstor	(%rbx)
	X R, data, 512
	/* x87 and SSE only: legacy area and header, on every processor. */
	mov	$3, %eax
	xor	%edx, %edx
9:	xsave	area
	X W, area, 576
	mov	$7, %eax
9:	xsave	area
	X W, area, 832
9:	xrstor	area
	X R, area, 832
9:	movmskpd %xmm1, %eax
9:	movq	(%rbx), %mm1
	X R, data, 8
9:	movq	bytes, %mm2
	X R, bytes, 8
9:	maskmovq %mm2, %mm1
	X W, data, 1
	X W, data+2, 1
	X W, data+7, 1
	emms
	EXIT
