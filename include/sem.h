/* SPDX-License-Identifier: MIT
 *
 * sem.h - the semantics IR: what x86-64 instructions do to registers, flags and addresses
 *
 * One op = one assignment, or one access record, or one control transfer. The same 16-byte
 * op is used three times:
 *
 *   analyzer   lifts an instruction into a list of ops (the full effect, SEM_LOAD/SEM_STORE
 *              included), builds the value graph on them and cuts it;
 *   map        stores, per block, what is left: the ops the decoder needs, with SEM_LOG ops
 *              where the instrumented copy logs a value, closed by a control op;
 *   decoder    evaluates them.
 *
 * Registers are numbered 0..SEM_NREGS-1 and all 64 bits wide. General registers have the
 * hardware numbers. Sub-register writes are explicit (SEM_MOV with w=4 zero-extends,
 * SEM_INS keeps the upper bytes). Flags are two registers in the layout of RFLAGS: FC holds
 * CF (bit 0) alone, FR holds PF, AF, ZF, SF, OF in their RFLAGS positions and zeros
 * elsewhere; so that inc/dec and bt, which write only one half, do not depend on the other.
 * DF is a register holding 0 or 1. Vector registers are byte containers of eight 64-bit
 * lanes. Temporaries live within one instruction.
 *
 * Widths are in bytes: 1, 2, 4, 8. An op of width w reads the low w bytes of its operands
 * and writes the result zero-extended to 64 bits, unless said otherwise.
 */
#ifndef PTRACE_SEM_H
#define PTRACE_SEM_H

#include <stdint.h>

enum sem_reg {
	SEM_RAX,
	SEM_RCX,
	SEM_RDX,
	SEM_RBX,
	SEM_RSP,
	SEM_RBP,
	SEM_RSI,
	SEM_RDI,
	SEM_R8,
	SEM_R9,
	SEM_R10,
	SEM_R11,
	SEM_R12,
	SEM_R13,
	SEM_R14,
	SEM_R15,
	SEM_FC, /* CF */
	SEM_FR, /* PF, AF, ZF, SF, OF */
	SEM_DF, /* direction flag, 0 or 1 */
	SEM_FSBASE, /* thread pointer: known to the decoder */
	SEM_GSBASE, /* the program's own gs base: known to the decoder (0) */
	SEM_T0, /* temporaries, valid within one instruction */
	SEM_TLAST = SEM_T0 + 42,
	SEM_V0 = 64, /* vector lane l of register v: SEM_V(v, l) */
	SEM_K0 = SEM_V0 + 32 * 8, /* AVX-512 mask registers */
	SEM_NREGS = SEM_K0 + 8,
	SEM_NONE = 0xffff,
};
#define SEM_V(v, l) (SEM_V0 + (v)*8 + (l))
#define SEM_NGPR 16

/* One op. `imm` doubles as the third operand or as packed fields where said so. */
struct sem_op {
	uint8_t op; /* enum sem_code */
	uint8_t w; /* width in bytes, or log2(scale) for SEM_LEA and SEM_REC */
	uint16_t dst; /* register written, or packed size/kind for SEM_REC */
	uint16_t a, b; /* operand registers or SEM_NONE */
	int64_t imm;
};
_Static_assert(sizeof(struct sem_op) == 16, "sem_op is an on-disk format");

enum sem_code {
	SEM_END = 0, /* never executed */

