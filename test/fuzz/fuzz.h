/* SPDX-License-Identifier: MIT
 *
 * fuzz.h - what the fuzz targets share
 *
 *   bytes ─▶ parts (a map, a start state, a stream …) ─▶ checksums made right ─▶ the reader
 *
 * Readers compare checksums before anything else, so a mutated file would be refused at once. The
 * targets repair magic numbers, versions and checksums first: what is fuzzed is everything behind
 * them, as it would meet a file from a broken writer or an enemy.
 *
 * An input of several parts is a list of: kind (1 byte), length (3 bytes, little endian), bytes. A length
 * that runs over the end is cut.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include "map.h"
#include "run.h"

enum fuzz_kind {
	FZ_MAP, /* a .ptmap */
	FZ_START, /* start.bin */
	FZ_MODULES, /* modules.bin */
	FZ_STREAM, /* bytes of a thread's stream */
	FZ_LOG, /* a thread's log as on disk, heads and payloads (stored) */
	FZ_PROC, /* proc.json */
	FZ_RUN, /* run.json */
	FZ_STOP, /* stop.bin */
	FZ_CUTS, /* struct run_cut of FZ_STREAM */
	FZ_KINDS
};

struct fuzz_part {
	const uint8_t *p; /* NULL if the input has none of this kind */
	size_t n;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* the last part of each kind */
void fuzz_split(const uint8_t *data, size_t size, struct fuzz_part part[FZ_KINDS]);
/* a copy, aligned, that the caller frees; never NULL */
uint8_t *fuzz_copy(struct fuzz_part p);
/* make magic, version and checksums right, in place */
void fuzz_fix_map(uint8_t *b, size_t n);
void fuzz_fix_start(uint8_t *b, size_t n);
void fuzz_fix_modules(uint8_t *b, size_t n);
void fuzz_fix_log(uint8_t *b, size_t n, uint32_t pid, uint32_t tid);

#endif
