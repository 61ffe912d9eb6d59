/* SPDX-License-Identifier: MIT
 *
 * Code that the hand-made Intel PT streams of cases.txt run through. It is never executed. Each instruction has a
 * label; the linker puts .text at 0x401000, .gone at 0x500000, .far at 0x7f1234560000, .code32 at 0x8048000.
 */
	.text
m0:	mov	$3, %ecx
l0:	dec	%ecx
l1:	jnz	l0
m1:	call	f0
m2:	call	*%rax
m3:	jmp	m5
m4:	ud2
m5:	syscall
m6:	nop
m7:	ret

f0:	nop
f1:	ret

p0:	ptwrite	%rax
p1:	nop
p2:	jmp	*%rax

s0:	nop
s1:	jmp	s0

/* calls what is in another image, goes on behind it */
c0:	nop
c1:	call	*%rbx
c2:	nop
c3:	call	f0
c4:	jmp	*%rdx
/* a direct call of what is in no image */
d0:	call	n0
d1:	nop
d2:	jmp	*%rdx

/* an instruction that crosses the border of two pages */
	.org	0xffb
b0:	nop
b1:	movabs	$0x1122334455667788, %rax
b2:	jmp	*%rax

	.section .gone, "ax"
n0:	ret

	.section .far, "ax"
x0:	nop
x1:	je	x3
x2:	nop
x3:	ret
x4:	jmp	*%rcx

	.section .code32, "ax"
	.code32
i0:	inc	%eax /* a REX prefix in 64-bit code: lengths differ */
i1:	push	%es
i2:	jecxz	i0
i3:	call	i6
i4:	int	$0x80
i5:	jmp	*%eax
i6:	ret
