/* SPDX-License-Identifier: MIT
 *
 * emu.h - simple instructions on a stopped thread's registers
 *
 * A stop costs as much as hundreds of instructions. So what is simple enough is done here, without the thread
 * running: integer moves, arithmetic and logic, on registers and memory. ptsim --step --verify runs each of them
 * natively, too, and compares.
 */
#ifndef EMU_H
#define EMU_H

#include "code.h"

enum emu_op {
	E_NONE, /* not done here */
	E_NOP,
	E_MOV,
	E_MOVSX,
	E_LEA,
	E_ADD,
	E_ADC,
	E_SUB,
	E_SBB,
	E_CMP,
	E_AND,
	E_OR,
	E_XOR,
	E_TEST,
	E_INC,
	E_DEC,
	E_NEG,
	E_NOT,
	E_SHL,
	E_SHR,
	E_SAR,
	E_IMUL,
	E_PUSH,
	E_POP,
	E_LEAVE,
	E_SETCC,
	E_CMOV,
	E_CDQE, /* sign extension within the accumulator */
	E_CDQ, /* of the accumulator into rdx */
};

struct emu_arg {
	uint8_t kind; /* 0 none, 1 register, 2 register bits 15:8, 3 memory, 4 immediate */
	uint8_t size; /* bytes */
	uint8_t reg;
	struct operand mem;
	uint64_t imm;
};

struct emu {
	uint8_t op, len, cc;
	struct emu_arg to, from, third;
};

/* bytes: the instruction at ip. False when it is not done here. */
bool emu_decode(struct emu *e, uint64_t ip, const uint8_t *bytes, size_t n);
/* Do it on r, and on pid's memory; rip is not changed. False when it has to run natively; nothing has changed then. */
bool emu_do(const struct emu *e, pid_t pid, struct user_regs_struct *r);
/* Which of the flags are defined behind it */
uint64_t emu_flags(const struct emu *e, const struct user_regs_struct *before);

uint64_t *emu_gpr(struct user_regs_struct *r, unsigned n);
bool emu_condition(unsigned cc, uint64_t flags);
uint64_t emu_address(struct user_regs_struct *r, const struct operand *o);

/* --verify: the last write that emu_do made is kept here and not made, when this is set */
extern struct emu_write {
	bool dry, made;
	uint64_t addr, value;
	unsigned size;
} emu_write;

#endif
