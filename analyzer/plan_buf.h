/* SPDX-License-Identifier: MIT
 *
 * plan_buf.h - a plan being written: growing arrays of ops and logs, and targets to fill in
 */
#ifndef PLAN_BUF_H
#define PLAN_BUF_H

#include "plan.h"

/* a half of a control op's imm that names a place not emitted yet */
enum pe_place { PE_BLOCK, PE_RETURN, PE_HALT, PE_JMPX, PE_CALLEE };
struct pe_fix {
	uint32_t op, arg; /* arg: block, or index into group->callee */
	uint8_t place, next;
};

/* Arrays are scratch.h's until the plan is complete. */
struct pe {
	struct gr *gr;
	struct sem_op *op;
	struct plan_log *log;
	struct pe_fix *fix;
	uint32_t nop, capop, nlog, caplog, nfix, capfix;
	uint32_t *blockop, *entryop, *retop; /* struct plan's */
	uint8_t *insnops;
	bool nomem;
};

bool pe_start(struct pe *e); /* false when out of memory */
struct plan *pe_take(struct pe *e); /* what was written; NULL when out of memory */
struct sem_op *pe_more(struct pe *e);
/* one more op, to be filled in */
static inline struct sem_op *pe_new(struct pe *e)
{
	return e->nop < e->capop ? &e->op[e->nop++] : pe_more(e);
}
static inline struct sem_op *pe_op(struct pe *e, uint8_t code, unsigned w, unsigned dst, unsigned a,
				   unsigned b, int64_t imm)
{
	struct sem_op *op = pe_new(e);

	*op = (struct sem_op){code, (uint8_t)w, (uint16_t)dst, (uint16_t)a, (uint16_t)b, imm};
	return op;
}
void pe_log(struct pe *e, uint32_t insn, uint8_t when, uint8_t what, unsigned reg, unsigned w, int32_t disp);
/* the log and the op that reads it: `w` bytes into register dst. By ptwrite, if the site's budget allows */
void pe_log_reg(struct pe *e, uint32_t insn, uint8_t when, unsigned reg, unsigned w, bool sx, unsigned dst,
		enum sem_why why);
/* the last op's TAKEN or NEXT is `place` */
void pe_target(struct pe *e, bool next, enum pe_place place, uint32_t arg);
int pe_resolve(struct pe *e); /* fills them in; -1: out of memory at some time */

/* the ops of instruction i are those from `from` on */
static inline void pe_count(struct pe *e, uint32_t i, uint32_t from)
{
	e->gr->broken |= e->nop - from > UINT8_MAX; /* none comes near */
	e->insnops[i] = (uint8_t)(e->nop - from);
}
/* plan_insn.c: the ops of n instructions, control aside */
void pe_insns(struct pe *e, uint32_t first, uint32_t n);
/* plan_ops.c: does block b have a return stub of its own kind (not a resync stub)? */
bool pe_is_return(const struct gr *gr, uint32_t b);
/* plan_ctl.c: the control op that ends block b, with its log */
void pe_control(struct pe *e, uint32_t b);

#endif
