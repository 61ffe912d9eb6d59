/* SPDX-License-Identifier: MIT
 *
 * oracle.h - what the parts of the single-step oracle share
 *
 *	oracle.c	options, the step loop, the output file
 *	follow.c	several threads and processes: who is stepped next
 *	tracee.c	starting the program reproducibly, reading its memory and maps
 *	decode.c	instruction bytes -> struct insn (Zydis), cached by address
 *	eval.c		struct insn + register values -> trace records
 *
 * Nothing here is shared with the analyzer, the runtime or the decoder except the
 * record format: the oracle is only worth something while it can disagree with them.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "trace.h"
#include "tracee.h"

enum { REG_NONE = 0xff };

enum access_mode {
	ACC_PLAIN, /* one record at the operand's address */
	ACC_BITS, /* bt family with a register bit offset */
	ACC_ELEMS, /* element i at address + i * size when mask bit i is set */
	ACC_ANY, /* one record when any mask bit is set (broadcasts) */
	ACC_PACKED, /* compress/expand: popcount(mask) consecutive elements */
	ACC_VSIB, /* gather/scatter: element i at base + index[i] * scale */
};

struct access {
	int64_t disp; /* for rip-relative operands the whole address */
	uint32_t size; /* bytes; of one element where the mode has elements */
	uint8_t kind; /* enum ptrace_kind */
	uint8_t mode; /* enum access_mode */
	uint8_t base; /* GPR number 0..15 or REG_NONE */
	uint8_t index; /* GPR number, REG_NONE, or a vector register for ACC_VSIB */
	uint8_t scale;
	uint8_t seg; /* 0 none, 1 fs, 2 gs */
	bool addr32; /* address size 32: offset truncated before the segment base */
	bool index_al; /* xlat: the index is al */
	uint8_t index_size; /* bytes of one index element, ACC_VSIB */
	uint8_t bit_reg; /* ACC_BITS: the register with the bit offset ... */
	uint8_t bit_log2; /* ... and log2 of the operand size in bits */
};

enum mask_kind {
	MASK_ALL, /* no mask: every element is active */
	MASK_K, /* bit i of an opmask register */
	MASK_SIGN, /* sign bit of element i of an xmm/ymm register */
	MASK_MMX, /* sign bit of byte i of an mm register */
};

enum insn_flag {
	INSN_REP = 1, /* string instruction under rep: nothing when the count is zero */
	INSN_ENTER = 2, /* enter: level in .level */
	INSN_SYSCALL = 4,
	INSN_PUSHF = 8,
	INSN_MOVSS = 16, /* suppresses the trap of the instruction after it, too */
	INSN_INT3 = 32,
	INSN_BRANCH = 64,
	INSN_EXITS = 256, /* may leave a virtual machine, and lose its trap there */
	INSN_XBEGIN = 512, /* aborted at once: under a step it would be, and the trap behind it be lost */
	INSN_BAD = 128, /* bytes unreadable or not an instruction */
};

struct insn {
	uint64_t ip;
	uint16_t flags; /* enum insn_flag, ored */
	uint8_t len;
	uint8_t nacc;
	uint8_t level;
	uint8_t mask; /* enum mask_kind */
	uint8_t mask_reg;
	uint8_t mask_size; /* bytes of an element of the mask register, MASK_SIGN */
	uint8_t nelem; /* elements the mask covers */
	bool cacheable;
	uint64_t fallback; /* INSN_XBEGIN: where control goes */
	struct access acc[4]; /* in the order of the records */
};

/* The most records one instruction can make: 64 byte elements, read or written. */
#define INSN_MAX_RECS 64

/* Extended register state, fetched only when an instruction needs it. */
struct xstate {
	bool valid;
	uint8_t buf[16384];
};

/* What one PTRACE_SINGLESTEP runs: an instruction, or two when the first is mov ss. */
struct step {
	const struct insn *first, *last;
	struct ptrace_rec recs[2 * INSN_MAX_RECS];
	int nfirst, n;
};

struct stepper {
	pid_t pid;
	unsigned number; /* in order of creation, from 0: tid of its records */
	struct user_regs_struct regs;
	struct xstate xs;
	struct step step;
	bool recording;
	uint64_t begin_ip, begin_sp; /* recording begins here; 0 when it began at once */
	uint64_t steps, recorded, unreadable;
	int inject; /* signal to deliver with the next step */
	bool enters_handler; /* that signal has a handler */
	/* of the step under way: */
	uint64_t ip, nr;
	bool handler;
	struct insn call; /* a system call that others are stepped beside */
};

/* oracle.c */
void fail(const char *what); /* with errno; exits */
bool ended(int status);
int exit_code(int status);
void get_regs(struct stepper *s);
/* Begin a step. True: it is done, *status is how it stopped; false: it is a system call under way, its stop is
 * to be waited for. */
bool step_begin(struct stepper *s, int *status);
/* Let a system call go on that stopped in its middle (PTRACE_EVENT_CLONE and the like). */
void step_go_on(struct stepper *s);
/* The step's end; false when the program ended or left for another image. */
bool step_end(struct stepper *s, int status);
/* Let the program go, wait for its end; its exit status. */
int detached_status(pid_t pid);

/* follow.c */
/* Step everybody that can be, some thousand steps of one; the first is the program's first thread. False when
 * all have ended; *status is then the first process's. */
bool follow(struct stepper *first, int *status);

/* decode.c */
void decode_init(void);
/* The instruction at ip; the pointer is good till the next call but one. */
const struct insn *decode_at(pid_t pid, uint64_t ip);
void decode_flush(void);
const char *decode_text(pid_t pid, uint64_t ip);

/* eval.c */
void eval_init(void);
/* Append the records of one execution of insn; returns how many. xs is filled on
 * demand and must have been invalidated by the caller after every step. */
int eval_insn(pid_t pid, const struct insn *insn, const struct user_regs_struct *regs, struct xstate *xs,
	      struct ptrace_rec *out);
/* Size in bytes of the memory operand of an xsave-family instruction. */
uint32_t eval_xsave_size(uint64_t rfbm, bool compacted);

#endif