	/* --- values. Where b == SEM_NONE the second operand is imm. --- */
	SEM_IMM, /* dst = imm */
	SEM_MODADDR, /* dst = load bias of the block's module + imm (a run-time address) */
	SEM_MOV, /* dst = zero-extend(a, w) */
	SEM_SX, /* dst = sign-extend(a, w) to 64 bits */
	SEM_INS, /* dst = a with its low w bytes (1 or 2) replaced by b's */
	SEM_INSH, /* dst = a with bits 8..15 replaced by the low byte of b (ah, ch, dh, bh) */
	SEM_EXTH, /* dst = bits 8..15 of a */
	SEM_LEA, /* dst = a + (b << w) + imm; a, b may be SEM_NONE (0); 64 bits */
	SEM_ADD,
	SEM_SUB,
	SEM_AND,
	SEM_OR,
	SEM_XOR,
	SEM_SHL,
	SEM_SHR,
	SEM_SAR, /* count = b (or imm) masked to 31, or 63 when w == 8 */
	SEM_ROL,
	SEM_ROR, /* same masking, then modulo the width */
	SEM_RCL,
	SEM_RCR, /* through carry; old FC = register imm & 0xffff; count = b, or
	                              (imm >> 16) when b == SEM_NONE */
	SEM_SHLD,
	SEM_SHRD, /* a:destination, b:source, count = register (imm & 0xffff), or
	                              (imm >> 16) when (imm & 0xffff) == SEM_NONE */
	SEM_NOT,
	SEM_NEG, /* of a */
	SEM_MUL, /* low w bytes of a * b */
	SEM_UMULH,
	SEM_SMULH, /* high w bytes of the unsigned / signed product */
	SEM_UDIV,
	SEM_UREM,
	SEM_SDIV,
	SEM_SREM, /* b divides (register imm : a), w-byte halves;
	                              undefined result 0 where the processor faults */
	SEM_BSWAP, /* w 4 or 8 */
	SEM_BSF,
	SEM_BSR, /* source b; a = old destination, the result when b == 0 */
	SEM_TZCNT,
	SEM_LZCNT,
	SEM_POPCNT, /* of a */
	SEM_PEXT,
	SEM_PDEP, /* a: source, b: mask */
	SEM_CRC32, /* a: crc, b: data of width w; 32-bit result */
	SEM_SEL, /* dst = (register imm) != 0 ? a : b, all 64 bits */
	SEM_COND, /* dst = condition imm (x86 cc 0..15) of a = FC, b = FR: 0 or 1; a or b is
	                 SEM_NONE where the condition does not read it */
	SEM_CMPEQ, /* dst = a == b at width w: 0 or 1 */

	/* Flag results: SEM_FC_x computes CF (0/1), SEM_FR_x the rest, of operation x on a, b at
	   width w. Undefined flags: as documented in the lifter, never compared in tests. */
	SEM_FC_ADD,
	SEM_FC_SUB, /* carry / borrow of a + b, a - b */
	SEM_FC_ADC,
	SEM_FC_SBB, /* with old FC in register imm */
	SEM_FC_SHL,
	SEM_FC_SHR,
	SEM_FC_SAR, /* old FC = register imm & 0xffff (SEM_NONE when the count is a
	                              constant other than 0); count = b, or (imm >> 16) when
	                              b == SEM_NONE */
	SEM_FC_BT, /* bit b (or imm) of a, modulo the width */
	SEM_FC_NZ, /* a != 0 at width w (neg, blsi), imm == 1: a == 0 (tzcnt, lzcnt, blsr, blsmsk) */
	SEM_FR_ADD,
	SEM_FR_SUB,
	SEM_FR_ADC,
	SEM_FR_SBB, /* with old FC in register imm */
	SEM_FR_LOGIC, /* of the result a: OF = AF = 0 */
	SEM_FR_INC,
	SEM_FR_DEC, /* of the operand a */
	SEM_FR_SHL,
	SEM_FR_SHR,
	SEM_FR_SAR, /* operands as SEM_FC_SHL; old FR = register imm & 0xffff */
	SEM_FR_Z, /* only ZF, set when a == 0 at width w; other bits 0 (bsf, tzcnt, popcnt) */

	SEM_FC_RCL,
	SEM_FC_RCR, /* operands as SEM_RCL */
	SEM_BEXTR, /* a's bits from (b & 0xff), (b >> 8 & 0xff) of them */
	SEM_BZHI, /* a with the bits from (b & 0xff) up cleared */

	/* --- memory values (shadow memory in the decoder) --- */
	SEM_LOAD, /* dst = w bytes at address a + imm, zero-extended */
	SEM_STORE, /* w bytes at address a + imm = b */
	SEM_UNK, /* lifter only: dst takes a value the IR does not model */
	SEM_LOADRO, /* as SEM_LOAD, from memory that cannot change after start: the map's rodata */

	/* --- the log (only in maps). imm = enum sem_why --- */
	SEM_LOG, /* dst = next w bytes of the stream, zero-extended */
	SEM_LOGSX, /* dst = next w bytes, sign-extended to 64; w may also be 6: sem_address() of them */

