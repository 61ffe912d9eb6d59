/* SPDX-License-Identifier: MIT
 *
 * trace.h - the memory trace record, and the conventions every producer follows
 *
 * The decoder, the single-step oracle and every output format agree on what is
 * written here. One record is one architectural access of one instruction.
 *
 * Order: records of one thread are in program order. Within an instruction:
 *   - reads before writes; a read-modify-write operand gives an R and then a W
 *     record of the same address and size (writers merge where a format wants it);
 *   - `call *mem`, `push mem`: R of the operand, then W of the stack slot;
 *     `pop mem`: R of the stack slot, then W of the operand;
 *   - `movs`: R of (rsi), W of (rdi), per iteration; `cmps`: R (rsi), R (rdi);
 *     `stos`, `lods`, `scas`: one record per iteration; a rep with count zero gives none;
 *   - `enter n,L`: W of rbp, then for levels 1 to L - 1 R of the old and W of the new slot, then,
 *     when L is not 0, W of the new frame pointer;
 *   - gathers, scatters and masked vector moves: one record per *active* element, in
 *     ascending element order, size = element size. An AVX2 mask is the sign bit of the
 *     mask register's element. Compress/expand: popcount(mask) consecutive elements.
 *     A masked instruction whose memory operand is broadcast: one record of one element
 *     when any mask bit is set, none otherwise;
 *     Broadcasts of several elements (vbroadcasti32x4 and the like): one record of the whole
 *     operand, the same way;
 *   - arithmetic with a masked memory source, and masked stores of a part (vextracti32x4, vpmovdb):
 *     one record per active element too. But instructions without fault suppression (exception
 *     classes with NF, SDM Vol. 2, 2.8: shuffles, permutes, packs, vdbpsadbw, vgf2p8affineqb)
 *     read their whole operand whatever the mask says: one record;
 *   - `movdir64b`: R of 64 bytes, then W of 64. Its destination has no segment.
 *
 * A transaction (xbegin) that aborts gives none: what ran in it was undone, and nobody but itself ever saw it.
 *
 * An instruction that faults gives no record. It gives them when it is restarted and completes.
 *
 * Always counted: `cmpxchg*` gives R and W whether or not it stored (SDM Vol. 2,
 * CMPXCHG: the destination receives a write cycle without regard to the result of the
 * comparison); `cmov r,mem` reads whether or not it moves; `xchg` R then W; `bt/bts/
 * btr/btc mem,reg` at the address the bit offset selects (operand-size aligned steps from
 * the base: base + (bitoffset >> log2(bits)) * bytes, arithmetic shift).
 *
 * Never counted: `lea`, multi-byte `nop`, the kernel's accesses during `syscall`,
 * instruction fetch, page walks.
 *
 * Size: bytes. xsave/xrstor family: the size of the standard-format area that
 * XCR0 & requested features need (XSAVEC: CPUID.0DH compacted size for RFBM); 512 for
 * fxsave/fxrstor; x87 environment 28, state 108, with a 16-bit operand size prefix 14 and 94.
 * `push` and `pop` of a segment register 8 (with the prefix 2), though the processor may touch
 * fewer. Prefetches, clflush(opt), clwb, cldemote: kind P, size 64 at the operand's address as
 * computed (not aligned).
 */
#ifndef PTRACE_TRACE_H
#define PTRACE_TRACE_H

#include <stdint.h>

enum ptrace_kind {
	PTRACE_R = 0, /* load */
	PTRACE_W = 1, /* store */
	PTRACE_P = 2, /* prefetch or cache-line hint: may carry any address */
};

/* One access. 24 bytes, little endian, also the on-disk form of `--format=raw`. Bit-fields begin at the lowest bit
 * (psABI, 3.1.2): the last word is tid | kind << 24. */
struct ptrace_rec {
	uint64_t ip; /* run-time address of the instruction in the original text */
	uint64_t addr; /* effective linear address, all 64 bits */
	uint32_t size; /* bytes */
	uint32_t tid : 24; /* index into the run's thread table, 0 = first thread */
	uint32_t kind : 8; /* enum ptrace_kind */
};
#define PTRACE_MAX_THREADS (1u << 24)
_Static_assert(sizeof(struct ptrace_rec) == 24, "ptrace_rec is an on-disk format");

/* Head of a raw trace file (`ptrace-decode --format=raw`, and the oracle's output). */
#define PTRACE_RAW_MAGIC 0x3152575254505450ull /* "PTPTRWR1" */
#define PTRACE_RAW_VERSION 2
struct ptrace_raw_head {
	uint64_t magic;
	uint32_t version; /* PTRACE_RAW_VERSION */
	uint32_t rec_size; /* sizeof(struct ptrace_rec) */
};
_Static_assert(sizeof(struct ptrace_raw_head) == 16, "on-disk format");

#endif
