/* SPDX-License-Identifier: MIT
 *
 * code.h - the code of an address space as blocks that end where control may go elsewhere
 *
 * A block runs natively; the last instruction of it does not: an int3 stands there, and the simulator does its work
 * (sim_exec.c). So a stop tells everything that was executed, one stop a block instead of one an instruction.
 * The int3s are in the program's text: who reads its own code sees them (ptsim --step does without).
 */
#ifndef CODE_H
#define CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

enum insn_kind {
	I_PLAIN, /* runs natively, control goes on behind it */
	I_JCC,
	I_LOOP, /* loop, loope, loopne, jrcxz, jecxz: sub says which */
	I_JMP,
	I_CALL,
	I_IJMP,
	I_ICALL,
	I_RET,
	I_SYSCALL,
	I_PTWRITE,
	I_INT3,
	I_TSC, /* rdtsc, with --tsc: emulated */
	I_XBEGIN, /* emulated: every transaction is aborted at once */
	I_FAR, /* int n, iret, far jumps: natively, watched */
	I_BAD, /* no instruction that can be read: natively, watched */
};

enum loop_sub { L_LOOP, L_LOOPE, L_LOOPNE, L_JCXZ };

struct operand { /* of an indirect branch or a ptwrite: a register, or memory */
	bool mem, addr32;
	uint8_t reg; /* GPR number, when it is no memory */
	uint8_t base, index; /* GPR numbers, 0xff: none */
	uint8_t scale;
	uint8_t seg; /* 1 fs, 2 gs */
	int64_t disp; /* rip-relative: the address */
};

struct insn {
	uint64_t ip;
	uint8_t len, kind, sub; /* sub: condition code, enum loop_sub, bytes of a ptwrite's value */
	bool addr32; /* loop counts ecx */
	bool odd; /* a form that is not emulated: natively, watched (16-bit operands) */
	bool exits; /* may leave a virtual machine, which then may lose the trap of a step */
	uint64_t target; /* of a direct one */
	uint16_t pop; /* bytes that ret n releases */
	struct operand op;
};

struct emu;

struct block {
	uint64_t start;
	struct insn end; /* end.ip == start: nothing in front of it */
	uint32_t n; /* instructions in front of end */
	uint16_t *len; /* their lengths */
	struct emu *emu; /* what they do, where they are simple (emu.h) */
	bool watch; /* code that may change or that cannot have an int3: end alone, n = 0, one step */
	struct block *next; /* hash chain */
};

struct mm;

struct mm *mm_new(pid_t pid);
struct mm *mm_copy(struct mm *of, pid_t pid); /* fork: the child's memory has the int3s, too */
struct mm *mm_hold(struct mm *m);
void mm_drop(struct mm *m); /* its last user is gone */
/* The block at ip, with an int3 at its end unless watch. Valid until mm_forget. */
const struct block *mm_block(struct mm *m, pid_t pid, uint64_t ip);
/* One instruction, as the program has it. */
bool mm_insn(struct mm *m, pid_t pid, uint64_t ip, struct insn *in);
/* Is there an int3 of ours? */
bool mm_is_ours(struct mm *m, uint64_t ip);
/* Nobody else runs in it. */
bool mm_alone(struct mm *m);
/* The instruction under it, else NULL */
bool mm_under(struct mm *m, pid_t pid, uint64_t ip, struct insn *in);
/* A restartable sequence (rseq(2)): an int3 where it goes on when it is aborted. Nobody else of the memory may run. */
void mm_sequence(struct mm *m, pid_t pid, uint64_t start, uint64_t abort);
/* Is that at ip? *at: the sequence's first instruction */
bool mm_aborts(struct mm *m, uint64_t ip, uint64_t *at);
/* Code in [lo, hi) may change now: its int3s are taken out, what is known of it is forgotten. */
void mm_forget(struct mm *m, pid_t pid, uint64_t lo, uint64_t hi);
/* Has code in [lo, hi) been seen, so that somebody may be running towards an int3 in it? */
bool mm_knows(struct mm *m, uint64_t lo, uint64_t hi);
void mm_maps_changed(struct mm *m);
/* For a moment, the program's own byte. */
void mm_lift(struct mm *m, pid_t pid, uint64_t ip);
void mm_put_back(struct mm *m, pid_t pid, uint64_t ip);
/* No int3s at all: everything is watched. */
extern bool code_step;
/* rdtsc gives a recorded thread what its unit has for the time, which is far behind the processor's */
extern bool code_tsc;

/* insn.c */
bool insn_decode(struct insn *in, uint64_t ip, const uint8_t *bytes, size_t n);
/* A memory operand, as Zydis has it (ZydisDecodedOperand); behind: the next instruction's address */
void insn_operand(struct operand *op, bool addr32, const void *zydis_operand, uint64_t behind);

bool mem_read(pid_t pid, uint64_t addr, void *buf, size_t n);
bool mem_write(pid_t pid, uint64_t addr, const void *buf, size_t n);

#endif