	/* --- access records ---
	   Address = a + (b << w) + disp. dst = SEM_RECDST(size, kind). imm = SEM_RECIMM(disp, ip):
	   disp in the low 32 bits (signed), link-time vaddr of the instruction in the high 32. */
	SEM_REC,
	/* Groups of records. Followed by one more 16-byte slot, struct sem_vec. */
	SEM_RECVEC, /* gather, scatter, masked, compress/expand: indices and mask from the log */
	SEM_RECREP, /* string instruction: count in a register */
	SEM_RECXS, /* xsave, xrstor family: size from CPUID and edx:eax; a slot follows */
	SEM_VCHK, /* verify maps: next 8 bytes of the stream are the address of record number
	                 imm of this instruction counted back from the last (0 = last). They stand
	                 after the instruction's last SEM_REC, before the logs of its SEM_RECVEC; the
	                 order of all logs of an instruction is in analyzer/plan_insn.c */

	SEM_FLOW, /* maps for hardware control flow: dst = where control went from the instruction at SEM_FLOW_AT,
	             an indirect jump or return: a run-time address of the original text. Nothing logged */

	SEM_TSC, /* order maps: next 8 bytes of the stream: the time stamp counter. Once before and once after each
	                 instruction that locks: whatever happens before one of them on one processor and after a
	                 later one on another then has times that say so */

	SEM_PTW, /* maps for PTWRITE: dst = low w bytes (1, 2, 4, 8) of what the ptwrite at SEM_FLOW_AT gave the
	             processor's trace, zero-extended. imm = enum sem_why */
	SEM_PTWSX, /* as SEM_PTW, sign-extended; w may also be 6, as of SEM_LOGSX */

	/* --- control (only in maps; the last op of a block) ---
	   Op indices are 32-bit and absolute in the map's op array: TAKEN = low, NEXT = high
	   half of imm. */
	SEM_BLOCK = 192, /* first op of a block: imm = block index */
	SEM_JMP, /* to TAKEN; nothing logged */
	SEM_JCC_LOG, /* next stream byte: 1 to TAKEN, 0 to NEXT, other values: loss of sync */
	SEM_JCC, /* a != 0: TAKEN, else NEXT */
	SEM_IJMP, /* a holds the run-time address of a leader of this group, or (imm ==
	                 SEM_IJMP_MAY_LEAVE: the copy has set tcb.expect = rsp) of anything */
	SEM_IJMP_LOG, /* next 4 bytes: low half of the target's run-time address; minus bias = vaddr */
	SEM_CALL, /* direct call of a relocated group: frame pushed, to TAKEN; returns to NEXT.
	                 rsp has already been decremented by the ops before. */
	SEM_CALLX, /* a call that may reach opaque code: frame pushed; a mark follows */
	SEM_JMPX, /* a jump that leaves the group for an unknown place: a mark follows. dst == SEM_JMPX_LINK: if
	             it is RUN_MARK_LINK, to TAKEN, the start of another group of the module */
	SEM_RET, /* return to the caller's frame. rsp has been incremented (by 8 + n) by the
	                 ops before; a = none, imm = n */
	SEM_RETX, /* a return that may not be LIFO: a = target run-time address, imm = n. Or (dst ==
	             SEM_RETX_JUMP) an indirect jump that leaves on another stack than the group's own; the
	             copy has set tcb.expect as a return to rsp would. Every callee-saved register is known here: none is
	             taken from a frame */
	SEM_SYSCALL, /* a syscall mark follows; then to NEXT. rax, rcx, r11 set from the mark */
	SEM_HALT, /* ud2, hlt, int3: control does not go on here */
	SEM_RMARK, /* return site of a SEM_CALLX: one byte RUN_MARK_RET | (imm & 0x1f) << 3 */
	SEM_JCC_FLOW, /* maps for hardware control flow, in place of SEM_JCC and SEM_JCC_LOG: a jump of dst bytes
	                 at SEM_FLOW_AT; if control went to the instruction behind it, to NEXT, else TAKEN */
};

#define SEM_IJMP_MAY_LEAVE 1
/* copy offset of the instruction that a SEM_FLOW, SEM_JCC_FLOW, SEM_PTW or SEM_PTWSX asks about */
#define SEM_FLOW_AT(a, b) ((uint32_t)(a) | (uint32_t)(b) << 16)
#define SEM_RETX_JUMP 1
#define SEM_JMPX_LINK 1

/* Why a value is in the log; for statistics only. Those after SEM_WHY_JOIN follow from the op that
 * reads the log, and stand in no map. */
