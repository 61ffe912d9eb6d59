/* SPDX-License-Identifier: MIT
 *
 * plan_ctl.c - the control op that ends a block (include/sem.h), as glue.h decides
 *
 *   block ──NEXT/JMP──▶ block                        tail jump ──▶ callee's block, or a mark
 *   block ──CALL──▶ callee … ret ──▶ NEXT = the return site's program (retop):
 *                                    [RMARK] stub logs, then the block
 *   block ──CALLX, JMPX──▶ whatever the next mark says; a LINK mark: the block that the JMPX names
 *
 * Where the return site needs two stubs or can be reached by a longjmp (STUB_RESYNC) NEXT is a
 * SEM_JMPX: the site's own mark says how to go on.
 */
#include "plan_buf.h"

static struct sem_op *ctl(struct pe *e, uint8_t code, unsigned a)
{
	return pe_op(e, code, 0, SEM_NONE, a, SEM_NONE, 0);
}

/* where a call of block b comes back */
static void return_target(struct pe *e, const struct an_block *b)
{
	if (b->succ[1] == AN_NONE)
		pe_target(e, true, PE_HALT, 0);
	else if (pe_is_return(e->gr, b->succ[1]))
		pe_target(e, true, PE_RETURN, b->succ[1]);
	else
		pe_target(e, true, PE_JMPX, 0);
}

/* where a direct jump out of the group goes */
static void tail_target(struct pe *e, uint32_t insn)
{
	const struct an_callee *c = glue_callee(e->gr->g, insn);

	if (c)
		pe_target(e, false, PE_CALLEE, (uint32_t)(c - e->gr->g->callee));
	else
		pe_target(e, false, PE_JMPX, 0);
}

static void jump_target(struct pe *e, const struct an_block *b, uint32_t insn)
{
	if (b->succ[0] == AN_NONE)
		tail_target(e, insn);
	else
		pe_target(e, false, PE_BLOCK, b->succ[0]);
}

static void next_target(struct pe *e, bool next, const struct an_block *b)
{
	if (b->succ[1] == AN_NONE)
		pe_target(e, next, PE_HALT, 0);
	else
		pe_target(e, next, PE_BLOCK, b->succ[1]);
}

/* T0 = where the jump or return goes, which the decoder is not going to compute */
static void target(struct pe *e, uint32_t insn)
{
	if (e->gr->mapflags & MAP_F_PT) {
		pe_op(e, SEM_FLOW, 0, SEM_T0, SEM_NONE, SEM_NONE, 0);
		return;
	}
	pe_log(e, insn, AT_BEFORE, LOG_TARGET, 0, 8, 0);
	pe_op(e, SEM_LOG, 8, SEM_T0, SEM_NONE, SEM_NONE, SEM_WHY_TARGET);
}

static void jcc(struct pe *e, uint32_t bi, const struct an_block *b, uint32_t insn)
{
	struct gr *gr = e->gr;

	/* that a transaction was aborted is in the log with Intel PT, too: what it had logged is not */
	if ((gr->mapflags & MAP_F_PT) && gr->in[insn].cc != GR_CC_XBEGIN) {
		ctl(e, SEM_JCC_FLOW, SEM_NONE);
	} else if (gr->b[bi].ctl_log) {
		if (gr->in[insn].cc > 15) /* loop*, jrcxz, xbegin */
			pe_log(e, insn, AT_BEFORE, LOG_HOP, 0, 1, 0);
		else
			pe_log(e, insn, AT_BEFORE, LOG_SETCC, gr->in[insn].cc, 1, 0);
		ctl(e, SEM_JCC_LOG, SEM_NONE);
	} else {
		ctl(e, SEM_JCC, SEM_T0);
	}
	jump_target(e, b, insn);
	next_target(e, true, b);
}

static void ijmp(struct pe *e, uint32_t bi, uint32_t insn)
{
	struct gr *gr = e->gr;
	enum jumpkind kind = glue_jump(gr->m, gr->g, bi);

	if (kind == JUMP_LEAVES && gr_switches(gr, bi)) {
		target(e, insn);
		ctl(e, SEM_RETX, SEM_T0)->dst = SEM_RETX_JUMP;
	} else if (kind == JUMP_LEAVES && glue_link(gr->g, bi)) {
		ctl(e, SEM_JMPX, SEM_NONE)->dst = SEM_JMPX_LINK;
		tail_target(e, insn);
	} else if (kind == JUMP_LEAVES) {
		ctl(e, SEM_JMPX, SEM_NONE);
	} else if (!gr->b[bi].ctl_log) {
		ctl(e, SEM_IJMP, SEM_T0)->imm = kind == JUMP_MIXED ? SEM_IJMP_MAY_LEAVE : 0;
	} else if (kind == JUMP_MIXED || (gr->mapflags & MAP_F_PT)) {
		target(e, insn);
		ctl(e, SEM_IJMP, SEM_T0)->imm = kind == JUMP_MIXED ? SEM_IJMP_MAY_LEAVE : 0;
	} else {
		pe_log(e, insn, AT_BEFORE, LOG_TARGET, 0, 4, 0);
		ctl(e, SEM_IJMP_LOG, SEM_NONE);
	}
}

static void call(struct pe *e, const struct an_block *b, uint32_t insn)
{
	struct gr *gr = e->gr;

	if (gr->g->insn[insn].flow == FLOW_ICALL || glue_call(gr->m, gr->g, insn) == CALL_EXT) {
		ctl(e, SEM_CALLX, SEM_NONE);
	} else {
		ctl(e, SEM_CALL, SEM_NONE);
		tail_target(e, insn);
	}
	return_target(e, b);
}

/* n of `ret n`: what is added to rsp beyond the return address */
static int64_t ret_pops(const struct gr *gr, uint32_t insn)
{
	for (uint32_t k = gr->in[insn].op; k < gr->in[insn + 1].op; k++)
		if (gr->op[k].op == SEM_LEA && gr->op[k].dst == SEM_RSP)
			return gr->op[k].imm - 8;
	return 0;
}

static void ret(struct pe *e, uint32_t bi, uint32_t insn)
{
	if (!gr_switches(e->gr, bi)) {
		ctl(e, SEM_RET, SEM_NONE)->imm = ret_pops(e->gr, insn);
		return;
	}
	target(e, insn);
	ctl(e, SEM_RETX, SEM_T0)->imm = ret_pops(e->gr, insn);
}

void pe_control(struct pe *e, uint32_t bi)
{
	struct gr *gr = e->gr;
	const struct an_block *b = &gr->g->block[bi];
	uint32_t insn = b->first + b->n - 1;

	switch (gr->g->insn[insn].flow) {
	case FLOW_NEXT:
		ctl(e, SEM_JMP, SEM_NONE);
		next_target(e, false, b);
		break;
	case FLOW_JMP:
		ctl(e, SEM_JMP, SEM_NONE);
		jump_target(e, b, insn);
		break;
	case FLOW_JCC:
		jcc(e, bi, b, insn);
		break;
	case FLOW_IJMP:
		ijmp(e, bi, insn);
		break;
	case FLOW_CALL:
	case FLOW_ICALL:
		call(e, b, insn);
		break;
	case FLOW_RET:
		ret(e, bi, insn);
		break;
	case FLOW_SYSCALL:
		ctl(e, SEM_SYSCALL, SEM_NONE);
		next_target(e, true, b);
		break;
	default:
		ctl(e, SEM_HALT, SEM_NONE);
		break;
	}
}
