// SPDX-License-Identifier: MIT
// fiber.h - a hand-written stack switch for the stk_ programs: callee-saved registers and the x87 and SSE
// control words in the frame, as Boost.Context does it
#ifndef FIBER_H
#define FIBER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
// Saves where we are in *save, goes on at `to`.
void fiber_switch(void **save, void *to);
#ifdef __cplusplus
}
#endif

#ifdef FIBER_JUMP
#define FIBER_LEAVE "pop %r8; jmp *%r8\n"
#else
#define FIBER_LEAVE "ret\n"
#endif
__asm__(".text\n"
	".globl fiber_switch\n"
	".type fiber_switch, @function\n"
	"fiber_switch: .cfi_startproc\n"
	"push %rbp; push %rbx; push %r15; push %r14; push %r13; push %r12\n"
	"lea -8(%rsp), %rsp; stmxcsr (%rsp); fnstcw 4(%rsp)\n"
	"mov %rsp, (%rdi); mov %rsi, %rsp\n"
	"ldmxcsr (%rsp); fldcw 4(%rsp); lea 8(%rsp), %rsp\n"
	"pop %r12; pop %r13; pop %r14; pop %r15; pop %rbx; pop %rbp\n" FIBER_LEAVE ".cfi_endproc\n"
	".size fiber_switch, . - fiber_switch\n");

// What to switch to first: fn runs on the stack and must not return.
static void *fiber_new(char *stack, size_t size, void (*fn)(void))
{
	void **sp = (void **)((unsigned long)(stack + size) & ~15ul);

	*--sp = 0; // fn's caller: nobody
	*--sp = (void *)fn;
	for (int i = 0; i < 6; i++)
		*--sp = (void *)(unsigned long)i;
	*--sp = (void *)(0x037ful << 32 | 0x1f80); // the control words a program starts with
	return sp;
}

#endif
