/* SPDX-License-Identifier: MIT
 *
 * plan.h - what the parts of the planner share: one group's lifted ops and the decisions on them
 *
 *   gr_form     what of the following an instruction's bytes decide            graph_form.c
 *   gr_open     instructions ─▶ ops, one array a group                         graph.c
 *   gr_order    the order in which blocks are visited                          graph_order.c
 *   sp_run      forward: which values are entry register + constant, which
 *               loads read slots of this frame or read-only bytes              sp.c
 *   gr_range    forward: how many bits values have                             graph_range.c
 *   gr_tables   of the indices of jump tables                                  graph_table.c
 *   gr_deref    backward: which registers hold addresses                       graph_deref.c
 *   gr_know     forward: what of the unloggable (flags, lanes, slots) the ops
 *               compute                                                        graph_know.c
 *   gr_need     backward: which registers, slots, lanes the decoder must know  graph_need.c
 *   gr_branches forward: branches that are known without a log                 graph_branch.c
 *   cut_run     cheapest set of values to log ─▶ decisions                     cut.c
 *   pe_run      the ops that are left and the logs, in stream order            plan_ops.c
 *
 * gr_need alone is correct whatever the decisions are: a value that is needed and cannot be
 * computed is logged where it is defined. Decisions (struct gr_dec) can only make it cheaper.
 */
#ifndef PLAN_H
#define PLAN_H

#include <string.h>
#include "an.h"
#include "form.h"
#include "glue.h"
#include "scratch.h"
#include "sem_lift.h"
#include "sem_uses.h"

/* ---- sets of things the decoder may know: one bit each ---------------------------------
 *
 * 0..63    registers below the lanes, temporaries included: general register = its low byte
 * 64..335  vector lanes and mask registers
 * 336..351 bytes 1 to 3 of a general register
 * 352..367 bytes 4 to 7
 * 368..    stack slots
 */
#define GR_WORDS 9
#define GR_X2 336
#define GR_X4 352
#define GR_SLOT 368
#define GR_NSLOT (GR_WORDS * 64 - GR_SLOT)
_Static_assert(SEM_NREGS <= GR_X2, "register bits end before the extension bits");

struct gr_set {
	uint64_t w[GR_WORDS];
};

static inline bool gr_has(const struct gr_set *s, unsigned bit)
{
	return s->w[bit >> 6] >> (bit & 63) & 1;
}
static inline void gr_add(struct gr_set *s, unsigned bit)
{
	s->w[bit >> 6] |= 1ull << (bit & 63);
}
static inline void gr_del(struct gr_set *s, unsigned bit)
{
	s->w[bit >> 6] &= ~(1ull << (bit & 63));
}
/* The bits of a general register are in two words. */
#define GR_XWORD (GR_X2 / 64)
#define GR_X2BIT (1ull << (GR_X2 & 63))
#define GR_X4BIT (1ull << (GR_X4 & 63))
_Static_assert((GR_X4 + SEM_NGPR - 1) / 64 == GR_XWORD, "bytes of registers are bits of one word");
/* general register r: `w` low bytes of it */
static inline void gr_add_gpr(struct gr_set *s, unsigned r, unsigned w)
{
	s->w[0] |= 1ull << r;
	s->w[GR_XWORD] |= ((w > 1 ? GR_X2BIT : 0) | (w > 4 ? GR_X4BIT : 0)) << r;
}
/* those in a mask: all of their bytes */
static inline void gr_add_gprs(struct gr_set *s, uint32_t mask)
{
	s->w[0] |= mask;
	s->w[GR_XWORD] |= mask * (GR_X2BIT | GR_X4BIT);
}
static inline void gr_del_gprs(struct gr_set *s, uint32_t mask)
{
	s->w[0] &= ~(uint64_t)mask;
	s->w[GR_XWORD] &= ~(mask * (GR_X2BIT | GR_X4BIT));
}
static inline void gr_del_gpr(struct gr_set *s, unsigned r)
{
	gr_del_gprs(s, 1u << r);
}
/* bytes of general register r in the set: 0, 1, 4 or 8 */
static inline unsigned gr_gpr(const struct gr_set *s, unsigned r)
{
	uint64_t x = s->w[GR_XWORD] >> r;

	return x & GR_X4BIT ? 8 : x & GR_X2BIT ? 4 : s->w[0] >> r & 1;
}
static inline bool gr_or(struct gr_set *d, const struct gr_set *s)
{
	uint64_t ch = 0;

	for (int i = 0; i < GR_WORDS; i++) {
		ch |= s->w[i] & ~d->w[i];
		d->w[i] |= s->w[i];
	}
	return ch != 0;
}
static inline bool gr_and(struct gr_set *d, const struct gr_set *s)
{
	uint64_t ch = 0;

	for (int i = 0; i < GR_WORDS; i++) {
		ch |= d->w[i] & ~s->w[i];
		d->w[i] &= s->w[i];
	}
	return ch != 0;
}

