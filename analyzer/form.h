/* SPDX-License-Identifier: MIT
 *
 * form.h - what the stages know of an instruction from its bytes alone
 *
 * Code repeats itself: of a hundred instructions, some eighty have bytes that were seen before. What follows
 * from the bytes (lifted ops, use and definition sets, whether the copy can take them as they are) is found
 * once and kept by them; it costs more than all lookups together. Where an operand is relative to the instruction pointer,
 * by how much is no part of it.
 */
#ifndef FORM_H
#define FORM_H

#include <string.h>
#include "an.h"
#include "sem_lift.h"

struct form {
	/* bytes, without the distance of a direct jump or call and what is relative to rip; length; flow */
	uint64_t key[2];
	uint8_t reason; /* enum map_reason: MAP_OK, or why it cannot be copied (emit_can) */
	bool plain; /* no transfer, and its copy is its bytes (but for what is relative to rip) */
	uint16_t gprs; /* general registers it touches in any way: dec_gprs */
	uint8_t nslot, slot[15]; /* names r15, no transfer: r15_slot */
	/* live.c */
	uint32_t use, def, may;
	uint32_t writes; /* table_value.c: WR_* */
	/* graph_form.c */
	uint8_t cc; /* as in struct gr_insn */
	bool writes_df;
	bool has_rec;
	uint16_t written; /* general registers */
	/* sem_lift's; n -1: cannot be lifted. Ops whose imm is to be made the instruction's: bit i of rec: op i
	 * is a record, of mod: op i is a SEM_MODADDR, of rip: it is the address of the operand relative to rip */
	int n;
	uint64_t rec, mod, rip;
	struct sem_ea ea[SEM_EA_MAX]; /* of the SEM_REC ops, in order */
	struct sem_op op[]; /* n, then their n notes: form_notes in plan.h */
};
#define FORM_NOTE 16 /* bytes: a struct gr_note */
#define FORM_TMP (sizeof(struct form) + SEM_LIFT_MAX * (sizeof(struct sem_op) + FORM_NOTE))

/* table_value.c's part */
uint32_t tv_form(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op);
#define TV_ALL 0x8003ffffu /* what cannot be decoded writes all there is */

/* What is known of instruction i: kept for good, or in tmp, FORM_TMP bytes with the alignment of a struct form.
 * From any thread. */
const struct form *form_get(const struct module *m, const struct an_insn *i, void *tmp);
/* those of n instructions, NULL where there is none yet. Many at a time: each look-up misses the cache, and they wait
 * together. From any thread. */
void form_find(const struct module *m, const struct an_insn *i, uint32_t n, const struct form **out);
/* what form_get says, for instruction i of a group: without a search once live_facts has been there */
const struct form *form_of(const struct module *m, const struct an_group *g, uint32_t i, void *tmp);
/* makes f's ops those of instruction i, whose form it is */
static inline void form_place(const struct form *f, const struct module *m, const struct an_insn *i,
			      struct sem_op *op)
{
	int32_t disp;

	for (uint64_t s = f->rec; s; s &= s - 1)
		op[__builtin_ctzll(s)].imm |= SEM_RECIMM(0, i->vaddr);
	for (uint64_t s = f->mod; s; s &= s - 1)
		op[__builtin_ctzll(s)].imm += i->vaddr;
	if (!f->rip)
		return;
	memcpy(&disp, elf_at(m, i->vaddr, i->len) + i->disp, 4);
	for (uint64_t s = f->rip; s; s &= s - 1)
		op[__builtin_ctzll(s)].imm += disp;
}

#endif
