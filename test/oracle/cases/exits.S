/* SPDX-License-Identifier: MIT
 * Instructions a hypervisor may intercept: the access right after each must not be lost. */
#include "expect.inc"
	START
	xor	%eax, %eax
	xor	%ecx, %ecx
	cpuid
	mov	$data, %ebx
9:	mov	8(%rbx), %rax
	X R, data+8, 8
	xor	%eax, %eax
	cpuid
9:	mov	%rax, data
	X W, data, 8
	rdtsc
9:	mov	data+16, %rax
	X R, data+16, 8
	pause
9:	mov	data+24, %rax
	X R, data+24, 8
	xor	%ecx, %ecx
	xgetbv
9:	mov	data+32, %rax
	X R, data+32, 8
	EXIT
