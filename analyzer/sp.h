/* SPDX-License-Identifier: MIT
 *
 * sp.h - abstract values of the frame analysis (sp.c, sp_step.c)
 *
 * A value is a constant away from something fixed for this activation: a register as it was at
 * entry, the stack pointer as a realigning `and` left it, the module, or zero. Everything else is
 * OTHER, or TAINT when it may have been computed from the stack pointer.
 */
#ifndef SP_H
#define SP_H

#include "plan.h"

enum av_kind {
	AV_TOP,
	AV_OTHER,
	AV_TAINT,
	AV_ALIGN,
	AV_FRAME, /* rsp at entry */
	AV_REG, /* another register */
	AV_MOD,
	AV_IMM,
	AV_IDX /* module address c plus something: r, if not 0, bounds it (struct gr_note, idx) */
};
struct av { /* no padding: compared as a whole */
	uint16_t k, r; /* r: the entry register of AV_FRAME and AV_REG, the bounds of AV_IDX */
	int32_t c;
};

/* a slot that holds an abstract value (a saved register, mostly) */
#define SP_NSAVE 24
struct sp_save {
	int32_t off;
	uint32_t base;
	struct av v;
};

struct sp_state {
	struct av r[SEM_NGPR];
	struct sp_save save[SP_NSAVE]; /* ascending base and offset */
	uint8_t nsave;
	bool seen;
};

/* what a visit of a block has seen (struct gr_block, sp_saw) */
enum {
	SP_MISPOP =
		1, /* a callee-saved register is popped where another one is saved, or an address of the frame */
	SP_SWITCH = 2, /* rsp is set to what is no address of this frame */
	SP_KEPT = 4, /* a constant is kept in the frame */
	SP_LEAVES = 8, /* control leaves the group for good, */
	SP_RETURNS = 16, /* by a ret, */
	SP_NOLIFO = 32, /* where rsp is not proved to be at the return address */
};

struct sp {
	struct gr *gr;
	struct sp_state *in; /* per block */
	struct sp_state *class; /* per class of jump tables: meet over the jumps */
	struct sp_state call; /* meet over all call sites: what a landing pad starts from */
	struct av t[64]; /* of the block being looked at: registers and temporaries; flags are OTHER */
	uint8_t saw; /* of it: SP_* */
	bool landing; /* the group has landing pads */
	bool call_changed;
	bool escape; /* a stack address is used in a way not followed */
	bool kept; /* a constant was kept in the frame */
	bool nokeep; /* constants in the frame are not followed: who has an address of it may write there */
	bool retslot; /* the return address may be overwritten */
	bool dead; /* second pass: calls that do not return lead on to what nothing else leads to */
	bool switches; /* rsp is set to what is no address of this frame */
	bool uneven; /* it is at different heights on two ways to a block */
	bool unsettled; /* what the blocks noted is of other states than the last ones */
};

static inline bool av_same(struct av a, struct av b)
{
	uint64_t x, y;

	_Static_assert(sizeof(a) == sizeof(x), "all of it");
	memcpy(&x, &a, sizeof(x));
	memcpy(&y, &b, sizeof(y));
	return x == y;
}
static inline bool av_stack(struct av a)
{
	return a.k >= AV_TAINT && a.k <= AV_FRAME;
}
static inline bool av_frame(struct av a) /* exact */
{
	return a.k == AV_ALIGN || a.k == AV_FRAME;
}
static inline bool av_entry(struct av a)
{
	return a.k == AV_FRAME || a.k == AV_REG;
}
static inline uint8_t av_base(struct av a)
{
	return a.k == AV_ALIGN ? SP_ALIGN : SP_ENTRY;
}

static inline bool sp_before(const struct sp_save *s, uint8_t base, int32_t off)
{
	return s->base != base ? s->base < base : s->off < off;
}

/* sp.c: run block bi from its in-state; the out-state is left in *s */
void sp_block(struct sp *sp, uint32_t bi, struct sp_state *s);
void sp_copy(struct sp_state *d, const struct sp_state *s);
void sp_entry(struct sp_state *s);
/* sp_stray.c, after the fixpoint: does the code contradict that what it calls keeps to the psABI? */
bool sp_astray(struct sp *sp);
/* sp_step.c: effect of block bi's ops on the registers in sp->t and the saves of s */
void sp_ops(struct sp *sp, struct sp_state *s, uint32_t bi);
/* slots, and loads of what never changes, from what was noted on the last visits */
void sp_notes(struct sp *sp);

#endif
