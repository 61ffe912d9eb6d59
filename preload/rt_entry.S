/* SPDX-License-Identifier: MIT
 *
 * rt_entry.S - where control enters and leaves the runtime
 *
 *   ld.so ──▶ rt_ctor ──▶ rt_init() ──▶ back to ld.so, whose return site is patched by then
 *
 *   copy ──▶ rt_full_entry ──▶ rt_chunk_full() ──▶ tcb.resume
 *   copy ──▶ rt_back_entry: RUN_EV_BACK ──▶ tcb.resume
 *   copy ──▶ rt_sys_entry: ordinary call ─────────▶ mark ─▶ tcb.resume
 *                 └─▶ rt_slow_entry ──▶ rt_syscall() ─┬─▶ rt_finish ─▶ tcb.resume
 *                                                     ├─▶ rt_real: the call itself ─▶ rt_syscall_post()
 *                                                     ├─▶ rt_clone: the same; a child ─▶ rt_born() ─▶ rt_finish
 *                                                     ├─▶ rt_exit
 *                                                     └─▶ rt_leave ─▶ original text
 *   copy ──▶ rt_reach_… ──▶ rt_reach() ──▶ back (replaying)
 *   kernel ──▶ rt_sig_entry ──▶ rt_signal() ─┬─▶ rt_sig_open ─▶ the program's handler
 *                                            └─▶ sigreturn: back to where it was
 *
 * A signal may arrive between any two instructions while the program's mask is in force.
 * Therefore rsp is the program's at all those places, no memory of its stack is touched, and
 * the labels below let rt_sigwhere.c rebuild the program's registers at each of them. The
 * runtime's C code runs with every signal blocked, or held (rt_hold.c), on its own stack.
 */
#include "rt_off.h"

#define SV(r) %gs:(T_SV + r)
#define OUT(r) rt_out + r(%rip)
#define NR_RT_SIGPROCMASK 14
#define NR_PAUSE 34
#define NR_ARCH_PRCTL 158
#define ARCH_SET_GS 0x1001
#define SIG_SETMASK 2

	.macro save_all
	mov %rcx, SV(R_RCX)
	mov %rdx, SV(R_RDX)
	mov %rbx, SV(R_RBX)
	mov %rsp, SV(R_RSP)
	mov %rbp, SV(R_RBP)
	mov %rsi, SV(R_RSI)
	mov %rdi, SV(R_RDI)
	mov %r8, SV(R_R8)
	mov %r9, SV(R_R9)
	mov %r10, SV(R_R10)
	mov %r11, SV(R_R11)
	mov %r12, SV(R_R12)
	mov %r13, SV(R_R13)
	mov %r14, SV(R_R14)
	mov %r15, SV(R_R15)
	mov %rax, SV(R_RAX)
	.endm

	/* everything but rsp; flags first, they need rax */
	.macro load_all
	mov SV(R_FLAGS), %rax
	add $0x7f, %al
	sahf
	mov SV(R_RCX), %rcx
	mov SV(R_RDX), %rdx
	mov SV(R_RBX), %rbx
	mov SV(R_RBP), %rbp
	mov SV(R_RSI), %rsi
	mov SV(R_RDI), %rdi
	mov SV(R_R8), %r8
	mov SV(R_R9), %r9
	mov SV(R_R10), %r10
	mov SV(R_R11), %r11
	mov SV(R_R12), %r12
	mov SV(R_R13), %r13
	mov SV(R_R14), %r14
	mov SV(R_R15), %r15
	mov SV(R_RAX), %rax
	.endm

	.macro block_signals
	mov $NR_RT_SIGPROCMASK, %eax
	mov $SIG_SETMASK, %edi
	lea rt_allmask(%rip), %rsi
	mov %gs:T_SELF, %rdx
	add $(T_SV + R_MASK), %rdx
	mov $8, %r10d
	syscall
	.endm

	/* block_signals, or what is as good and cheaper (rt_hold.c) */
	.macro hold_signals
	mov SV(R_RSP), %rax
	sub %gs:T_ALT_LO, %rax
	cmp %gs:T_ALT_SIZE, %rax
	jb 8f
	movl $1, %gs:T_LAZY
	jmp 9f