/* ---- ops ---------------------------------------------------------------------------------- */

#define GR_NOSLOT 0xffu
enum {
	GN_SLOT2 = 1, /* second 16-byte slot of the op before: not an op */
	GN_STACK = 2, /* REC, LOAD, STORE: address is frame base + off */
	GN_RO = 4, /* LOAD of bytes that never change: becomes SEM_LOADRO */
	GN_SELF = 8, /* LOAD of fs:0, which holds the fs base: becomes a copy of it */
	GN_COMP = 16, /* computable: every operand is loggable or computable */
	GN_EMIT = 32, /* the decoder executes it */
	GN_EA = 64, /* REC: base from a logged effective address */
	GN_LOG = 128, /* result: the general register it defines is logged after the instruction */
	GN_COUNT = 256, /* a temporary that can be logged all the same: rep cmps, scas: rcx afterwards,
	                   logged as rcx; popf: the flags on the stack */
	GN_NEARA = 512, /* a sum, or the address of a REC, is within 2^36 of a; */
	GN_NEARB = 1024, /* of b */
	GN_MASKCAN = 2048, /* RECVEC: its mask register is computable */
	GN_MASK = 4096, /* decision: and is computed, not logged */
};
struct gr_rng { /* a value: less than 2^zb; and fits into sb bits with sign */
	uint8_t zb, sb;
};
#define GR_IDX(bits, scale) ((uint8_t)((bits) << 2 | (scale)))
#define GR_IDX_BITS(idx) ((idx) >> 2)
#define GR_IDX_SCALE(idx) ((idx)&3)
/* What an op is to the passes that follow addresses: sp.c, graph_deref.c. The first ones assign no register. */
enum gr_kind {
	GK_NONE, /* the second slot of a group */
	GK_STORE,
	GK_REC,
	GK_GROUP, /* has a second slot */
	GK_ASIDE, /* a flag, or a lane made of lanes: no address */
	GK_LOAD,
	GK_IMM,
	GK_MODADDR,
	GK_COPY, /* of a whole register */
	GK_LEA,
	GK_SUM, /* or difference */
	GK_ALIGN, /* of rsp, by a constant */
	GK_VALUE, /* any other one */
	GK_VALUES = GK_ASIDE, /* they begin here */
};
struct gr_note {
	uint16_t flags;
	uint8_t base; /* SP_ENTRY or SP_ALIGN with GN_STACK */
	uint8_t slot; /* LOAD, STORE: slot number or GR_NOSLOT */
	union {
		struct {
			uint8_t nw; /* GN_LOG: bytes of the register that are needed */
			struct gr_rng rng; /* of the result: gr_range */
			uint8_t idx; /* LEA: bounds of the scaled operand, 0 if there are none worth it */
		};
		struct sem_ea ea; /* REC */
	};
	int32_t off;
	/* graph_form.c's: */
	uint16_t third; /* register that imm names (sem_third), or SEM_NONE */
	uint8_t kind; /* enum gr_kind */
	uint8_t range; /* enum range_kind */
};

struct gr_insn {
	uint32_t op; /* first op; ops end where the next instruction's begin */
	uint8_t cc; /* jcc: condition code, or one of: */
#define GR_CC_NONE 0xff /* loop*, jrcxz: their own; no jump */
#define GR_CC_XBEGIN 0xfe /* whether the transaction aborts */
	uint8_t ea; /* decision: bit k = record k's address is logged */
	uint16_t logged; /* decision: general registers logged after it if needed */
	uint16_t deref; /* general registers whose values after it are proved addresses: gr_deref */
	uint16_t writes; /* general registers */
	bool rec; /* has a SEM_REC */
};

struct gr_slot {
	int32_t off;
	uint8_t base, w;
};

