/* SPDX-License-Identifier: MIT
 * AVX-512: masks, broadcasts, compress and expand, gathers and scatters.
 * NEEDS: avx512f avx512bw avx512vl */
#include "expect.inc"
	START
	.data
	.balign	64
idx:	.long	0, 4, -4, 1000, 8, 16, 32, 64, 1, 2, 3, 4, 5, 6, 7, -8
	.text
	lea	512(%rbx), %rax
9:	vmovdqa32 idx, %zmm17
	X R, idx, 64
	mov	$0x8005, %ecx
	kmovw	%ecx, %k1
9:	vpgatherdd 8(%rax,%zmm17,4), %zmm3{%k1}
	X R, data+520, 4
	X R, data+504, 4
	X R, data+488, 4
	kmovw	%ecx, %k1
9:	vpscatterdd %zmm3, (%rax,%zmm17,4){%k1}
	X W, data+512, 4
	X W, data+496, 4
	X W, data+480, 4
	kmovw	%ecx, %k1
9:	vmovdqu32 (%rbx), %zmm2{%k1}
	X R, data, 4
	X R, data+8, 4
	X R, data+60, 4
9:	vmovdqu16 %zmm2, (%rbx){%k1}
	X W, data, 2
	X W, data+4, 2
	X W, data+30, 2
9:	vpcompressd %zmm2, (%rbx){%k1}
	X W, data, 4
	X W, data+4, 4
	X W, data+8, 4
9:	vpexpandd 64(%rbx), %zmm2{%k1}
	X R, data+64, 4
	X R, data+68, 4
	X R, data+72, 4
9:	vpaddd	(%rbx), %zmm2, %zmm2{%k1}
	X R, data, 4
	X R, data+8, 4
	X R, data+60, 4
9:	vpaddd	(%rbx){1to16}, %zmm2, %zmm2{%k1}
	X R, data, 4
9:	vpmovdb	%zmm2, (%rbx){%k1}
	X W, data, 1
	X W, data+2, 1
	X W, data+15, 1
9:	vpmovzxbd (%rbx), %zmm2{%k1}
	X R, data, 1
	X R, data+2, 1
	X R, data+15, 1
	/* No correspondence of elements: all is read. */
9:	vpermd	(%rbx), %zmm2, %zmm2{%k1}
	X R, data, 64
9:	vbroadcasti32x4 (%rbx), %zmm2{%k1}
	X R, data, 16
	mov	$0x8000, %ecx
	kmovw	%ecx, %k1
	/* Only bit 15 is set: beyond the elements of a ymm register. */
9:	vpaddd	(%rbx){1to8}, %ymm2, %ymm2{%k1}
9:	vpaddd	(%rbx), %ymm2, %ymm2{%k1}
	kxorw	%k1, %k1, %k1
9:	vmovdqu32 (%rbx), %zmm2{%k1}
9:	vpbroadcastd (%rbx), %zmm2{%k1}
9:	vpcompressd %zmm2, (%rbx){%k1}
9:	vmovups	(%rbx), %zmm2
	X R, data, 64
9:	vpaddd	(%rbx){1to16}, %zmm2, %zmm2
	X R, data, 4
9:	kmovq	(%rbx), %k3
	X R, data, 8
	EXIT