8:	block_signals
9:
	.endm

	.macro unblock_signals
	mov SV(R_RSP), %rsp
	mov $NR_RT_SIGPROCMASK, %eax
	mov $SIG_SETMASK, %edi
	mov %gs:T_SELF, %rsi
	add $(T_SV + R_MASK), %rsi
	xor %edx, %edx
	mov $8, %r10d
	syscall
	.endm

	.macro release_signals
	mov SV(R_RSP), %rsp
	cmpl $0, %gs:T_LAZY
	je 8f
	movl $0, %gs:T_LAZY
	cmpl $0, %gs:T_HELD	/* if so, they are all blocked by now */
	je 9f
	call_c rt_hold_give
8:	unblock_signals
9:
	.endm

	/* C code expects DF clear; the program may have set it. What of RFLAGS the hook has not put aside is told the C code by
	 * tcb.rflags, which may be another TCB's when that comes back */
	.macro call_c func
	mov %gs:T_STACK, %rsp
	pushfq
	popq %gs:T_RFLAGS
	pushq %gs:T_RFLAGS
	cld
	mov %gs:T_SELF, %rdi
	call \func
	popfq
	.endm

	/* RUN_EV_TIME at the log pointer, which stays. rax is lost; rdx must have been saved */
	.macro time_stamp
	rdtsc
	mov %eax, 4(%r15)
	mov %edx, 8(%r15)
	movl $(6 | 10 << 3), (%r15)	/* RUN_MARK_EVENT | RUN_EV_TIME << RUN_MARK_ID_SHIFT */
	mov SV(R_RDX), %rdx
	.endm

	/* what the kernel gives a handler, from its frame */
	.macro handler_args
	mov 8 + UC_R10(%rsp), %r10
	mov 8 + UC_R11(%rsp), %r11
	mov 8 + UC_RCX(%rsp), %rcx
	lea 8(%rsp), %rdx
	lea 8 + UC_SIZE(%rsp), %rsi
	mov (%rsi), %edi		/* si_signo */
	mov $0, %eax
	.endm

	.macro label name
	.hidden \name
	.globl \name
\name:
	.endm

	.section .init_array, "aw", @init_array
	.balign 8
	.quad rt_ctor

	.text
label rt_text_lo

/* rt_ctor(argc, argv, envp): called by ld.so. On return every caller-saved register is zero and
 * RFLAGS is what xor leaves, so that the start state in start.bin is exact. */
label rt_ctor
	lea rt_ctor_regs(%rip), %rax
	mov %rbx, R_RBX(%rax)
	mov %rbp, R_RBP(%rax)
	mov %r12, R_R12(%rax)
	mov %r13, R_R13(%rax)
	mov %r14, R_R14(%rax)
	mov %r15, R_R15(%rax)
	lea 8(%rsp), %rcx
	mov %rcx, R_RSP(%rax)
	mov (%rsp), %rcx
	mov %rcx, R_RIP(%rax)
	/* the C code must not disturb the stack below rsp: it is part of the start state */
	mov %rsp, %rbx
	lea rt_stack_top(%rip), %rsp
	mov %rdx, %rdi
	mov %rax, %rsi
	call rt_init
	mov %rbx, %rsp
	mov rt_ctor_regs + R_RBX(%rip), %rbx
	test %eax, %eax
	jnz 2f
1:	xor %ecx, %ecx
	xor %edx, %edx
	xor %esi, %esi
	xor %edi, %edi
	xor %r8d, %r8d
	xor %r9d, %r9d
	xor %r10d, %r10d
	xor %r11d, %r11d
	xor %eax, %eax
	ret
2:	/* PTRACE_ORACLE: tell the single-stepping parent that the trace starts here */
	movabs $0x5054524143455354, %rax
	mov (%rsp), %rdi
	lea 8(%rsp), %rsi
	int3
	jmp 1b

/* rt_replay_entry(const struct replay_info *): the library's entry point, from ptrace-replay */
label rt_replay_entry
	lea rt_stack_top(%rip), %rsp
	call rt_replay_init
	jmp rt_leave

label rt_full_entry
	mov %r15, %gs:T_LP
	save_all
label rt_full_regs
	lahf
	seto %al
	mov %rax, SV(R_FLAGS)
label rt_full_saved
	block_signals
	call_c rt_chunk_full
	test %eax, %eax
	jnz rt_leave
	unblock_signals
	load_all
	jmp *%gs:T_RESUME
label rt_full_end

/* Untraced code has come back. All stores but the last are behind the log pointer: until then all can be done again. */
label rt_back_entry
	mov %gs:T_LP, %r15
	mov %rax, SV(R_RAX)
