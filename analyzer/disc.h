/* SPDX-License-Identifier: MIT
 *
 * disc.h - discovery's working state, shared by discover*.c, cfg*.c and table*.c
 *
 *   walk     recursive descent marks instruction starts in `il`, facts in `st`
 *   pieces   text cut into FDE ranges, PLT stubs and gaps; union-find joins them into groups
 *   tables   indirect jumps of each group found so far ─▶ more targets ─▶ walk again
 *   cfg      blocks, predecessors, loops of one group
 *
 * Two bytes per byte of text hold everything about instructions, so that a 50 MB text costs
 * 100 MB: il[v] = length | kind << 4 at an instruction's first byte, IL_IN inside it, 0 if
 * not decoded.
 */
#ifndef DISC_H
#define DISC_H

#include <string.h>
#include <Zydis/Zydis.h>
#include "elf_priv.h"

/* kinds in il: how the instruction goes on, with the size of a direct target */
enum {
	K_NEXT,
	K_INSIDE /* not a start */,
	K_JMP8,
	K_JMP32,
	K_JCC8,
	K_JCC32,
	K_IJMP,
	K_CALL,
	K_ICALL,
	K_RET,
	K_SYSCALL,
	K_HALT,
	K_RIP /* K_NEXT with an operand relative to rip and no immediate behind it, */,
	K_RIP1 /* or one of a byte, */,
	K_RIP2 /* two, */,
	K_RIP4 /* or four */
};
#define IL_IN (K_INSIDE << 4)
#define IL_LEN(b) ((b)&15)
#define IL_KIND(b) ((b) >> 4)
#define IL_START(b) IL_LEN(b) /* IL_IN has no length */

enum {
	ST_LEAD = 1, /* a direct jump goes here */
	ST_ENTRY = 2, /* callable */
	ST_LAND = 4, /* landing pad */
	ST_TARGET = 8, /* target of a recognised jump table */
	ST_TAKEN = 16, /* its address is stored, exported or computed somewhere */
	ST_NORET = 32, /* at a call: does not come back */
	ST_TWICE = 64, /* at a call: returns twice */
	ST_DATA = 128, /* read as data, or declared to be */
};

enum piece_kind { PC_FDE, PC_STUB, PC_GAP };
struct piece {
	uint32_t start, end; /* start: first (sort_first) */
	uint32_t up; /* union-find parent, index */
	uint8_t kind, reason;
	bool bases; /* may have code that changes the fs or gs base: there was some before it was cut */
	bool suspect; /* has unreached bytes that are no padding */
	bool done; /* as a root: looked at in this round */
	uint32_t next; /* next piece of the same group, ascending */
	uint32_t solved; /* as a root: size of the group when its jumps were last solved */
	uint32_t group; /* of the module's, in the end; AN_NONE: opaque, or nothing's */
};

#define PIECE_NEAR 64
#define INSN_NEAR 32

struct piece_list {
	struct piece *v;
	uint32_t n, cap;
};

struct edge {
	uint32_t from, to;
}; /* of instructions */

struct disc_name {
	uint32_t vaddr, cls;
};

/* One indirect jump and what is known about it. */
struct ijmp {
	uint32_t vaddr;
	uint32_t table, entsize; /* the table in memory, AN_NONE if none */
	uint32_t entries; /* of the longest, if there are several */
	uint32_t *target; /* vaddrs, may repeat; owned */
	uint32_t ntarget;
	bool exact; /* all targets listed, none outside the group */
	bool assumed; /* exact if no byte of the group is left unreached: the table has no bound */
	bool stays; /* arithmetic on code addresses: anywhere in the group */
	bool bounded; /* solved without scanning */
	uint32_t
		missed; /* of disc.run: those that are no candidates of it, because they were found before it */
};

struct disc {
	struct module *m;
	struct elf_priv *x;
	ZydisDecoder fast;
	struct head_memo *memo; /* disc_head.h */
	uint32_t lo, size; /* text_lo, bytes of text */
	uint8_t *il, *st;
	struct bare *bare; /* discover_bare.c */
	uint32_t walked; /* walks: more is known after each */
	uint64_t *lab; /* bitmap over [vaddr_lo, vaddr_hi): data addresses code or relocations name */
	uint64_t *tab; /* the same, for addresses of recognised tables' entries */
	VEC(uint32_t) work;
	struct piece_list piece; /* ascending start, disjoint */
	uint32_t *near; /* per PIECE_NEAR bytes of text: the first piece that ends behind their first */
	uint32_t *
		insn; /* per INSN_NEAR bytes of text: the first instruction of the group that was made last (cfg.c) */
	VEC(struct edge) cross; /* direct jumps between pieces, or within a gap */
	VEC(struct edge) fall; /* fall-through from one piece into another */
	VEC(struct edge) lea; /* code that computes an address in text: from the insn to the address */
	uint32_t sorted; /* entries of lea when it was sorted last */
	VEC(uint32_t) run; /* starts of bytes that nothing was found to reach */
	VEC(struct edge) fn; /* the same, to the start of a function */
	VEC(struct ijmp) ijmp; /* ascending vaddr after disc_sort */
	VEC(struct disc_name) cls; /* functions and GOT slots whose names matter, ascending vaddr */
	VEC(uint32_t) behind; /* code directly behind a table (discover_info.c) */
	bool jumped; /* there is some that is entered by jumps, by rules of its own; */
	bool behind_objects; /* and it was looked for among objects */
	uint32_t ncall; /* calls among known code */
	uint32_t nalt; /* instructions also entered behind their prefix */
	bool nomem;
};

