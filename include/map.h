/* SPDX-License-Identifier: MIT
 *
 * map.h - the log-site map (.ptmap): what the analyzer knows of one ELF module
 *
 * Written by ptrace-analyze, mmapped by the runtime (copy text, fix-ups, patches, address
 * map) and by the decoder (ops, blocks, sites, rodata). Little endian, every section
 * 64-byte aligned, checked by XXH3. A map is only used for the file whose key it carries.
 *
 * "vaddr" is always a link-time address of the module as a 32-bit number (modules whose
 * addresses exceed 4 GiB are refused); run-time address = bias + vaddr. "copy offset" is a
 * byte offset into the copy text, which the runtime maps within +-2 GiB of the module.
 *
 *   original text                              copy text
 *   entry:    jmp ───────────────────────────▶ indirect entry ─▶ direct entry: body …
 *   call:     call callee's direct entry ◀──── jmp call site           ⋮
 *   return:   jmp ───────────────────────────▶ return site: reload r15, body …
 *   table target, landing pad: jmp ──────────▶ their stubs
 *   all other bytes: int3 (or islands: short-range jumps that did not fit in place)
 */
#ifndef PTRACE_MAP_H
#define PTRACE_MAP_H

#include <stdint.h>
#include "sem.h"

#define MAP_MAGIC 0x31304d5450545000ull
#define MAP_VERSION 50 /* of format and analysis together: part of the cache key */

enum map_section {
	MAP_COPY, /* bytes: instrumented text */
	MAP_FIXUPS, /* struct map_fixup, ascending copy offset */
	MAP_PATCHES, /* struct map_patch, ascending vaddr */
	MAP_RANGES, /* struct map_range: relocated code, ascending, disjoint (what is traced) */
	MAP_OPAQUE, /* struct map_opaque: code left alone, with the reason */
	MAP_GROUPS, /* struct map_group */
	MAP_BLOCKS, /* struct map_block, by group in the order of MAP_GROUPS, in a group ascending vaddr */
	MAP_INSNLEN, /* bytes: instruction lengths, blocks index into it */
	MAP_INSNOPS, /* bytes, as MAP_INSNLEN: op slots of each instruction in its block's program. The last
	                one's include the control op, which ends the program: counted back from there each
	                instruction's first op is found */
	MAP_OPS, /* struct sem_op */
	MAP_SITES, /* struct map_site, indexed by mark id */
	MAP_LEADERS, /* struct map_leader, ascending vaddr: targets of indirect jumps */
	MAP_XLAT, /* struct map_xlat, ascending copy offset */
	MAP_RODATA, /* struct map_rodata headers */
	MAP_ROBYTES, /* bytes of them */
	MAP_SEGS, /* struct map_seg: the PT_LOADs, to recognise mmaps */
	MAP_STRINGS, /* NUL-terminated names, offset 0 is "" */
	MAP_PLACE, /* struct map_place: one where it was asked for (--place), else none */
	MAP_NSECTIONS
};

struct map_sect {
	uint64_t off; /* file offset */
	uint64_t size; /* bytes */
	uint64_t xxh3; /* XXH3_64bits of the bytes; each reader checks the sections it uses */
};

struct map_head {
	uint64_t magic;
	uint32_t version;
	uint32_t flags; /* MAP_F_* */
	uint8_t key[32]; /* build-id (up to 32 bytes, zero padded), or XXH3-128 of the file */
	uint32_t key_len; /* 16 or the build-id's length */
	uint32_t key_kind; /* 1 build-id, 2 hash of the file */
	uint64_t file_size; /* of the ELF, bytes */
	uint32_t vaddr_lo, vaddr_hi; /* span of the PT_LOADs, page aligned */
	uint32_t nsites; /* number of mark ids this module needs */
	uint32_t name; /* SONAME or file name, offset in MAP_STRINGS */
	uint64_t ninsns; /* relocated instructions */
	struct map_sect sect[MAP_NSECTIONS];
	uint64_t head_xxh3; /* of all bytes of the head before this field */
};

#define MAP_F_VERIFY 1u /* every effective address is logged too */
#define MAP_F_ORDER 2u /* the time around every locked instruction is logged, too (SEM_TSC) */
#define MAP_F_PT                                                                                             \
	4u /* control flow is not in the log: the processor's trace tells it (SEM_JCC_FLOW, SEM_FLOW) */
#define MAP_F_NONDET 8u /* rdtsc, rdrand, cpuid and the like go through the runtime (tcb.nondet): replay */
#define MAP_F_SPARSE                                                                                         \
	16u /* only groups with system calls or such instructions are relocated: recording for a replay */
#define MAP_F_PTW                                                                                            \
	32u /* with MAP_F_PT: values of sites that the budget allows go into the processor's trace (SEM_PTW) */
/* the analyzer's, with MAP_F_SPARSE: some of those are in code that could not be relocated, and nobody would see them, or
 * the module looks at the rseq area (rseq(2)), which the kernel writes at any time */