label rt_back_rax
	movl $(6 | 11 << 3), (%r15)	/* RUN_MARK_EVENT | RUN_EV_BACK << RUN_MARK_ID_SHIFT */
	movq $RUN_BACK_SIZE, 4(%r15)
	mov %gs:T_RESUME, %rax
	mov %rax, 12(%r15)
	mov %rsp, 20(%r15)
	mov %rbx, 28(%r15)
	mov %rbp, 36(%r15)
	mov %r12, 44(%r15)
	mov %r13, 52(%r15)
	mov %r14, 60(%r15)
	mov %gs:T_R15, %rax
	mov %rax, 68(%r15)
	mov SV(R_RAX), %rax
label rt_back_told
	lea 12 + RUN_BACK_SIZE(%r15), %r15
label rt_back_done
	jmp *%gs:T_RESUME
label rt_back_end

label rt_sys_entry
	mov %r15, %gs:T_LP
	movl $1, %gs:T_CALLING
	mov %rax, SV(R_NR)
label rt_sys_nr
	mov %rax, %rcx
	lahf
	seto %al
	mov %rax, SV(R_FLAGS)
label rt_sys_flags
	cmp $RT_NSYS, %rcx
	jae 1f
	lea rt_special(%rip), %rax
	cmpb $0, (%rax, %rcx)
	jne rt_slow_entry
1:	cmpb $0, rt_slow_all(%rip)
	jne rt_slow_entry
	cmpl $0, %gs:T_STAMP
	je 2f
	mov %rdx, SV(R_RDX)
label rt_sys_early
	time_stamp
	lea 12(%r15), %r15
	mov %r15, %gs:T_LP
label rt_sys_ready
2:	mov SV(R_FLAGS), %rax
	add $0x7f, %al
	sahf
	mov %rcx, %rax
label rt_sys_call
	syscall
label rt_sys_after
	/* no flag changes from here on: the kernel returns the program's, and r11 is a copy of them */
	movl $0, %gs:T_CALLING
	mov %gs:T_STAMP, %ecx
	jrcxz 3f
	mov %rdx, SV(R_RDX)
	mov %rax, 16(%r15)		/* where the mark will have it */
label rt_sys_late
	time_stamp
	mov 16(%r15), %rax
	lea 12(%r15), %r15
label rt_sys_late_end
3:
	mov SV(R_NR), %rcx
	lea 5(, %rcx, 8), %ecx		/* RUN_MARK_SYSCALL | nr << RUN_MARK_ID_SHIFT */
	mov %ecx, (%r15)
	mov %rax, 4(%r15)
	lea 12(%r15), %r15
label rt_sys_logged
	mov %gs:T_TARGET, %rcx
	jmp *%gs:T_RESUME
label rt_sys_end

label rt_slow_entry
	mov SV(R_NR), %rax
	save_all
label rt_slow_saved
	hold_signals
	call_c rt_syscall
3:	cmp $RT_DO_REAL, %eax
	je rt_real
	cmp $RT_DO_CLONE, %eax
	je rt_clone
	cmp $RT_DO_EXIT, %eax
	je rt_exit
	ja rt_leave
label rt_finish
	release_signals
	/* as the mask is the program's now: a thread that its process's end waits for does not seem to compute before it
	 * has taken the signal that asks where it is (rt_halt.c) */
	movl $0, %gs:T_CALLING
	load_all
	jmp *%gs:T_RESUME
label rt_finish_end

rt_real:
	release_signals
	load_all
	syscall
label rt_real_after
	mov %rax, SV(R_RAX)
label rt_real_done
	hold_signals
	call_c rt_syscall_post
	jmp 3b

/* Signals stay blocked, so that no handler finds the registers of one thread and gs of another. The child has
 * the parent's gs, whose TCB it must not touch; its own is in r12, which is no argument of any call that
 * gets here. Its registers are in its TCB but for rsp, which may be a new stack's. */
rt_clone:
	mov SV(R_RSP), %rsp
	load_all
	mov %gs:T_CHILD, %r12
	syscall
label rt_clone_after
	test %rax, %rax
	jz 5f
	mov %rax, SV(R_RAX)
	call_c rt_syscall_post
	jmp 3b
5:	mov $NR_ARCH_PRCTL, %eax
	mov $ARCH_SET_GS, %edi
	mov %r12, %rsi
	syscall
	mov %rsp, SV(R_RSP)
	call_c rt_born
	jmp rt_finish

