/* SPDX-License-Identifier: MIT
 *
 * sem_lift_int.h - shared by the files of the lifter only
 *
 * A handler builds one instruction's ops with the functions below. Values are register
 * numbers; of a value of width w only the low w bytes count, so reading eax gives SEM_RAX
 * itself and costs no op. Failure is sticky (struct lift.fail): handlers need not check.
 *
 *   sem_lift.c        entry, dispatch table, the catch-all for what is not modelled
 *   sem_lift_addr.c   building ops, operands, addresses, records
 *   sem_lift_arith.c  arithmetic, logic, multiply, divide
 *   sem_lift_bits.c   shifts, rotates, bit tests and scans, BMI
 *   sem_lift_move.c   moves, exchanges, flags
 *   sem_lift_flow.c   stack and control transfers
 *   sem_lift_str.c    string instructions
 *   sem_lift_vec.c    vector moves and what is like them
 *   sem_lift_lane.c   vector operations by 64-bit lanes, mask registers
 *   sem_lift_rec.c    records that are not plain: masks, gathers, xsave, hints
 *   sem_defs.c        use and definition sets
 */
#ifndef SEM_LIFT_INT_H
#define SEM_LIFT_INT_H

#include <string.h>
#include "sem_eval.h"
#include "sem_lift.h"
#include "trace.h"

#define NONE SEM_NONE

struct lift {
	const ZydisDecodedInstruction *in;
	const ZydisDecodedOperand *ops;
	const ZydisDecodedOperand *arg[8]; /* visible operands without an EVEX write mask */
	int narg;
	uint32_t vaddr;
	const struct sem_cpu *cpu;
	struct sem_op *out;
	struct sem_ea *ea; /* or NULL */
	int n, max, ntmp, nrec;
	bool fail;
	/* addresses already computed: LOAD/STORE form of each operand of `ops` */
	struct {
		bool done;
		uint16_t a;
		int64_t disp;
	} at[ZYDIS_MAX_OPERAND_COUNT];
};

typedef const ZydisDecodedOperand *opnd;
typedef void lift_fn(struct lift *l, int arg);

/* Effective address: a + (b << w) + disp, as in a SEM_REC. */
struct ea {
	uint16_t a, b;
	uint8_t w;
	int64_t disp;
};

/* --- building --- */
void put(struct lift *l, unsigned op, unsigned w, uint16_t dst, uint16_t a, uint16_t b, int64_t imm);
uint16_t tmp(struct lift *l);
/* as put, into a new temporary, which is returned */
uint16_t val(struct lift *l, unsigned op, unsigned w, uint16_t a, uint16_t b, int64_t imm);
uint16_t imm_val(struct lift *l, int64_t v);
uint16_t unk_val(struct lift *l);
static inline void unk(struct lift *l, uint16_t reg)
{
	put(l, SEM_UNK, 8, reg, NONE, NONE, 0);
}

/* --- operands --- */
static inline bool is_reg(opnd o)
{
	return o->type == ZYDIS_OPERAND_TYPE_REGISTER;
}
static inline bool is_mem(opnd o)
{
	return o->type == ZYDIS_OPERAND_TYPE_MEMORY;
}
static inline bool is_imm(opnd o)
{
	return o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}
static inline unsigned width(opnd o)
{
	return o->size / 8;
}
bool is_high(ZydisRegister r); /* ah, ch, dh, bh */
bool is_gpr(opnd o);
bool is_vec(opnd o);
bool is_kreg(opnd o);
unsigned reg_id(opnd o); /* number of a vector or mask register */
bool same_reg(opnd a, opnd b);
/* value of a register, memory or immediate operand (the latter sign-extended) */
uint16_t rd(struct lift *l, opnd o);
/* the same, but an immediate gives SEM_NONE and *imm */
uint16_t rdi(struct lift *l, opnd o, int64_t *imm);
/* assign the low width(o) bytes of v to a register or memory operand */
void wr(struct lift *l, opnd o, uint16_t v);
/* assign a w-byte value to a general register */
void wr_gpr(struct lift *l, unsigned reg, unsigned w, uint16_t v);
/* compute straight into the operand: dst = op(a, b, imm) at width(dst) */
void wr_op(struct lift *l, opnd dst, unsigned op, uint16_t a, uint16_t b, int64_t imm);
void flags_unk(struct lift *l);

