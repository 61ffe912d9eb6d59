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

struct pe {
	struct gr *gr;
	struct plan *p;
	uint32_t capop, caplog, nfix, capfix;
	struct pe_fix *fix;
	bool nomem;
};

struct sem_op *pe_op(struct pe *e, uint8_t code, unsigned w, unsigned dst, unsigned a, unsigned b,
		     int64_t imm);
void pe_log(struct pe *e, uint32_t insn, uint8_t when, uint8_t what, unsigned reg, unsigned w, int32_t disp);
/* the log and the op that reads it: `w` bytes into register dst. By ptwrite, if the site's budget allows */
void pe_log_reg(struct pe *e, uint32_t insn, uint8_t when, unsigned reg, unsigned w, bool sx, unsigned dst,
		enum sem_why why);
/* the last op's TAKEN or NEXT is `place` */
void pe_target(struct pe *e, bool next, enum pe_place place, uint32_t arg);
int pe_resolve(struct pe *e);

/* plan_insn.c: the ops of instruction i, control aside */
void pe_insn(struct pe *e, uint32_t i);
/* plan_ops.c: does block b have a return stub of its own kind (not a resync stub)? */
bool pe_is_return(const struct gr *gr, uint32_t b);
/* plan_ctl.c: the control op that ends block b, with its log */
void pe_control(struct pe *e, uint32_t b);

#endif
