/* SPDX-License-Identifier: MIT
 *
 * rt_off.h - offsets that the assembly of the runtime shares with its C structs
 *
 * rt_ring.c asserts every one of them against struct rt_tcb and struct rt_regs.
 */
#ifndef RT_OFF_H
#define RT_OFF_H

/* struct tcb (include/run.h) */
#define T_LP 0x00
#define T_R15 0x08
#define T_RESUME 0x30
#define T_TARGET 0x38
#define T_SELF 0x50
#define RUN_BACK_SIZE 64 /* struct run_back */
#define T_STACK 0x60
#define T_PLACE 0x80

/* struct rt_regs, at T_SV in the TCB and in rt_out */
#define T_SV 0x88
#define R_GPR 0x00 /* 16 registers, hardware order */
#define R_RIP 0x80 /* original address to go on at (rt_out only) */
#define R_FLAGS 0x88 /* as lahf and seto leave rax: AH = SF ZF AF PF CF, AL = OF */
#define R_MASK 0x90 /* the program's signal mask while the runtime blocks all */
#define R_NR 0x98 /* system call number */

#define T_CHILD 0x128 /* TCB of what the system call is about to make */
#define T_STAMP 0x130 /* not 0: system calls are time stamped */
#define T_LAZY 0x134 /* not 0: signals are held, not blocked (rt_hold.c) */
#define T_ALT_LO 0x138
#define T_ALT_SIZE 0x140
#define T_HELD_MASK 0x148
#define T_HELD_INFO 0x150 /* siginfo_t */
#define T_RFLAGS 0x1d0 /* RFLAGS when C code was called: what R_FLAGS does not have of the program's */
#define T_HELD 0x1d8
#define T_LIFE 0xfc0 /* struct ring_thread (ring.h) */
#define T_CALLING 0xfd8

#define R_RAX 0x00
#define R_RCX 0x08
#define R_RDX 0x10
#define R_RBX 0x18
#define R_RSP 0x20
#define R_RBP 0x28
#define R_RSI 0x30
#define R_RDI 0x38
#define R_R8 0x40
#define R_R9 0x48
#define R_R10 0x50
#define R_R11 0x58
#define R_R12 0x60
#define R_R13 0x68
#define R_R14 0x70
#define R_R15 0x78

/* the kernel's struct ucontext (arch/x86/include/uapi/asm/sigcontext.h), bytes; behind it in the frame: siginfo */
#define UC_STACK 16 /* stack_t */
#define UC_R8 40
#define UC_R9 48
#define UC_R10 56
#define UC_R11 64
#define UC_R12 72
#define UC_R13 80
#define UC_R14 88
#define UC_R15 96
#define UC_RDI 104
#define UC_RSI 112
#define UC_RBP 120
#define UC_RBX 128
#define UC_RDX 136
#define UC_RAX 144
#define UC_RCX 152
#define UC_RSP 160
#define UC_RIP 168
#define UC_EFLAGS 176
#define UC_FPREGS 224
#define UC_SIGMASK 296
#define UC_SIZE 304

/* what the C side of the system call hook tells the assembly to do */
#define RT_DO_FINISH 0 /* all done, the result is in the saved rax */
#define RT_DO_REAL 1 /* execute the call with the program's own registers and mask */
#define RT_DO_CLONE                                                                                          \
	2 /* execute the call with the program's own registers, every signal blocked: it makes
                         a thread or a process, whose TCB is in T_CHILD */
#define RT_DO_EXIT 3 /* execute the call, which does not come back */
#define RT_DO_LEAVE 4 /* tracing has stopped: go on in the original text (rt_out) */

#define RT_LIFE_ENDED 3 /* enum ring_life */

#define RT_NSYS 512

#define RT_REACH_PERIOD 0x1000000 /* visits (rt_reach.c) */
#define RT_REACH_STUB 256 /* bytes of the code that looks at one register */

#endif
