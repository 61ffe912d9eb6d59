/* SPDX-License-Identifier: MIT
 *
 * sem_lift.h - one x86-64 instruction ─▶ its full effect in the semantics IR (include/sem.h)
 *
 * Order of the ops of one instruction:
 *
 *   1. ops that compute addresses into temporaries (segment base, rip-relative, 67h)
 *   2. access records, in the order of trace.h, with their extra slots; they see the registers
 *      as before the instruction
 *   3. loads, values, stores, register, flag, lane and mask-register assignments. A source is
 *      read before the register that holds it is written, and memory is stored to before a
 *      register of its address is. No register but a temporary is assigned twice, save for two
 *      byte halves of one register (xchg %al,%ah)
 *
 * Control transfers get only their data effects; the control op is the caller's to add:
 *
 *   call           REC W of the slot, STORE of the return address (SEM_MODADDR), rsp -= 8
 *   indirect call  as above; SEM_T0 = target (REC R first when it is in memory)
 *   indirect jump  SEM_T0 = target
 *   ret            REC R, SEM_T0 = LOAD of the return address, rsp += 8 + n
 *   jcc            SEM_T0 = SEM_COND: 0 or 1
 *   loop*, jrcxz   rcx updated, SEM_T0 = 1 if taken, else 0
 *   direct jmp, ud2, int3, hlt     nothing
 *   syscall        rcx, r11 and rax are SEM_UNK
 *
 * What is not modelled is SEM_UNK of exactly the registers written; a partly unknown register
 * (8- or 16-bit destination) is SEM_INS of an unknown temporary. A masked vector destination is
 * unknown in all its lanes.
 *
 * Undefined flags hold what the SEM_FC_x, SEM_FR_x function says (0 where it says nothing), or are
 * SEM_UNK: CF of bsf and bsr, all flags of div and idiv.
 *
 * Group records of kind W (SEM_RECVEC, SEM_RECREP, SEM_RECXS) change memory without a SEM_STORE.
 * Repeated cmps and scas: rcx afterwards is a SEM_UNK temporary that comes before their record;
 * logging rcx after the instruction makes all of it known.
 */
#ifndef SEM_LIFT_H
#define SEM_LIFT_H

#include <stdbool.h>
#include <stdint.h>
#include <Zydis/Zydis.h>
#include "sem.h"

#define SEM_LIFT_MAX 384 /* ops: no instruction gives more */

/* What the processor that will run the code lacks; NULL = has everything. */
struct sem_cpu {
	bool no_lzcnt; /* lzcnt executes as bsr (SDM Vol. 2, LZCNT) */
	bool no_bmi1; /* tzcnt executes as bsf */
};

/* Where a SEM_REC has its address from, so that the copy can compute it by a lea. Instructions with two memory
 * operands (push, pop and call of memory, movs, cmps, movdir64b) have two addresses. */
struct sem_ea {
	uint8_t op; /* number in `ops`; SEM_EA_NONE: lea cannot form it (bt with an offset in a register, eip, the
	               frame pointers that enter copies) */
	uint8_t seg; /* SEM_FSBASE or SEM_GSBASE, which is to be added to what lea gives, or 0 */
	bool stack; /* the operand is the hidden one on rsp: rsp before the instruction, to which the record's own
	               displacement is to be added */
};
#define SEM_EA_NONE 0xff
#define SEM_EA_MAX 8 /* records of an instruction that are told about: all, but for enter's */

/* Lift one instruction. `in` and `ops` are from ZydisDecoderDecodeFull: `ops` holds all
 * in->operand_count operands, hidden ones included. `vaddr`: link-time address. `out`: room for
 * `max` ops (SEM_LIFT_MAX is always enough). `ea`: room for SEM_EA_MAX, of the first SEM_REC ops in order, or NULL.
 * Returns the number of ops, or -1 if the instruction cannot be represented: its group must stay opaque. */
int sem_lift(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops, uint32_t vaddr,
	     const struct sem_cpu *cpu, struct sem_op *out, int max, struct sem_ea *ea);

/* Use and definition sets for liveness. Bits 0..15: general registers in hardware numbering,
 * bit 16 (SEM_F_FLAGS): the six arithmetic flags together; DF is not in it.
 *   read  may be read; includes registers written only in part (8, 16 bits, conditionally), address
 *         registers, and flags of which some are kept
 *   may   may be written
 *   must  certainly overwritten in full (64 bits or zero-extended 32; all six flags): what kills */
#define SEM_F_FLAGS (1u << 16)
/* returns read */
uint32_t sem_gpr_sets(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops, uint32_t *must,
		      uint32_t *may);

int gpr_of(ZydisRegister r); /* number of the general register that contains r, -1 if none does */

#endif
