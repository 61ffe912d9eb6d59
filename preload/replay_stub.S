/* SPDX-License-Identifier: MIT
 *
 * replay_stub.S - executes a plan of system calls, in memory that the plan leaves alone, and goes on to the runtime
 *
 * Position-independent, without a stack until its end, without data: nothing of the process that it was
 * compiled for is there any more while it runs.
 */
#define C_NR 0		/* struct plan_call */
#define C_ARG 8
#define C_WANT 56
#define C_SIZE 64
#define A_CALL 0	/* struct stub_args */
#define A_N 8
#define A_ENTRY 16
#define A_INFO 24
#define A_STACK 32
#define A_REPORT 40
#define NR_WRITE 1
#define NR_EXIT_GROUP 231
#define FAILED 87	/* REPLAY_EXIT_FAILED */

	.section .rodata
	.globl stub_begin, stub_end
	.balign 16
stub_begin:				/* (const struct stub_args *) */
	mov %rdi, %rbx
	mov A_CALL(%rbx), %rbp
	mov A_STACK(%rbx), %rsp
	xor %r12d, %r12d
1:	cmp A_N(%rbx), %r12
	je 3f
	mov C_NR(%rbp), %rax
	mov C_ARG(%rbp), %rdi
	mov C_ARG + 8(%rbp), %rsi
	mov C_ARG + 16(%rbp), %rdx
	mov C_ARG + 24(%rbp), %r10
	mov C_ARG + 32(%rbp), %r8
	mov C_ARG + 40(%rbp), %r9
	syscall
	mov C_WANT(%rbp), %rcx
	cmp $-1, %rcx			/* PLAN_ANY */
	je 2f
	cmp %rax, %rcx
	jne 4f
2:	inc %r12
	add $C_SIZE, %rbp
	jmp 1b
3:	mov A_INFO(%rbx), %rdi
	mov A_ENTRY(%rbx), %rax
	xor %ebp, %ebp
	jmp *%rax
4:	push %rax
	push %r12
	mov $NR_WRITE, %eax
	mov A_REPORT(%rbx), %rdi
	mov %rsp, %rsi
	mov $16, %edx
	syscall
5:	mov $NR_EXIT_GROUP, %eax
	mov $FAILED, %edi
	syscall
	jmp 5b
stub_end:
	.section .note.GNU-stack, "", @progbits
