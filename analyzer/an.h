/* SPDX-License-Identifier: MIT
 *
 * an.h - what the stages of the analyzer hand to each other
 *
 *   elf_open ─▶ struct module     sections, symbols, relocations, FDEs, LSDAs
 *   discover ─▶ groups, insns, blocks, jump tables, opaque list      (discover_*, cfg_*, table_*)
 *   sem_lift    one instruction ─▶ ops                               (sem_lift.h)
 *   live        registers and flags live at each instruction         (live_*)
 *   graph, cut  value graph, cheapest cut ─▶ struct plan + ops       (graph_*, cut_*, plan_*)
 *   emit        copy text, patches, fix-ups, address map             (emit_*, patch_*)
 *   map_write   the file
 *
 * Discovery is global and runs first; what follows is per group and runs in parallel, in two
 * rounds: round 1 computes each group's summary (may-write set, needs, liveness at returns),
 * callees before callers, round 2 emits.
 */
#ifndef AN_H
#define AN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "map.h"
#include "sem.h"

#define AN_NONE 0xffffffffu

/* How an instruction transfers control. */
enum an_flow {
	FLOW_NEXT, /* falls through only */
	FLOW_JMP, /* direct jump */
	FLOW_JCC, /* conditional; loop*, jrcxz and xbegin included */
	FLOW_IJMP, /* indirect jump */
	FLOW_CALL, /* direct call */
	FLOW_ICALL, /* indirect call */
	FLOW_RET,
	FLOW_SYSCALL,
	FLOW_HALT, /* ud2, hlt, int3: no successor */
};

struct an_insn {
	uint32_t vaddr;
	uint32_t target; /* direct jmp/jcc/call: target vaddr, else AN_NONE */
	uint8_t len;
	uint8_t flow; /* enum an_flow */
	uint8_t flags; /* AN_I_* */
	uint8_t disp; /* where its displacement begins, if that is relative to the next instruction; 0: it has none */
	uint32_t block; /* index within the group */
};
/* An instruction that is also entered behind its prefix (a jump over `lock`) appears twice in
 * an_group.insn: from the prefix on, and one byte later without it. Each form is a block of its own with
 * the same succ[1]: control does not always fall into the block that follows in address order, and the
 * two overlap in memory. */
enum {
	AN_I_NORETURN = 1, /* call that does not come back (falls into another function, or padding) */
	AN_I_SETJMP = 2, /* call of a returns-twice function */
	AN_I_STRAY = 8, /* call that may come back with any rsp: of code without unwind tables */
	AN_I_CALLEE = 4 /* is in an_group.callee, or was: the others need not be looked for there */
};

/* Blocks end at control transfers (calls and syscalls included) and before leaders. */
struct an_block {
	uint32_t first, n; /* instructions, indices into the group's insns */
	uint32_t succ[2]; /* block indices in the group, AN_NONE if none.
	                           JCC: [0] taken, [1] fall-through. JMP: [0]. NEXT: [1].
	                           CALL/ICALL/SYSCALL: [1] = return site (AN_NONE if noreturn).
	                           A direct jump/jcc that leaves the group has succ[0] = AN_NONE and the
	                           target in the last insn: it is then a tail call. */
	uint32_t table; /* IJMP: index into the group's tables, AN_NONE if the jump leaves */
	uint32_t
		callee; /* where in the group's callee list its last instruction was first put, if it is in there */
	uint32_t *pred; /* block indices; includes jump-table predecessors */
	uint32_t npred;
	uint16_t flags; /* AN_B_* */
	uint16_t depth; /* loop nesting depth */
};
enum {
	AN_B_ENTRY = 1, /* callable from outside the group: function entry or extra entry */
	AN_B_TARGET = 2, /* target of an in-group indirect jump */
	AN_B_LANDING = 4, /* exception landing pad */
	AN_B_RETURN = 8, /* follows a call */
	AN_B_TWICE = 16, /* follows a call of a returns-twice function */
	AN_B_LOOPHEAD = 32, /* target of a back edge (also of retreating edges of irreducible loops) */
	AN_B_ANYTARGET = 64, /* possible target of a jump whose targets are not fully known */
	AN_B_REACHED = 128,
};

