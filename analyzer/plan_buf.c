/* SPDX-License-Identifier: MIT
 *
 * plan_buf.c - see plan_buf.h
 */
#include <stdlib.h>
#include "cut.h"
#include "plan_buf.h"

#define LOOP_RUNS 3 /* a loop is expected to run its blocks 2^3 times at least */

static bool room(void *arr, uint32_t n, uint32_t *cap, size_t size)
{
	uint32_t c = *cap;
	void *p;

	if (n < c)
		return true;
	c = c ? c * 2 : 64;
	p = realloc(*(void **)arr, c * size);
	if (!p)
		return false;
	*(void **)arr = p;
	*cap = c;
	return true;
}

struct sem_op *pe_op(struct pe *e, uint8_t code, unsigned w, unsigned dst, unsigned a, unsigned b,
		     int64_t imm)
{
	static struct sem_op sink;
	struct sem_op *op = &sink;

	if (room(&e->p->op, e->p->nop, &e->capop, sizeof(*op)))
		op = &e->p->op[e->p->nop++];
	else
		e->nomem = true;
	*op = (struct sem_op){code, (uint8_t)w, (uint16_t)dst, (uint16_t)a, (uint16_t)b, imm};
	return op;
}

void pe_log(struct pe *e, uint32_t insn, uint8_t when, uint8_t what, unsigned reg, unsigned w, int32_t disp)
{
	if (!room(&e->p->log, e->p->nlog, &e->caplog, sizeof(*e->p->log))) {
		e->nomem = true;
		return;
	}
	e->p->log[e->p->nlog++] = (struct plan_log){insn, when, what, (uint8_t)reg, (uint8_t)w, disp};
}

/* A packet costs ten bytes and more, and the processor drops packets that come too fast: sites that are expected to
 * be hot store into the log. What is in a loop is, however unlikely it is that control comes to the loop. */
static bool by_ptwrite(const struct pe *e, uint32_t insn)
{
	uint32_t budget = MAP_BUDGET(e->gr->mapflags), b = e->gr->g->insn[insn].block;

	if (!(e->gr->mapflags & MAP_F_PTW))
		return false;
	if (budget == MAP_BUDGET_ALL)
		return true;
	return LOOP_RUNS * e->gr->g->block[b].depth <= budget && e->gr->freq[b] <= (int64_t)CUT_ONCE
											   << budget;
}

void pe_log_reg(struct pe *e, uint32_t insn, uint8_t when, unsigned reg, unsigned w, bool sx, unsigned dst,
		enum sem_why why)
{
	if (by_ptwrite(e, insn)) {
		pe_log(e, insn, when, LOG_PTW, reg, w, 0);
		pe_op(e, sx ? SEM_PTWSX : SEM_PTW, w, dst, 0, 0, why); /* a, b: map_sect.c */
	} else {
		pe_log(e, insn, when, LOG_REG, reg, w, 0);
		pe_op(e, sx ? SEM_LOGSX : SEM_LOG, w, dst, SEM_NONE, SEM_NONE, why);
	}
}

void pe_target(struct pe *e, bool next, enum pe_place place, uint32_t arg)
{
	if (!room(&e->fix, e->nfix, &e->capfix, sizeof(*e->fix))) {
		e->nomem = true;
		return;
	}
	e->fix[e->nfix++] = (struct pe_fix){e->p->nop - 1, arg, (uint8_t)place, next};
}

int pe_resolve(struct pe *e)
{
	uint32_t halt, jmpx;

	halt = e->p->nop;
	pe_op(e, SEM_HALT, 0, SEM_NONE, SEM_NONE, SEM_NONE, 0);
	jmpx = e->p->nop;
	pe_op(e, SEM_JMPX, 0, SEM_NONE, SEM_NONE, SEM_NONE, 0);
	if (e->nomem)
		return -1;
	for (uint32_t i = 0; i < e->nfix; i++) {
		const struct pe_fix *f = &e->fix[i];
		uint64_t *imm = (uint64_t *)&e->p->op[f->op].imm;
		uint32_t to;

		switch (f->place) {
		case PE_BLOCK:
			to = e->p->blockop[f->arg];
			break;
		case PE_RETURN:
			to = e->p->retop[f->arg];
			break;
		case PE_HALT:
			to = halt;
			break;
		case PE_CALLEE:
			to = 0x80000000u | f->arg;
			break;
		default:
			to = jmpx;
			break;
		}
		if (f->next)
			*imm = (uint32_t)*imm | (uint64_t)to << 32;
		else
			*imm = (*imm & ~0xffffffffull) | to;
	}
	return 0;
}