/* decisions per block, and facts found on the way */
struct gr_block {
	/* sets that are whoever's who asks for them; the rest is zero at first */
	struct gr_set need; /* needed at the start, before AT_BLOCK logs are read */
	struct gr_set logneed; /* what AT_BLOCK logs give: general registers */
	struct gr_set know; /* unloggable things computable at the start */
	uint16_t deref; /* general registers whose values at the start are proved addresses; */
	uint16_t derefwide; /* those with the help of gr_range */
	uint32_t derefend; /* gr_deref: both at the end, at its last visit */
	uint16_t blklog; /* decision: general registers logged at the start if needed */
	uint16_t blkforce; /* and those that have to be */
	uint8_t ctl_log; /* branch or target is logged (MAP_F_PT: left to the processor), not computed */
	uint8_t ctl_can; /* condition or target is computable at all, and to be considered */
	uint8_t stub; /* enum stub */
	struct gr_rng rng[SEM_NGPR]; /* of the general registers at the start */
	uint8_t nrange; /* how often that changed */
	uint16_t small
		[2]; /* conditional jump: general registers within 2^GR_SMALL on the way out, not taken, taken */
	uint16_t flagwritten; /* gr_range: general registers written after */
	uint32_t
		flagop; /* the op that made the flag that its end tests, plus 2; 0: not looked for, 1: not in the block */
	uint8_t visited, live; /* live: reached without a return of calls that do not (sp.c) */
	uint8_t sp_saw; /* SP_* (sp.h), at sp.c's last visit */
	/* where control leaves: callee-saved registers that are not as at entry, for all that is known; rsp, if it is
	 * known not to be at the return address */
	uint16_t sp_lost;
	uint32_t clob; /* call: general registers unknown after it */
	uint8_t sp_base; /* rsp at the end, control's own push included: SP_ENTRY, SP_ALIGN, 0 unknown */
	int32_t sp_off;
};

struct gr {
	struct scratch_mark mark; /* all of it is scratch memory, from here on */
	const struct module *m;
	const struct an_group *g;
	uint32_t mapflags;
	struct sem_op *op;
	struct gr_note *note;
	uint32_t nop;
	struct gr_insn *in; /* ninsn + 1 */
	struct gr_block *b;
	uint8_t *flow; /* per block: enum an_flow of its last instruction */
	/* Jump tables with the same targets are one class, the first of them. Interpreters jump from hundreds of places
	 * to hundreds of targets: what is gathered by class costs a sum, not a product. */
	uint32_t *class; /* per table */
	uint32_t *of,
		*offirst; /* classes that block b is a target of: of[offirst[b]] .. of[offirst[b + 1]] */
	struct gr_set *meet; /* per class: what a pass gathers */
	uint32_t *order, *place; /* blocks in the order in which passes visit them; and their places in it */
	uint64_t *wait; /* by place: to be visited (graph_order.h); */
	uint32_t from, to; /* none in words before and behind these */
	struct gr_slot slot[GR_NSLOT];
	uint32_t nslot;
	bool forward; /* slots may be forwarded: no stack address escapes */
	bool lifo; /* sp_run's verdict */
	bool writes_df;
	bool round1; /* summing up: entry needs are free to grow */
	uint32_t written; /* general registers its own ops write */
	uint32_t lost; /* callee-saved registers not proved restored at some exit */
	bool broken; /* an unloggable value was needed: a bug, the group is refused */
	int64_t *freq; /* per block: CUT_ONCE times how often it runs an activation; */
	uint32_t *backward; /* blocks, what they lead to first, but for what goes back: cut_freq */
	struct wants *wants; /* cut_want.c's: stay, too */
	struct cut *cut; /* cut.c's */
};

/* general registers, callee-saved ones of the System V psABI, 3.2.1, and the caller-saved rest */
#define GR_GPRS ((1u << SEM_NGPR) - 1)
#define GR_CALLEE_SAVED (1u << SEM_RBX | 1u << SEM_RBP | 0xf000u)
#define GR_CALLER_SAVED (GR_GPRS & ~GR_CALLEE_SAVED & ~(1u << SEM_RSP))

/* enum an_flow of a block's last instruction */
static inline uint8_t gr_flow(const struct gr *gr, uint32_t b)
{
	return gr->flow[b];
}

/* Block b ends with an xbegin: rax is unknown in the blocks it leads to */
static inline bool gr_begins(const struct gr *gr, uint32_t b)
{
	return gr->in[gr->g->block[b].first + gr->g->block[b].n - 1].cc == GR_CC_XBEGIN;
}