/* An in-group indirect jump. */
struct an_table {
	uint32_t jump; /* instruction index of the jump */
	uint32_t *target; /* block indices, may repeat */
	uint32_t ntarget;
	uint32_t vaddr; /* of the table in memory, AN_NONE if none was recognised */
	uint32_t entry_size; /* 4 or 8 */
	uint32_t
		nentry; /* of the longest table, if there are several: where it is exact, indices are below */
	bool exact; /* every possible target is listed and none leaves the group. If not, the
	                         targets are the candidates and the jump may also leave */
};

struct an_callee {
	uint32_t insn;
	uint32_t group;
	uint32_t block;
}; /* direct call/tail call resolved */

struct an_group {
	uint32_t id;
	const char *name; /* symbol or NULL; owned by the module */
	struct map_range *range; /* sorted, disjoint; code of the group */
	uint32_t nrange;
	uint32_t reason; /* enum map_reason: MAP_OK when certain */
	struct an_insn *insn; /* ascending vaddr */
	uint32_t ninsn;
	struct an_block *block; /* ascending vaddr */
	uint32_t nblock;
	struct an_table *table;
	uint32_t ntable;
	struct an_callee *callee; /* direct calls and tail jumps to certain groups of this module, and what
	                             indirect jumps of stubs are expected to lead to (glue_link) */
	uint32_t ncallee;
	bool suspect; /* unreached non-padding bytes were inside: if the group has a jump with unknown
	                             targets they are decoded and their starts are candidates of that jump,
	                             else they are dead code or data and are left as they are */
	bool bare; /* some of it has no unwind tables: hand-written, or generated, by rules of its own */
	uint8_t glue; /* glue.c's cache; 0 = not computed. Reset when tables or flags change */
	void *live, *graph; /* owned by later stages */
	struct an_summary *sum;
};

/* Interprocedural facts, filled by round 1. Register sets: bit i = register i of enum sem_reg (GPRs), bit 16
 * = flags. */
struct an_summary {
	uint32_t maywrite; /* GPRs this group or its callees may change and not restore at return */
	uint32_t ownwrite; /* GPRs written anywhere in the group's own instructions */
	uint32_t derefs; /* GPRs that every entry uses as addresses before anything else (graph_deref.c) */
	uint32_t needs; /* GPRs the decoder must know at entry (direct entry: the caller provides) */
	uint32_t callers; /* direct calls and tail jumps to it in this module (plan_summaries) */
	uint32_t liveret; /* registers/flags some direct caller reads after the call, beyond the ABI */
	bool tailx; /* may leave by an indirect jump: its caller's return site needs a RET mark */
	bool noret; /* no way through it, as far as known, comes to an exit */
	bool lifo; /* every ret provably pops this activation's own return address */
	bool priv, keeps; /* only direct calls that know lead to it; and it returns with LP in r15: keep.c */
	bool strays; /* its code contradicts that unseen code comes back by the psABI's convention: sp_stray.c */
	bool addr_taken; /* may be entered other than by direct calls of this module */
};

struct an_ro {
	uint32_t vaddr, size;
	const uint8_t *bytes;
	bool addresses; /* eight-byte words that are this plus the load bias */
};

struct module {
	const char *path;
	const uint8_t *file; /* the file, mapped or read */
	size_t file_size;
	uint8_t key[32];
	uint32_t key_len, key_kind;
	bool pie; /* ET_DYN */
	uint32_t vaddr_lo, vaddr_hi;
	struct map_seg *seg;
	uint32_t nseg;
	struct map_seg code; /* the first of them with PF_X: it is asked for most */
	struct an_ro
		*ro; /* bytes that cannot change after start: segments without PF_W, addresses in RELRO */
	uint32_t nro;
	const char *soname;
	struct an_group *group; /* the certain ones, ascending lowest vaddr; their bytes that are also read
	                             as data are AN_BYTE_KEEP in live_byte */
	uint32_t ngroup;
	struct map_opaque *opaque;
	uint32_t nopaque;
	uint8_t *live_byte; /* one byte per vaddr from text_lo: AN_BYTE_* */
	uint32_t text_lo, text_hi;
	uint32_t mapflags; /* MAP_F_*: what the map is to be */
	bool hidden; /* MAP_F_HIDDEN */
	bool bases; /* MAP_F_BASES */
	uint32_t place; /* of MAP_PLACE, AN_NONE: none is asked for */
	void *priv; /* elf.c, discover.c */
};
/* live_byte values: what may be done with a byte of the original text. */
enum {
	AN_BYTE_KEEP = 0, /* unknown, data, opaque code: never touched */
	AN_BYTE_CODE = 1, /* part of a certain group's instruction */
	AN_BYTE_PAD = 2
}; /* padding between functions: free for islands and longer patches */

