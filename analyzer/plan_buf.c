/* SPDX-License-Identifier: MIT
 *
 * plan_buf.c - see plan_buf.h
 */
#include <stdlib.h>
#include "cut.h"
#include "plan_buf.h"
#include "scratch.h"

#define LOOP_RUNS 3 /* a loop is expected to run its blocks 2^3 times at least */

static bool room(void *arr, uint32_t n, uint32_t *cap, size_t size)
{
	uint32_t c = *cap;
	void *p;

	if (n < c)
		return true;
	c = c ? c * 2 : 64;
	p = scratch_more(*(void **)arr, *cap * size, c * size);
	if (!p)
		return false;
	*(void **)arr = p;
	*cap = c;
	return true;
}

bool pe_start(struct pe *e)
{
	uint32_t nb = e->gr->g->nblock, ninsn = e->gr->g->ninsn;

	/* mostly enough */
	e->capop = e->gr->nop + 3 * nb + 64;
	e->caplog = ninsn / 2 + nb + 64;
	e->capfix = 2 * nb + 64;
	e->op = scratch(e->capop * sizeof(*e->op));
	e->log = scratch(e->caplog * sizeof(*e->log));
	e->fix = scratch(e->capfix * sizeof(*e->fix));
	e->blockop = scratch((size_t)nb * 3 * sizeof(uint32_t));
	e->insnops = scratch(ninsn);
	if (!e->op || !e->log || !e->fix || !e->blockop || !e->insnops)
		return false;
	e->entryop = e->blockop + nb;
	e->retop = e->entryop + nb;
	return true;
}

/* one piece of memory, and the logs, which are not kept as long */
struct plan *pe_take(struct pe *e)
{
	size_t nb = e->gr->g->nblock, ninsn = e->gr->g->ninsn;
	struct plan *p = malloc(sizeof(*p) + e->nop * sizeof(*p->op) + nb * 3 * sizeof(*p->blockop) + ninsn);

	if (!p)
		return NULL;
	p->log = e->nlog ? malloc(e->nlog * sizeof(*p->log)) : NULL;
	if (e->nlog && !p->log) {
		free(p);
		return NULL;
	}
	p->nlog = e->nlog;
	p->nop = e->nop;
	p->op = (void *)(p + 1);
	p->blockop = (void *)(p->op + e->nop);
	p->entryop = p->blockop + nb;
	p->retop = p->entryop + nb;
	p->insnops = (void *)(p->retop + nb);
	if (e->nlog)
		memcpy(p->log, e->log, e->nlog * sizeof(*p->log));
	memcpy(p->op, e->op, e->nop * sizeof(*p->op));
	memcpy(p->blockop, e->blockop, nb * 3 * sizeof(*p->blockop));
	memcpy(p->insnops, e->insnops, ninsn);
	return p;
}

struct sem_op *pe_more(struct pe *e)
{
	static _Thread_local struct sem_op sink;

	if (room(&e->op, e->nop, &e->capop, sizeof(*e->op)))
		return &e->op[e->nop++];
	e->nomem = true;
	return &sink;
}

void pe_log(struct pe *e, uint32_t insn, uint8_t when, uint8_t what, unsigned reg, unsigned w, int32_t disp)
{
	if (!room(&e->log, e->nlog, &e->caplog, sizeof(*e->log))) {
		e->nomem = true;
		return;
	}
	e->log[e->nlog++] = (struct plan_log){insn, when, what, (uint8_t)reg, (uint8_t)w, disp};
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
	e->fix[e->nfix++] = (struct pe_fix){e->nop - 1, arg, (uint8_t)place, next};
}

int pe_resolve(struct pe *e)
{
	uint32_t halt, jmpx;

	halt = e->nop;
	pe_op(e, SEM_HALT, 0, SEM_NONE, SEM_NONE, SEM_NONE, 0);
	jmpx = e->nop;
	pe_op(e, SEM_JMPX, 0, SEM_NONE, SEM_NONE, SEM_NONE, 0);
	if (e->nomem)
		return -1;
	for (uint32_t i = 0; i < e->nfix; i++) {
		const struct pe_fix *f = &e->fix[i];
		uint64_t *imm = (uint64_t *)&e->op[f->op].imm;
		uint32_t to;

		switch (f->place) {
		case PE_BLOCK:
			to = e->blockop[f->arg];
			break;
		case PE_RETURN:
			to = e->retop[f->arg];
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