/* --- addresses and records --- */
/* address of a memory operand; `extra` (or NONE) << shift is added before truncation and base */
struct ea ea_of(struct lift *l, opnd o, uint16_t extra, unsigned shift);
/* o: the operand that has the address, NULL if none has */
void rec(struct lift *l, opnd o, struct ea e, unsigned size, enum ptrace_kind kind);
/* reads, then writes, of all visible memory operands */
void recs(struct lift *l);
/* base register and offset for SEM_LOAD, SEM_STORE of an operand; set_at decides it beforehand */
uint16_t at(struct lift *l, opnd o, int64_t *disp);
void set_at(struct lift *l, opnd o, struct ea e);
uint16_t load(struct lift *l, opnd o, unsigned off, unsigned w);
void store(struct lift *l, opnd o, unsigned off, unsigned w, uint16_t v);
void store_unk(struct lift *l, opnd o);
uint16_t cond(struct lift *l, unsigned cc);

/* --- special records, sem_lift_rec.c --- */
/* all records of an instruction the catch-all handles; false: cannot be described */
bool recs_any(struct lift *l, bool *plain);
bool is_masked(const ZydisDecodedInstruction *in);

/* --- handlers --- */
lift_fn lift_nothing, lift_pause, lift_refuse, lift_other;
lift_fn lift_arith, lift_logic, lift_incdec, lift_neg, lift_not, lift_carry, lift_adx;
lift_fn lift_mul, lift_mulx, lift_div, lift_extend, lift_crc32;
lift_fn lift_shift, lift_rotate, lift_rcx, lift_shld, lift_shiftx, lift_bt, lift_scan, lift_count;
lift_fn lift_bls, lift_andn, lift_bextr, lift_bzhi, lift_pext, lift_bswap;
lift_fn lift_mov, lift_movzx, lift_movsx, lift_lea, lift_xchg, lift_xadd, lift_cmpxchg, lift_cmpxchg8b;
lift_fn lift_cmov, lift_setcc, lift_movbe, lift_lahf, lift_sahf, lift_cf, lift_df, lift_xlat, lift_fsbase;
lift_fn lift_push, lift_pop, lift_pushf, lift_popf, lift_enter, lift_leave, lift_call, lift_ret;
lift_fn lift_jmp, lift_jcc, lift_loop, lift_jrcxz, lift_xbegin, lift_syscall;
lift_fn lift_string, lift_movsd, lift_cmpsd;
lift_fn lift_vmov, lift_movd, lift_movs, lift_movhl, lift_unpckq, lift_movddup, lift_bcast;
lift_fn lift_bcast_block, lift_insert, lift_extract, lift_pinsr, lift_pextr, lift_vzero, lift_pshufd;
lift_fn lift_pslldq, lift_lane, lift_same, lift_ternlog, lift_ptest;
lift_fn lift_kmov, lift_klogic, lift_ktest, lift_hint, lift_xsave;

/* argument of lift_klogic, lift_ktest: op << 4 | bytes; two ops that sem.h lacks */
enum { KLOGIC_ANDN = SEM_END, KLOGIC_XNOR = SEM_IMM };

/* --- vector operands --- */
unsigned lanes(opnd o); /* 64-bit lanes of a vector register operand */
uint16_t lane(struct lift *l, opnd o, unsigned i); /* lane i of a register, memory or broadcast */
void set_lane(struct lift *l, opnd dst, unsigned i, uint16_t v);
void fill(struct lift *l, opnd dst, int64_t v); /* all lanes */
void upper(struct lift *l, opnd dst, unsigned from); /* VEX, EVEX: lanes from .. 7 become 0 */

#endif