/* The TCB, and with it the runtime's stack, may be another thread's as soon as it is marked free. */
rt_exit:
	mov SV(R_NR), %rax
	mov SV(R_RDI), %rdi
	mov %gs:T_SELF, %rdx
	movl $0, T_LIFE(%rdx)
	syscall
label rt_exit_after
	hlt

/* rt_park(tcb): waits for the process's end, with every signal blocked, and without its TCB and stack if it has said all that
 * there is to say: as above, they may be another's, a forked process's that goes on. */
label rt_park
	cmpl $RT_LIFE_ENDED, T_LIFE(%rdi)
	jne 1f
	movl $0, T_LIFE(%rdi)
1:	mov $NR_PAUSE, %eax
	syscall
	jmp 1b

/* Replaying: the copy is at its MAP_PLACE. No flag changes where nothing but a word is looked at, no memory of the program's
 * is written. rt_reach.c has what this counts. */
	.macro reach_count
	mov %rcx, rt_reach_rcx(%rip)
	mov rt_reach_last(%rip), %rcx
	lea 1(%rcx, %r15), %rcx
	jrcxz 1f
	mov %r15, %rcx
	not %rcx
	mov %rcx, rt_reach_last(%rip)
	movq $0, rt_reach_base(%rip)
	movq $-RT_REACH_PERIOD, rt_reach_visit(%rip)
1:	mov rt_reach_visit(%rip), %rcx
	lea 1(%rcx), %rcx
	mov %rcx, rt_reach_visit(%rip)
	jrcxz 2f
	.endm
	.macro reach_done	/* rcx is 0: as recorded */
	jrcxz 2f
	mov rt_reach_rcx(%rip), %rcx
	jmp *rt_reach_next(%rip)
2:	mov rt_reach_rcx(%rip), %rcx
	jmp rt_reach_full
	.endm

	.balign RT_REACH_STUB
label rt_reach_regs
	.set reg, 0
	.irp r, rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14
	.balign RT_REACH_STUB
	reach_count
	mov rt_reach_neg + 8 * reg(%rip), %rcx
	lea (%\r, %rcx), %rcx
	reach_done
	.set reg, reg + 1
	.endr

label rt_reach_memory
	reach_count
	mov %rdx, SV(R_RDX)
	mov rt_reach_addr(%rip), %rcx
	mov (%rcx), %rcx
	mov rt_reach_word(%rip), %rdx
	lea (%rcx, %rdx), %rcx
	mov SV(R_RDX), %rdx
	reach_done

label rt_reach_count
	reach_count
	mov rt_reach_rcx(%rip), %rcx
	jmp *rt_reach_next(%rip)
2:	mov rt_reach_rcx(%rip), %rcx
	jmp rt_reach_full

label rt_reach_all
	reach_count
2:	mov rt_reach_rcx(%rip), %rcx
rt_reach_full:
	save_all
	lahf
	seto %al
	mov %rax, SV(R_FLAGS)
	mov %gs:T_STACK, %rsp
	pushfq
	mov (%rsp), %rsi
	cld
	mov %gs:T_SELF, %rdi
	call rt_reach
	popfq
	mov SV(R_RSP), %rsp
	load_all
	jmp *rt_reach_next(%rip)

/* rt_call(const uint64_t *gpr, nr): a call of the program by the C code */
label rt_call
	push %r15
	mov %rdi, %r15
	mov %rsi, %rax
	mov R_RDI(%r15), %rdi
	mov R_RSI(%r15), %rsi
	mov R_RDX(%r15), %rdx
	mov R_R10(%r15), %r10
	mov R_R8(%r15), %r8
	mov R_R9(%r15), %r9
	syscall
label rt_call_after
	pop %r15
	ret

/* rt_pt_counter(counter, ptwrite): the counter of a keyframe into the Intel PT packets, where the decoder finds it by these
 * addresses (include/run_pt.h): as the operand of the ptwrite, or bit by bit, each of them whether a nop is
 * jumped over. Branches are eight bytes apart */
label rt_pt_counter
	test %esi, %esi
	jnz rt_pt_ptw
	mov %edi, %eax
	.balign 8
	.rept 32
	add %eax, %eax
	.ifndef rt_pt_branch
label rt_pt_branch
	.endif
	jc 1f
	.byte 0x0f, 0x1f, 0x40, 0x00	/* nopl 0(%rax) */
1:
	.endr
	ret