#define MAP_F_HIDDEN 64u
/* the analyzer's: it has instructions that change the fs or gs base (wrfsbase, wrgsbase, a selector) or read the gs base, which is
 * the tracer's. Nothing would say so */
#define MAP_F_BASES 128u
#define MAP_F_FOUND (MAP_F_HIDDEN | MAP_F_BASES) /* not asked for */
#define MAP_F_LETTERS "vopnsw" /* by bit, behind the version and a dash in a cached map's file name */
/* With MAP_F_PTW the budget, behind the letters in decimal: a site whose block is expected to run more than 2^n times
 * a call of its function stays in the log; n == MAP_BUDGET_ALL: none does */
#define MAP_BUDGET(flags) ((flags) >> 24)
#define MAP_F_BUDGET(n) ((uint32_t)(n) << 24)
#define MAP_BUDGET_ALL 15

/* One 32/64-bit field of the copy that depends on where things were loaded. */
enum map_fixup_kind {
	MAP_FIX_MOD32, /* *(s32 *)p += (s32)(bias - copy_base): rip-relative to the module. The file
	                   holds target_vaddr - (copy offset of the end of the instruction) */
	MAP_FIX_ABS64, /* *(u64 *)p += bias */
	MAP_FIX_MARK, /* *(u32 *)p += site_base << RUN_MARK_ID_SHIFT */
	MAP_FIX_LO32, /* *(u32 *)p: a vaddr, replaced by the low half of its run-time address */
	MAP_FIX_HI32, /* by the high half */
};
struct map_fixup {
	uint32_t copy_off;
	uint32_t kind;
};

/* Bytes to write in the original text. */
enum map_patch_kind {
	MAP_PATCH_JMP, /* e9 rel32 to copy offset `arg`, 5 bytes at vaddr */
	MAP_PATCH_JMP8, /* eb rel8 to vaddr `arg` (an island), 2 bytes */
	MAP_PATCH_CALL, /* rewrite only the rel32 at vaddr (the 4 bytes) to reach copy offset `arg` */
	MAP_PATCH_INT3, /* fill `arg` bytes with 0xcc */
	/* MAP_NEAR: e9 rel32 to vaddr `arg` (an island anywhere) behind prefixes that mean nothing, but only the first bytes of
	 * it. The others, if any, are those of the next patch, which is such that they are right */
	MAP_PATCH_NEAR,
};
#define MAP_NEAR(bytes, prefixes) (MAP_PATCH_NEAR | (uint32_t)(bytes) << 8 | (uint32_t)(prefixes) << 16)
#define MAP_PATCH_KIND(kind) ((kind)&0xff)
#define MAP_NEAR_BYTES(kind) ((kind) >> 8 & 0xff) /* at most 5 */
#define MAP_NEAR_PREFIXES(kind) ((kind) >> 16) /* less than the bytes */
struct map_patch {
	uint32_t vaddr;
	uint32_t kind;
	uint32_t arg;
};

/* the bytes of a MAP_NEAR patch */
static inline void map_near(const struct map_patch *p, uint8_t *at)
{
	uint32_t n = MAP_NEAR_BYTES(p->kind), k = MAP_NEAR_PREFIXES(p->kind),
		 rel = p->arg - (p->vaddr + k + 5);

	for (uint32_t i = 0; i < n; i++)
		at[i] = (uint8_t)(i < k ? 0x2e : i == k ? 0xe9 : rel >> 8 * (i - k - 1));
}
static inline int map_near_ok(uint32_t kind)
{
	return MAP_NEAR_BYTES(kind) - 2 <= 3 && MAP_NEAR_PREFIXES(kind) < MAP_NEAR_BYTES(kind);
}

struct map_range {
	uint32_t start, end;
}; /* vaddrs, end exclusive */

enum map_reason { /* why code is opaque; map_reason_name[] in map_names.h */
		  MAP_OK,
		  MAP_R_DECODE,
		  MAP_R_OVERLAP,
		  MAP_R_ESCAPE,
		  MAP_R_UNRELOCATABLE,
		  MAP_R_DATA_READ,
		  MAP_R_RSEQ,
		  MAP_R_INDIRECT,
		  MAP_R_TOO_SHORT,
		  MAP_R_AVOID,
		  MAP_R_SIGRET,
		  MAP_R_UNREACHED,
		  MAP_R_LIMIT,
		  MAP_R_SPARSE,
		  MAP_R_NREASONS
};
struct map_opaque {
	uint32_t start, end, reason, name;
};

struct map_group {
	uint32_t vaddr; /* lowest entry */
	uint32_t name; /* symbol, offset in MAP_STRINGS; 0 if none */
	uint32_t block_first, nblocks; /* these are the group's, in MAP_BLOCKS; in memory they need not be
	                        neighbours. The other way round: map_block.group */
	uint32_t flags; /* MAP_G_* */
};
enum {
	MAP_G_KEEPS = 1, /* returns with the log pointer in r15: to its own callers only */
	/* times a mask of those of rbx, rbp, r12 to r15 that none of its instructions writes, and callees restore */
	MAP_G_UNWRITTEN = 2,
};

