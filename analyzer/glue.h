/* SPDX-License-Identifier: MIT
 *
 * glue.h - how control enters and leaves a group's copy at each place
 *
 * The plan (decoder's view) and the emitter (processor's view) must agree on these choices, so
 * they are made here, once, from discovery's facts and the summaries.
 */
#ifndef GLUE_H
#define GLUE_H

#include "an.h"

/* What the original text's patch at a block's address leads to. */
enum stub {
	STUB_NONE, /* nobody lands here from outside: no patch, the bytes are dead */
	STUB_PLAIN, /* target of exact tables only: straight to the block, r15 is LP */
	STUB_RELOAD, /* r15 = LP again: return site of a direct call (no mark), in-group candidates
	                 of inexact jumps */
	STUB_RETURN, /* return site with a RET mark */
	STUB_ENTRY, /* ENTRY or ENTRYX mark */
	STUB_RESYNC, /* RESYNC mark: landing pads, returns-twice sites, and any block that would
	                 need two different stubs (an entry that is also something else included) */
};

enum callkind {
	CALL_DIRECT, /* relocated callee, all of whose exits are known: SEM_CALL, return STUB_RELOAD */
	CALL_TAILX, /* relocated callee that may leave by an indirect jump: SEM_CALL, STUB_RETURN */
	CALL_EXT, /* SEM_CALLX, STUB_RETURN */
};

enum jumpkind {
	JUMP_PLAIN, /* exact table, all targets STUB_PLAIN: SEM_IJMP, r15 stays LP */
	JUMP_RELOAD, /* stays in the group, r15 given back: SEM_IJMP; all targets STUB_RELOAD/PLAIN-as-RELOAD */
	JUMP_MIXED, /* may stay or leave: target is a root (8 bytes if logged); SEM_IJMP where the decoder
	                 goes to the leader if there is one of this group, else expects a mark */
	JUMP_LEAVES, /* SEM_JMPX, with SEM_JMPX_LINK where glue_link names a group */
};

enum stub glue_find_stub(const struct module *m, const struct an_group *g, uint32_t block);
static inline enum stub glue_stub(const struct module *m, const struct an_group *g, uint32_t block)
{
	const uint32_t inside = AN_B_LOOPHEAD | AN_B_REACHED; /* most are nothing else */

	return g->block[block].flags & ~inside ? glue_find_stub(m, g, block) : STUB_NONE;
}
enum callkind glue_call(const struct module *m, const struct an_group *g, uint32_t insn);
enum jumpkind glue_jump(const struct module *m, const struct an_group *g, uint32_t block);
/* A call that may come back with any rsp and any registers, because it may run code that is not seen and that keeps to other
 * rules than the psABI's. Its return site has a RESYNC mark. */
bool glue_strays(const struct module *m, const struct an_group *g, uint32_t insn);
/* the group that the indirect jump at the end of a block is expected to lead to: the copy compares, and goes
 * to its direct entry after a LINK mark if it is right. NULL if none */
const struct an_callee *glue_link(const struct an_group *g, uint32_t block);
/* resolved direct callee or tail target of an instruction, NULL if none or opaque */
const struct an_callee *glue_find_callee(const struct an_group *g, uint32_t insn);
static inline const struct an_callee *glue_callee(const struct an_group *g, uint32_t insn)
{
	uint32_t k;

	if (!(g->insn[insn].flags & AN_I_CALLEE))
		return NULL;
	k = g->block[g->insn[insn].block].callee; /* where it was, and mostly is */
	return k < g->ncallee && g->callee[k].insn == insn ? &g->callee[k] : glue_find_callee(g, insn);
}

#endif