/* elf.c */
struct module *elf_open(const char *path, char *err, size_t errlen);
void elf_close(struct module *m);
/* bytes of the image at vaddr, n bytes available in one PT_LOAD's file part, or NULL */
static inline const uint8_t *elf_at(const struct module *m, uint32_t vaddr, size_t n)
{
	const struct map_seg *c = &m->code;

	if (vaddr >= c->vaddr && vaddr - c->vaddr < c->filesz && n <= c->filesz - (vaddr - c->vaddr))
		return m->file + c->off + (vaddr - c->vaddr);
	for (const struct map_seg *s = m->seg; s < m->seg + m->nseg; s++)
		if (vaddr >= s->vaddr && vaddr - s->vaddr < s->filesz && n <= s->filesz - (vaddr - s->vaddr))
			return m->file + s->off + (vaddr - s->vaddr);
	return NULL;
}
bool elf_ro(const struct module *m, uint32_t vaddr, uint64_t w); /* elf_ro.c */
bool elf_sigreturn(const struct module *m, uint32_t v); /* what signal handlers return to begins at v */
bool elf_is_text(const struct module *m, uint32_t vaddr); /* in an executable PT_LOAD */

/* avoid.c: before discover. 0, or -1 with err */
int avoid_read(struct module *m, const char *path, char *err, size_t errlen);
/* discover.c: fills groups, opaque list, live_byte. 0 or -1 with err. */
int discover(struct module *m, int jobs, char *err, size_t errlen);
/* group and block that start exactly at vaddr; NULL / AN_NONE if none */
struct an_group *group_at(const struct module *m, uint32_t vaddr, uint32_t *block);

/* ---- the plan: what the copy logs, in stream order, and the decoder's ops --------------- */

enum plan_what {
	LOG_REG, /* low `w` bytes of GPR `reg`: 1, 2, 4, 6, 8 */
	LOG_SETCC, /* one byte: condition `reg` (x86 cc) of the flags as they stand */
	LOG_EA, /* `w` bytes (6 or 8): effective address of the insn's memory operand number `reg`
	                (index into Zydis' operand array, explicit or implicit; rsp-based implicit
	                operands: `disp` is the offset from rsp before the instruction) */
	LOG_KMASK, /* low `w` bytes of mask register k`reg` */
	LOG_VEC, /* `w` bytes (16, 32, 64 or 8: low half) of vector register `reg` */
	LOG_HOP, /* one byte: 1 if this loop*, jrcxz, xbegin is taken (emit_ctl.c) */
	LOG_TSC, /* 8 bytes: the time stamp counter */
	LOG_POPF, /* 8 bytes: the flags this popf is going to take off the stack */
	LOG_TARGET, /* 4 bytes: (target of this indirect jump/ret) - bias is not computed here: low
	                4 bytes of the register or memory operand; 8 bytes when w == 8 */
	LOG_PTW, /* as LOG_REG, by ptwrite: no byte of the stream */
};
enum plan_when {
	AT_BLOCK, /* at the block's start (insn = its first), before anything else of it */
	AT_BEFORE, /* before the instruction */
	AT_AFTER, /* after it */
	AT_ENTRY, /* in the indirect entry stub of the block, after the mark */
	AT_RESYNC, /* in the resync stub, after mark and rsp */
	AT_STUB, /* return site: in its stub (STUB_RELOAD or STUB_RETURN), after the mark if there is
	               one, before the stub joins the block; a fall-through does not pass it. So in the
	               stream stub logs come first, the block's AT_BLOCK logs second */
};
struct plan_log {
	uint32_t insn; /* index in the group; AT_ENTRY/AT_RESYNC/AT_STUB/AT_BLOCK: first insn of the block */
	uint8_t when, what, reg, w;
	int32_t disp;
};
/* bytes it takes in the stream (emit_log.c) */
uint32_t log_bytes(const struct plan_log *l);