struct map_block {
	uint32_t vaddr;
	uint32_t ops; /* index of its SEM_BLOCK op */
	uint32_t insn; /* index into MAP_INSNLEN and MAP_INSNOPS */
	uint16_t ninsn;
	uint16_t flags;
	uint32_t group;
	uint32_t copy_off; /* of the block's first instrumented byte */
};

/* A place in the copy that writes a mark. Its number in MAP_SITES is its id within the module. */
enum map_site_kind {
	MAP_SITE_ENTRY, /* indirect entry of a group. Stream: RUN_MARK_ENTRY word, or, when rsp is not
	                     what the last call made it, RUN_MARK_ENTRYX word + 8 bytes rsp */
	MAP_SITE_RESYNC, /* landing pad, returns-twice site: RUN_MARK_RESYNC word + 8 bytes rsp */
};
struct map_site {
	uint32_t vaddr;
	uint32_t kind;
	uint32_t ops; /* op index where decoding goes on after the mark: SEM_LOGs, then SEM_JMP */
};

/* Where run-time control may land other than by marks: targets of indirect jumps and return
 * sites. */
enum {
	MAP_LEADER_TARGET = 1,
	MAP_LEADER_RETURN = 2,
	MAP_LEADER_ENTRY = 4,
	MAP_LEADER_RELOAD = 8, /* a target; its stub takes r15 as the program's and writes no mark */
};
struct map_leader {
	uint32_t vaddr;
	uint32_t ops; /* op index of the block (for a return site: including its SEM_RMARK) */
	uint32_t flags; /* MAP_LEADER_*; entries and resync sites: their site id in the upper 24 bits */
};

/* State of the program's registers at a copy address, valid up to the next entry's copy_off.
 * r15 of the program is in its TCB slot, unless MAP_X_R15_REAL says it is in r15 or
 * r15_reg names a register. If r15 points into the log ring it is the log pointer, whatever
 * this says. r15_reg is read first: the same register may be in spill[], too, when a loop keeps r15
 * in it. */
struct map_xlat {
	uint32_t copy_off;
	uint32_t vaddr; /* original instruction that would execute next */
	uint8_t flags; /* MAP_X_* */
	uint8_t r15_reg; /* register that holds the program's r15 now (newer than the slot), or 0xff */
	uint8_t spill[2]; /* register whose program value is in tcb.spill[i], or 0xff */
	uint16_t off; /* bytes of the stream stored from the log pointer on: the stream's position is the
	                 log pointer plus this. The log pointer may be put back behind bytes it has passed */
	uint16_t ahead; /* so many of the bytes before that position instruction `vaddr` has logged, which has
	                   not run yet. At most MAP_AHEAD_MAX */
};
#define MAP_AHEAD_MAX 512
enum {
	MAP_X_R15_REAL = 1,
	MAP_X_FLAGS_SAVED = 2 /* flags are in tcb.flags: bits 8-15 as lahf stores them
                                                (SF ZF AF PF CF), bit 0 = OF */
	,
	MAP_X_STUB = 4 /* not at an original instruction boundary of its own: entry glue */,
	/* vaddr's own copy begins here: what it does and logs. Not for one without a copy (endbr64) */
	MAP_X_START = 16,
	MAP_X_TARGET = 8 /* next original instruction: at tcb.target, a run-time address (vaddr is AN_NONE);
                           the return address of an emulated call has been pushed */
};

/* Where a replay is to find out whether it has come to the place at which its recording was interrupted
 * (preload/rt_reach.c): right before instruction vaddr is executed the copy jumps to where tcb.place leads, with registers
 * and flags as they are, and goes on behind that jump. Of a string instruction with a repeat prefix all logs are written
 * there; of others, none. */
struct map_place {
	uint32_t vaddr;
	uint32_t copy_off; /* of the jump */
	uint32_t zero;
	uint32_t rep; /* a repeated string instruction: bytes of an element, | MAP_PLACE_*; 0: none */
};
#define MAP_PLACE_BYTES 8 /* of the jump */
enum { MAP_PLACE_SRC = 0x100, MAP_PLACE_DST = 0x200 }; /* it moves rsi, rdi */

struct map_rodata {
	uint32_t vaddr, size;
	uint64_t off; /* into MAP_ROBYTES */
	uint32_t flags, zero;
}; /* those with flags after those without, ascending */
enum { MAP_RO_ADDRESSES = 1 }; /* eight-byte link-time addresses: in memory the load bias is added to each */

struct map_seg {
	uint64_t off, filesz, memsz;
	uint32_t vaddr, prot;
}; /* prot: PF_R|PF_W|PF_X */

#endif