/* classes of names that matter */
enum { NAME_PLAIN, NAME_TWICE, NAME_NORET };

bool disc_pieces(struct disc *d); /* initial pieces; false: out of memory */
uint32_t disc_root(struct disc *d, uint32_t piece);
void disc_join(struct disc *d); /* recompute unions from edges; splits gaps first */
void disc_walk(struct disc *d); /* until the work list is empty */
void disc_sort(struct disc *d); /* what a walk has added to, before it is looked at */
void disc_push(struct disc *d, uint32_t v, uint8_t flags);
void disc_named(struct disc *d, uint32_t from, uint64_t v); /* `from` (code or data) holds address v */
bool disc_names(struct disc *d); /* fills cls */
void disc_seed(struct disc *d); /* symbols, relocations, roots */
int disc_name_class(const struct disc *d, uint32_t target); /* of a direct call's target */
uint32_t disc_target(const struct disc *d, uint32_t v); /* direct target of the insn at v, AN_NONE */
unsigned disc_nop_len(const uint8_t *p, unsigned avail); /* length of a padding instruction, 0 if not */
bool disc_is_pad(const struct disc *d, uint32_t v, uint32_t end);
void disc_label(struct disc *d, uint64_t v);
bool disc_labelled(const struct disc *d, uint32_t v);
void disc_in_table(struct disc *d, uint32_t v);
bool disc_tabled(const struct disc *d, uint32_t v);
uint32_t disc_first_lea(const struct disc *d, uint32_t v); /* first of lea with to >= v; lea is sorted */
void disc_suspects(struct disc *d);
/* the first byte of an unreached run in [v, end) that is no padding, end if there is none; *stop: the run's end */
uint32_t disc_run(const struct disc *d, uint32_t v, uint32_t end, uint32_t *stop);
void disc_unseen(struct disc *d); /* discover_unseen.c */
void disc_code_reads(struct disc *d); /* discover_read.c */
bool disc_falls(const struct disc *d, uint32_t v); /* does control go on behind the instruction at v? */
bool disc_read_through(const struct disc *d, uint32_t v, uint32_t to);
bool disc_bare(struct disc *d); /* discover_bare.c; lea is sorted */
bool disc_bare_label(struct disc *d, uint32_t v);
bool disc_bare_jumped(struct disc *d, uint32_t v, bool *own);
bool disc_info(struct disc *d); /* discover_info.c, as the next two; lea is sorted */
bool disc_cases(struct disc *d); /* where jump tables among such code lead */
void disc_info_check(struct disc *d);
void disc_bare_free(struct disc *d);
struct ijmp *disc_ijmp(const struct disc *d, uint32_t v);

static inline int32_t disc_word(const uint8_t *p)
{
	int32_t w;

	memcpy(&w, p, 4);
	return w;
}

static inline bool disc_in(const struct disc *d, uint32_t v)
{
	return v - d->lo < d->size;
}

/* first byte in [v, end) that is of no instruction; end if there is none */
static inline uint32_t disc_hole(const struct disc *d, uint32_t v, uint32_t end)
{
	const uint8_t *p = memchr(d->il + (v - d->lo), 0, end - v);

	return p ? d->lo + (uint32_t)(p - d->il) : end;
}

/* and was not read as data either */
static inline uint32_t disc_unused(const struct disc *d, uint32_t v, uint32_t end)
{
	while ((v = disc_hole(d, v, end)) < end && (d->st[v - d->lo] & ST_DATA))
		v++;
	return v;
}

/* index of the piece that v is in, AN_NONE outside text */
static inline uint32_t disc_piece(const struct disc *d, uint32_t v)
{
	uint32_t i;

	if (!disc_in(d, v))
		return AN_NONE;
	for (i = d->near[(v - d->lo) / PIECE_NEAR]; i < d->piece.n && d->piece.v[i].end <= v; i++)
		;
	return i < d->piece.n && d->piece.v[i].start <= v ? i : AN_NONE;
}

/* cfg.c: instructions and blocks of one group from the walk's state. -1: out of memory */
int cfg_build(struct disc *d, struct an_group *g);
uint32_t cfg_count(const struct disc *d,
		   const struct an_group *g); /* places in its ranges where one begins */
void cfg_free(struct an_group *g);
int cfg_loops(struct an_group *g);
uint32_t cfg_insn_at(const struct an_group *g, uint32_t vaddr); /* index or AN_NONE */

/* table.c: (re)solves the indirect jumps of g; scan: unbounded tables too. True if targets were added. */
bool table_solve(struct disc *d, struct an_group *g, bool scan);

#endif