label rt_pt_ptw
	.byte 0xf3, 0x0f, 0xae, 0xe7	/* ptwrite %edi (SDM Vol. 2) */
	ret

/* The program goes on in its original text, untraced. Nothing here depends on gs. */
label rt_leave
	mov OUT(R_RSP), %rsp
	mov $NR_RT_SIGPROCMASK, %eax
	mov $SIG_SETMASK, %edi
	lea OUT(R_MASK), %rsi
	xor %edx, %edx
	mov $8, %r10d
	syscall
	mov OUT(R_FLAGS), %rax
	add $0x7f, %al
	sahf
	mov OUT(R_RCX), %rcx
	mov OUT(R_RDX), %rdx
	mov OUT(R_RBX), %rbx
	mov OUT(R_RBP), %rbp
	mov OUT(R_RSI), %rsi
	mov OUT(R_RDI), %rdi
	mov OUT(R_R8), %r8
	mov OUT(R_R9), %r9
	mov OUT(R_R10), %r10
	mov OUT(R_R11), %r11
	mov OUT(R_R12), %r12
	mov OUT(R_R13), %r13
	mov OUT(R_R14), %r14
	mov OUT(R_R15), %r15
	mov OUT(R_RAX), %rax
	jmp *OUT(R_RIP)

/* Installed with every signal in its mask, so it never nests, and no C code of ours can be using the thread's
 * stack. The handler is entered as the kernel would have: its frame is the kernel's, its registers but
 * for the arguments and rax are the interrupted ones, of which rt_signal() has made the program's. */
label rt_sig_entry
	cmpl $0, %gs:T_LAZY
	jne 8f
	mov %rsp, %rax
	mov %gs:T_STACK, %rsp
	push %rax
	push %rdx
	call rt_signal
	pop %rbx
	test %rax, %rax
	jz 6f
	pushq UC_EFLAGS(%rbx)
	andl $~0x10500, (%rsp)		/* RF, DF, TF */
	popfq				/* no flag changes from here on */
	mov UC_R8(%rbx), %r8
	mov UC_R9(%rbx), %r9
	mov UC_R12(%rbx), %r12
	mov UC_R13(%rbx), %r13
	mov UC_R14(%rbx), %r14
	mov UC_R15(%rbx), %r15
	mov UC_RBP(%rbx), %rbp
	pop %rsp
	mov UC_RBX(%rbx), %rbx
	mov $NR_RT_SIGPROCMASK, %eax
	mov $SIG_SETMASK, %edi
	mov $8, %r10d
	lea OUT(R_MASK), %rsi
	mov %rdx, %rcx
	mov $0, %edx
	jrcxz 7f
	mov %gs:T_SELF, %rsi
	lea T_SV + R_MASK(%rsi), %rsi
	syscall
	/* here a signal may come: in_window() in rt_sigwhere.c */
label rt_sig_open
	handler_args
	jmp *%gs:T_TARGET
label rt_sig_open_end
6:	mov %rbx, %rsp
	mov $15, %eax			/* rt_sigreturn */
	syscall
7:	syscall				/* tracing has stopped: nothing depends on gs */
	handler_args
	jmp *OUT(R_RIP)

	/* C code was interrupted, on its own stack: kept for release_signals; until then all signals are blocked */
8:	mov UC_SIGMASK(%rdx), %rax
	mov %rax, %gs:T_HELD_MASK
	movq $-1, UC_SIGMASK(%rdx)
	.set off, 0
	.rept 16
	mov off(%rsi), %rax
	mov %rax, %gs:T_HELD_INFO + off
	.set off, off + 8
	.endr
	movl $1, %gs:T_HELD
	mov %rdx, %rbx
	jmp 6b

label rt_restorer
	mov $15, %eax		/* rt_sigreturn */
	syscall
label rt_text_hi

	.section .rodata
rt_allmask:
	.quad -1

	.bss
	.balign 64
rt_ctor_regs:
	.skip 0x100
	.skip 65536
label rt_stack_top
	.skip 64
	.hidden rt_out, rt_special, rt_slow_all
	.hidden rt_reach_rcx, rt_reach_last, rt_reach_base, rt_reach_visit, rt_reach_next, rt_reach_neg
	.hidden rt_reach_addr, rt_reach_word, rt_reach
	.hidden rt_hold_give
	.hidden rt_init, rt_chunk_full, rt_syscall, rt_syscall_post, rt_born, rt_signal

	.section .note.GNU-stack, "", @progbits