enum sem_why {
	SEM_WHY_OTHER, /* result of what the IR does not model, or that is not worth computing */
	SEM_WHY_LOAD, /* a loaded value */
	SEM_WHY_SLOT, /* loaded from the own frame */
	SEM_WHY_ENTRY, /* needed at an entry, landing pad or returns-twice site */
	SEM_WHY_RETURN, /* a call's result, or what it may have changed */
	SEM_WHY_JOIN, /* at a block's start: known on some ways into it only */
	SEM_WHY_ADDRESS, /* an effective address */
	SEM_WHY_TARGET, /* of an indirect jump or a return */
	SEM_WHY_BRANCH,
	SEM_WHY_VECTOR, /* masks and indices */
	SEM_WHY_VERIFY,
	SEM_WHY_TIME,
	SEM_WHY_ENTRY_MARK,
	SEM_WHY_RETURN_MARK,
	SEM_WHY_SYSCALL_MARK,
	SEM_NWHY
};

#define SEM_RECDST(size, kind) ((uint16_t)((size) | (kind) << 14)) /* size < 16384 */
#define SEM_REC_SIZE(dst) ((dst)&0x3fff)
#define SEM_REC_KIND(dst) ((dst) >> 14)
#define SEM_RECIMM(disp, ip) ((int64_t)((uint64_t)(uint32_t)(ip) << 32 | (uint32_t)(disp)))
#define SEM_REC_DISP(imm) ((int32_t)(imm))
#define SEM_REC_IP(imm) ((uint32_t)((uint64_t)(imm) >> 32))
#define SEM_TARGETS(taken, next) ((int64_t)((uint64_t)(uint32_t)(next) << 32 | (uint32_t)(taken)))
#define SEM_TAKEN(imm) ((uint32_t)(imm))
#define SEM_NEXT(imm) ((uint32_t)((uint64_t)(imm) >> 32))

/* Second slot of SEM_RECVEC, SEM_RECREP and SEM_RECXS. They change memory without a SEM_STORE
 * when their kind is a write.
 *
 * SEM_RECXS: first op as SEM_REC, size 0. Slot: kind = enum sem_xs; count = register that holds
 * eax, df = register that holds edx (low 32 bits each): RFBM = edx:eax & XCR0. The decoder finds the
 * size as trace.h says, from struct run_start.
 *
 * SEM_RECREP: first op: a = rsi (or none), b = rdi (or none), w = element bytes, dst unused,
 * imm = SEM_RECIMM(0, ip). Slot: count = register that holds the number of iterations;
 * df = register that holds DF; kind = enum sem_rep. (Addresses are those before the
 * instruction; a segment override of rsi is already added.)
 *
 * SEM_RECVEC: first op as SEM_REC (a base, b scalar index or none, w scale, disp, ip; dst =
 * element size and kind). Slot: n elements; idx_bytes = size of one index (4 or 8, signed;
 * scaled by idx_scale = log2) or 0 when elements are consecutive; mask = enum sem_mask;
 * mask_bytes: size of one mask element for SEM_MASK_VEC (4 or 8), of the logged mask for SEM_MASK_K
 * (1, 2, 4 or 8). What the copy logs, in this order: the mask (SEM_MASK_K: mask_bytes;
 * SEM_MASK_VEC: n * mask_bytes), then the index vector (n * idx_bytes). Nothing is logged for
 * SEM_MASK_ALL. mask_bytes is 1 for (v)maskmovdqu. From the lifter (free in maps): count = number
 * of the k or vector register that holds the mask, df = number of the vector register that
 * holds the indices. SEM_MASK_REG, in maps only: the mask is not logged, it is computed: in
 * register count (SEM_K0 + number). */
struct sem_vec {
	uint8_t op; /* SEM_END: not an op, always skipped with the op before it */
	uint8_t kind, n, mask;
	uint8_t idx_bytes, idx_scale, mask_bytes, flags; /* flags: SEM_VEC_* */
	uint16_t count, df;
	uint32_t zero;
};
_Static_assert(sizeof(struct sem_vec) == 16, "sem_vec takes one op slot");

enum sem_mask { SEM_MASK_ALL, SEM_MASK_K, SEM_MASK_VEC, SEM_MASK_REG };
enum {
	SEM_VEC_COMPRESS = 1, /* popcount(mask) consecutive elements */
	SEM_VEC_BCAST = 2, /* one element if any of n mask bits is set */
	SEM_VEC_READ_WRITE = 4 /* R then W per element */
};
enum sem_xs { SEM_XS_SAVE, /* xsave, xsaveopt: standard format */ SEM_XS_SAVEC, SEM_XS_RSTOR };
enum sem_rep { SEM_REP_MOVS, SEM_REP_STOS, SEM_REP_LODS, SEM_REP_CMPS, SEM_REP_SCAS };

#endif