/* graph.c. gr_open: NULL when out of memory or (*bad = 1) an instruction cannot be lifted. */
struct gr *gr_open(const struct module *m, const struct an_group *g, uint32_t mapflags, int *bad);
void gr_close(struct gr *gr);
/* graph_form.c: the planner's part of a form, from the ops in it */
void gr_form(struct form *f, const ZydisDecodedInstruction *in, uint8_t flow);
static inline struct gr_note *form_notes(const struct form *f)
{
	_Static_assert(sizeof(struct gr_note) == FORM_NOTE, "form.h makes room for them");
	return (struct gr_note *)(f->op + f->n);
}
static inline bool gr_has_slot2(const struct sem_op *op)
{
	return op->op == SEM_RECVEC || op->op == SEM_RECREP || op->op == SEM_RECXS;
}
static inline unsigned gr_mask(const struct sem_op *op) /* mask register of a RECVEC, or SEM_NONE */
{
	const struct sem_vec *v = (const struct sem_vec *)(op + 1);

	return op->op == SEM_RECVEC && v->mask == SEM_MASK_K ? SEM_K0 + v->count : SEM_NONE;
}
static inline bool gr_is_value(const struct sem_op *op) /* assigns dst */
{
	return op->op != SEM_END && op->op < SEM_BLOCK && op->op != SEM_STORE && op->op != SEM_REC &&
	       op->op != SEM_VCHK && !gr_has_slot2(op);
}
uint32_t gr_call_clobber(const struct gr *gr, uint32_t insn); /* registers unknown after a call */

/* noret.c */
int find_noret(struct module *m, const uint32_t *order, uint32_t n);
bool gr_dead_call(const struct gr *gr, uint32_t insn); /* a direct call of a group that does not return */

/* sp.c */
enum { SP_ENTRY = SEM_RSP, SP_ALIGN = 16 };
int sp_run(struct gr *gr);

/* graph_know.c, graph_need.c, graph_branch.c. gr_branches turns branches that are known after a
 * gr_need into computed ones (ctl_log = 0); run gr_need again after it. */
int gr_know(struct gr *gr);
/* graph_range.c: after gr_open has clob */
void gr_range(struct gr *gr);
void gr_tables(struct gr *gr); /* graph_table.c, after it */
unsigned gr_zero_width(const struct sem_op *op); /* bytes of an op's result that can be other than zero */
/* graph_deref.c: addresses are logged in GR_ADDR bytes */
#define GR_ADDR 6
#define GR_SMALL 32
#define GR_WIDE 512 /* sums with an index, in a group, that addresses are followed through */
void gr_deref(struct gr *gr);
uint32_t gr_entry_derefs(const struct gr *gr);
unsigned gr_eawidth(const struct gr *gr, uint32_t k);
int gr_need(struct gr *gr);
int gr_branches(struct gr *gr);
/* operands of op k that matter when nw bytes of the result do, slots aside */
static inline int gr_op_uses(const struct gr *gr, uint32_t k, unsigned nw, struct sem_use u[4])
{
	const struct sem_op *op = &gr->op[k];

	if (gr->note[k].flags & GN_SELF) {
		u[0] = (struct sem_use){SEM_FSBASE, 8};
		return 1;
	}
	if (op->dst >= SEM_NGPR)
		nw = 8;
	return sem_uses(op, nw, u);
}
/* block b leaves by a ret or an indirect jump that may switch stacks: the target is logged and all
 * callee-saved registers are needed, because no frame says what they are */
bool gr_switches(const struct gr *gr, uint32_t b);
/* registers that the return to block b's successor must log, of those needed there */
uint32_t gr_ret_clobber(const struct gr *gr, uint32_t b);
void gr_forget_slots(const struct gr *gr, uint32_t k, struct gr_set *s); /* a record that writes */

/* cut.c: decisions by minimum cut; 0, or 1 when the group is too large for it, -1 no memory. The graph
 * stays with the group: a second run with round1 or sum->needs changed is cheap. *same: nothing else is decided
 * than the last time. */
int cut_run(struct gr *gr, bool *same);
void cut_close(struct gr *gr);
/* cut_freq.c: freq and backward, if they are not there yet; 0, -1 no memory. Both stay with the group */
#define CUT_ONCE 128 /* weight of what runs once an activation */
int cut_freq(struct gr *gr);

/* plan.c: all of the above on an opened group; 0 or -1 */
int plan_solve(struct gr *gr);

/* plan_ops.c */
struct plan *pe_run(struct gr *gr);
/* can record op k of instruction i be logged as an effective address, and as which operand? */
bool pe_ea(const struct gr *gr, uint32_t i, uint32_t k, struct plan_log *l);

#endif
