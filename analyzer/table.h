/* SPDX-License-Identifier: MIT
 *
 * table.h - backward value analysis over one group's blocks, for indirect jumps
 *
 *   table.c        shapes of indirect jumps, what a jump may reach
 *   table_read.c   reading tables, checking their entries
 *   table_value.c  reaching definitions; constants a register may hold
 *   table_bound.c  largest unsigned value a register or memory operand may hold
 */
#ifndef TABLE_H
#define TABLE_H

#include "disc.h"

struct dins {
	ZydisDecodedInstruction in;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

#define WR_FLAGS (1u << 16)
#define WR_MEM (1u << 17)
#define WR_KNOWN (1u << 31)

/* A store to a stack slot: of a register, or of something not followed. */
struct tslot {
	int64_t disp;
	uint32_t insn;
	int8_t base;
	bool mov;
};

/* A table that was read, and what that gave: an interpreter's jumps all read the same one. */
struct tread {
	uint64_t base, label, max;
	unsigned size;
	bool sign;
	uint32_t n; /* entries */
	VEC(uint32_t) target;
	bool exact, leaves, changes; /* all up to max; some lead to other functions; the memory may change */
};

struct tctx {
	struct disc *d;
	struct an_group *g;
	uint32_t *wr; /* per instruction: registers written, WR_*; 0 = not looked at */
	uint32_t *stamp; /* per block: last search that visited it */
	uint32_t *stack; /* block indices */
	uint32_t now;
	uint32_t budget; /* steps left for this jump */
	VEC(uint32_t) used; /* code labels that are bases of relative tables */
	/* of the whole group, made on first use: interpreters have hundreds of jumps that ask */
	VEC(struct tslot) slot; /* ascending base, disp, insn */
	VEC(uint32_t) lea; /* data addresses that it computes, in its order */
	bool have_slots, have_lea;
	struct tread last;
	/* targets of the jump that was settled last: as found; and sorted, each once */
	VEC(uint32_t) found;
	const struct ijmp *same;
};

enum { DEFS_MAX = 24, CONSTS_MAX = 16 };
/* Definitions of a register that reach a point. open: it may also come from outside the group. */
struct defs {
	uint32_t v[DEFS_MAX], n;
	bool open;
};
struct consts {
	uint64_t v[CONSTS_MAX];
	uint32_t n;
	bool open;
};

bool tv_decode(const struct tctx *t, uint32_t insn, struct dins *o);
int tv_gpr(ZydisRegister r); /* 0..15 or -1 */
uint32_t tv_writes(struct tctx *t, uint32_t insn); /* WR_* */
void tv_defs(struct tctx *t, int reg, uint32_t before, struct defs *o);
/* instructions that store a register to stack slot disp(base) */
void tv_slot_stores(struct tctx *t, int base, int64_t disp, struct defs *o);
void tv_consts(struct tctx *t, int reg, uint32_t before, struct consts *o, int depth);
bool tv_is_slot(const ZydisDecodedOperand *op); /* disp(%rsp) or disp(%rbp) */

/* What one indirect jump may do, as far as understood. */
struct result {
	VEC(uint32_t) target;
	uint32_t table, entsize, entries; /* entries: of the longest one */
	bool scan; /* read tables without bound too */
	bool found; /* at least one table or label */
	bool leaves; /* may also go elsewhere */
	bool computed; /* arithmetic on code addresses */
	bool unbounded; /* a table without bound was met */
	bool loose; /* targets listed, but not proved to be all */
	bool open_end; /* a table was read to the next label for want of a bound */
};

/* What a table entry's target is to this group. */
enum target { T_OWN, T_FUNC, T_END /* clang's unreachable default: the function's end */, T_BAD };

bool tr_own(struct tctx *t, uint32_t v); /* in the group's ranges */
enum target tr_classify(struct tctx *t, uint64_t v);
void tr_add(struct result *r, struct disc *d, uint32_t v);
/* The load at instruction i, of a table entry of `size` bytes through m. label: bases of relative entries,
 * or NULL. False: this is no table. */
bool tr_load(struct tctx *t, const struct dins *x, const ZydisDecodedOperandMem *m, uint32_t i, unsigned size,
	     const struct consts *label, bool sign, struct result *r, int depth);

#define TB_INF UINT64_MAX
/* largest value of reg (w bytes of it) before an instruction */
uint64_t tb_max(struct tctx *t, int reg, uint8_t w, uint32_t before);

#endif
