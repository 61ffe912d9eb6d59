/* SPDX-License-Identifier: MIT
 *
 * rt_prog.S - four functions and, by hand, what an analyzer would make of them
 *
 * Section .ptcopy holds the copy. rt_mkmap.c turns the symbols into a map:
 *   pj_X / cj_X   a MAP_PATCH_JMP at pj_X to cj_X
 *   fx_X          a rip-relative field of the copy that refers to the module
 *   mk_X          a mark field
 *   xo_N / xc_N   copy address xc_N corresponds to original instruction xo_N
 */
#define LP %gs:0x00
#define R15 %gs:0x08

	.text
	.globl t_call, t_vfork, t_log, t_wait
	/* long t_call(nr, a, b, c, d, e, f) */
t_call:
pj_call:
	mov %rdi, %rax
	mov %rsi, %rdi
	mov %rdx, %rsi
	mov %rcx, %rdx
	mov %r8, %r10
	mov %r9, %r8
	mov 8(%rsp), %r9
xo_1:	syscall
o_call:	ret

	.balign 16
t_vfork:
pj_vfork:
	pop %rdx
	nop
	nop
	nop
	nop
	mov $58, %eax
xo_2:	syscall
o_vfork:
	push %rdx
	ret

	.balign 16
	/* void t_log(n): logs n bytes */
t_log:
pj_log:
xo_3:	nop
	nop
	nop
	nop
	nop
1:	dec %rdi
	jnz 1b
	ret

	.balign 16
	/* long t_wait(volatile int *flag): its r15 while it waits is seen by a signal handler */
t_wait:
pj_wait:
	push %r15
	mov $0x12345678, %r15
xo_4:	cmpl $0, (%rdi)
	je xo_4
xo_5:	mov %r15, %rax
	pop %r15
	ret
	/* never executed: an entry that the map has filled with int3 */
	.balign 16
	.globl t_trap
t_trap:
	mov $7, %eax
	ret
	.balign 16
	.globl t_end
t_end:	nop

	.section .ptcopy, "a", @progbits
	.globl ptcopy, ptcopy_end
ptcopy:
	.macro enter name
	mov %r15, R15
	mov LP, %r15
	movl $3, (%r15)		/* RUN_MARK_ENTRYX, site added by the fix-up */
	mk_\name = . - 4
	mov %rsp, 3(%r15)
	lea 11(%r15), %r15
	.endm
	.macro leave
	mov %r15, LP
	mov R15, %r15
	ret
	.endm
	.macro hook name
	lea 1f(%rip), %rcx
	mov %rcx, %gs:0x30
	lea o_\name(%rip), %rcx
	fx_\name = . - 4
	mov %rcx, %gs:0x38
	jmp *%gs:0x48
1:
	.endm
cj_call:
	enter call
	mov %rdi, %rax
	mov %rsi, %rdi
	mov %rdx, %rsi
	mov %rcx, %rdx
	mov %r8, %r10
	mov %r9, %r8
	mov 8(%rsp), %r9
	hook call
	leave
cj_vfork:
	enter vfork
	pop %rdx
	mov $58, %eax
	hook vfork
	push %rdx
	leave
cj_log:
	enter log
2:	movb $0x77, (%r15)
	lea 1(%r15), %r15
	test $1 << 20, %r15d
	jne 4f
3:	dec %rdi
	jnz 2b
	leave
xc_3:
4:	mov %rax, %gs:0x28
	lea 3b(%rip), %rax
	mov %rax, %gs:0x30
	mov %gs:0x28, %rax
	jmp *%gs:0x40
cj_wait:
	enter wait
	push R15
	movq $0x12345678, R15
xc_4:
5:	cmpl $0, (%rdi)
	je 5b
xc_5:	mov R15, %rax
	pop R15
	leave
ptcopy_end:
	.section .note.GNU-stack, "", @progbits
