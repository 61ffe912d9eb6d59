/* SPDX-License-Identifier: MIT
 *
 * collect_pt.h - Intel PT in ptrace-collect: what its files share
 *
 *   ring_thread.pt ─▶ collect_pt.c: one event per thread, opened here, so that nothing of it is in the program
 *                       ├─▶ collect_pt_pmu.c    what the PMU can do ─▶ perf_event_attr
 *                       ├─▶ collect_pt_open.c   the event and its buffers; collect_pt_why.c: why not, in words
 *   AUX area, ring ─────├─▶ collect_pt_read.c   what is new in them
 *                       └─▶ collect_pt_file.c   pt-TID.bin (include/run_pt.h)
 *
 * A thread of its own drains (poll(2)); the main one opens and closes, under pt.lock.
 */
#ifndef COLLECT_PT_H
#define COLLECT_PT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "run_pt.h"

/* ---- collect_pt_pmu.c ---- */

/* A field of perf_event_attr.config: the bits from lo to hi, as the format directory has it; hi < lo: there is none. */
struct pt_field {
	int lo, hi;
};
struct pt_pmu {
	uint32_t type;
	struct pt_field tsc, mtc, mtc_period, cyc, cyc_thresh, psb_period, noretcomp, ptw, fup_on_ptw;
	uint64_t psb_cyc, psb_periods, mtc_cap, mtc_periods, cyc_thresholds,
		ptwrite; /* caps; masks of exponents */
	bool topa_multiple; /* the unit's list of buffers has more than one entry */
	uint32_t nom_freq; /* 0 where not told */
	uint32_t tsc_ratio_ebx, tsc_ratio_eax;
};
/* what is wanted of the packets */
struct pt_want {
	bool cyc, noretc;
	int psb, mtc; /* exponents; mtc -1: none */
};
const char *pt_pmu_dir(void);
/* 0 or errno; *what: the file that was looked at last */
int pt_pmu_read(const char *dir, struct pt_pmu *p, char *what, size_t size);
/* the exponent that the mask allows next to want; -1: none */
int pt_nearest(uint64_t mask, int want);
uint64_t pt_put(struct pt_field f, uint64_t value);
/* perf_event_attr.config; info's flags, mtc_freq, cyc_thresh, psb_freq, counter are filled in */
uint64_t pt_config(const struct pt_pmu *p, const struct pt_want *w, struct run_pt_info *info);

/* ---- collect_pt_open.c ---- */

struct pt_area {
	int fd;
	struct perf_event_mmap_page *page;
	uint64_t ring_size; /* of the records, a power of two; behind the head page */
	uint8_t *aux;
	uint64_t aux_size;
	uint64_t piece; /* the area is full where less than so much is free (pt_area_pieces) */
};
struct pt_fail {
	int err; /* errno */
	bool memory; /* of mapping a buffer */
};
/* 0 or -1; sizes are what is wanted and are made smaller as it takes. Not enabled yet. */
int pt_area_open(struct pt_area *a, const struct perf_event_attr *attr, uint32_t tid, uint64_t ring,
		 uint64_t aux, struct pt_fail *f);
/* what it is made of; any: the unit may stop anywhere */
void pt_area_pieces(struct pt_area *a, const struct perf_event_attr *attr, bool any);
int pt_area_enable(struct pt_area *a, bool on); /* 0 or errno */
void pt_area_close(struct pt_area *a);

/* ---- collect_pt_why.c ---- */

/* why it cannot be had, and what to do about it: one line without a newline */
void pt_why_open(char *buf, size_t size, const struct pt_fail *f);
void pt_why_pmu(char *buf, size_t size, int err, const char *what);

/* ---- collect_pt_read.c ---- */

/* What is known of a stretch of the AUX area. */
struct pt_sink {
	void *arg;
	/* n bytes in up to two pieces, RUN_PT_F_*. 0, or -1 to stop */
	int (*data)(void *arg, uint64_t offset, const void *p, size_t n, const void *p2, size_t n2,
		    unsigned flags);
	int (*note)(void *arg, uint32_t kind, uint64_t value); /* enum run_pt_kind */
};
struct pt_read {
	uint64_t offset; /* in the AUX stream: taken so far */
	uint64_t told,
		moved; /* where the records that came end; aux_head, where it was behind that the last time */
	uint64_t tail[3]; /* where aux_tail was before it was moved the last time, and the times before */
	uint64_t ring_tail; /* data_tail before it was moved the last time */
	bool gap; /* something may be missing before what comes next */
	bool again; /* the event is off by now, or may be: pt_read_rest() */
	uint64_t truncated, partial, collision, lost; /* how often */
};
/* Takes what is there. true: there was something */
bool pt_read(struct pt_read *r, const struct pt_area *a, const struct pt_sink *s);
/* `again`: the event has been disabled, and may be enabled behind this. What may be missing is where it stood */
void pt_read_rest(struct pt_read *r, const struct pt_area *a, const struct pt_sink *s);

/* ---- collect_pt_file.c ---- */

struct pt_file {
	int fd;
	int codec; /* 0 none, 1 LZ4, 2 zstd */
	uint64_t at, start; /* where the next record goes; bytes of the head */
	int error; /* errno of the first failed write: nothing is written from then on */
};
int pt_file_open(struct pt_file *f, int dir, uint32_t tid, int codec); /* 0 or errno */
void pt_file_info(struct pt_file *f, struct run_pt_info *info);
/* fast: not compressed. One at a time, of all files */
int pt_file_data(struct pt_file *f, uint64_t offset, const void *p, size_t n, const void *p2, size_t n2,
		 unsigned flags, bool fast);
int pt_file_note(struct pt_file *f, uint32_t kind, uint64_t value);
void pt_file_close(struct pt_file *f);

#endif