/* One group's plan. Logs are sorted in stream order: by block, then AT_ENTRY/AT_RESYNC (separate
 * programs), AT_STUB, AT_BLOCK, then by instruction, AT_BEFORE before AT_AFTER. Return values and
 * callee-clobbered registers needed after a call are AT_STUB logs of the return site's block. */
struct plan {
	struct plan_log *log;
	uint32_t nlog;
	struct sem_op *op; /* group-relative op indices in control ops; block i's ops start at blockop[i];
	                           direct callees: TAKEN = 0x80000000 | index into group->callee, resolved
	                           by the map writer */
	uint32_t nop;
	uint32_t *blockop; /* nblock entries */
	uint32_t *entryop; /* nblock: program of the ENTRY/RESYNC site, AN_NONE if the block has none */
	uint32_t *retop; /* nblock: where a return to this block goes on (its RMARK and AT_STUB logs
	                           included): MAP_LEADER_RETURN's ops; AN_NONE if not a return site. Equals
	                           blockop where nothing but the call leads to the block */
	uint8_t *insnops; /* per instruction of the group: MAP_INSNOPS */
};

/* par.c: fn(arg, 0 … n-1) on `jobs` threads */
void par_for(uint32_t n, int jobs, void (*fn)(void *arg, uint32_t i), void *arg);

/* plan.c: round 1 and round 2 */
int plan_summaries(struct module *m, uint32_t mapflags, int jobs);
/* plan_summaries, and on the way the plans of those groups whose callees' summaries stand, in plan[] by
 * index; NULL is left for plan_group. plan[] must be valid or NULL on entry; freed by the caller. */
int plan_rounds(struct module *m, uint32_t mapflags, int jobs, struct plan **plan);
struct plan *plan_group(const struct module *m, const struct an_group *g, uint32_t mapflags);
void plan_free(struct plan *p);
/* plan_explain.c: one group's plan in words; 0 or -1. For --stats: sites by kind, and their bytes
 * weighted by loop depth (10 per level); the group's plan must still have its logs. */
int plan_explain(FILE *f, const struct module *m, const struct an_group *g, uint32_t mapflags);
#define PLAN_NWHAT 10
struct plan_stats {
	uint64_t sites[PLAN_NWHAT]; /* by enum plan_what */
	double bytes[PLAN_NWHAT];
	uint64_t jcc_computed, jcc_logged, ijmp_computed, ijmp_logged, ops;
	uint64_t jcc_flow, targets_flow; /* left to the processor */
};
void plan_count(const struct plan *p, const struct an_group *g, struct plan_stats *s);

/* live.c: registers (bits 0-15) and flags (bit 16) live after instruction i. */
uint32_t live_after(const struct an_group *g, uint32_t insn);

/* emit.c: one group's copy, position independent within the module's copy. One piece of memory */
struct emitted {
	uint8_t *text;
	uint32_t ntext;
	struct map_fixup *fix; /* copy_off relative to text */
	uint32_t nfix;
	struct emit_ref *ref; /* rel32 to other groups' direct entries, resolved when placed */
	uint32_t nref;
	struct map_xlat *xlat; /* copy_off relative to text */
	uint32_t nxlat;
	uint32_t *block_off; /* per block: body (direct entry for entry blocks) */
	uint32_t *stub_off; /* per block: what the original text jumps to (entry, return, target,
	                              resync stub), AN_NONE if nothing lands there from outside */
	struct emit_site *site; /* marks used, to be numbered by the map writer */
	uint32_t nsite;
	struct emit_flow *flow; /* MAP_F_PT, per block: the branch, indirect jump or return at its end */
	uint32_t *ptw; /* the ptwrites, by the order of the plan's LOG_PTW: offsets in text */
	uint32_t nptw;
	uint64_t logbytes; /* sum of bytes logged at all sites, for --stats */
	struct map_place place; /* copy_off in text; AN_NONE if it is not in this group */
};
struct emit_flow {
	uint32_t off, len; /* in text, bytes; len 0 if there is none */
};
struct emit_ref {
	uint32_t text_off, group, block;
}; /* rel32 field at text_off */
struct emit_site {
	uint32_t block;
	uint32_t kind;
};

#endif
