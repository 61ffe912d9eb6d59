/* SPDX-License-Identifier: MIT
 *
 * out.h - from batches of records to files
 *
 *   walker ─▶ filter (drops records in place) ─▶ sink: text, csv, lackey, raw, bin, null
 *                                          └───▶ statistics
 */
#ifndef OUT_H
#define OUT_H

#include "dec.h"

/* ---- out.c: buffered output. Errors stick; EPIPE is told apart. ---------------------------- */

struct obuf {
	int fd;
	char *b;
	size_t n;
	int err; /* errno of the first failure */
	uint64_t bytes;
};
#define OBUF_SIZE (1u << 20)
#define OBUF_LINE 1024 /* room obuf_line guarantees */

void obuf_init(struct obuf *o, int fd);
int obuf_flush(struct obuf *o); /* 0 or -1 */
int obuf_put(struct obuf *o, const void *p, size_t n);
char *obuf_line(struct obuf *o); /* where OBUF_LINE bytes fit; then obuf_done */
void obuf_done(struct obuf *o, char *end);
void obuf_free(struct obuf *o);
char *put_hex(char *p, uint64_t v, int min_digits);
char *put_dec(char *p, uint64_t v);
char *put_str(char *p, const char *s, size_t max);

/* ---- sinks ----------------------------------------------------------------------------------- */

struct sink {
	const char *name;
	bool blocks; /* wants WALK_BLOCK records */
	bool binary; /* not for a terminal */
	bool times; /* has a place for the times of records */
	int (*begin)(struct sink *s);
	int (*batch)(struct sink *s, const struct ptrace_rec *rec, size_t n); /* 0, or -1 on output failure */
	int (*end)(struct sink *s);
	struct obuf *o;
	struct ptrace_run *run;
	bool symbols;
	const uint64_t *time; /* of a batch's records, TSC; NULL: not wanted */
	void *priv;
};
const struct sink *sink_find(const char *name); /* a template to copy; NULL if there is none */
extern const struct sink sink_text, sink_csv, sink_lackey, sink_raw, sink_bin, sink_null;

/* ---- filter.c -------------------------------------------------------------------------------- */

struct filter {
	uint64_t from, to; /* record numbers from 0, to exclusive */
	uint64_t lo, hi; /* accesses that touch [lo, hi) */
	bool by_addr;
	const char *module, *function;
	struct ptrace_run *run;
	uint64_t seen; /* records so far, of all threads chosen */
	struct fcache {
		uint64_t lo, hi;
		uint32_t tid;
		bool yes;
	} cache[256];
};
bool filter_any(const struct filter *f); /* may drop something */
/* keeps what passes, in place, and of their times, if given; returns how many; *stop when nothing more can pass */
size_t filter_batch(struct filter *f, struct ptrace_rec *rec, uint64_t *time, size_t n, bool *stop);

/* ---- select.c ----------------------------------------------------------------------------- */

struct selection { /* lists as the user gave them, NULL: all */
	const char *threads, *pid, *tid;
};
/* numbers of the threads chosen, ascending, *n of them; to be freed. NULL: *bad is no list */
uint32_t *select_threads(const struct ptrace_run *r, const struct selection *s, uint32_t *n,
			 const char **bad);

/* ---- foot.c: lines and pages touched ---------------------------------------------------------- */

struct foot;
struct foot *foot_new(void);
void foot_free(struct foot *f);
void foot_batch(struct foot *f, const struct ptrace_rec *rec, size_t n);
void foot_count(const struct foot *f, uint64_t *lines, uint64_t *pages, bool *all);

/* ---- stats.c, report.c ------------------------------------------------------------------------- */

struct fcount { /* a function, in whatever processes and wherever loaded */
	const char *name;
	const struct modrec *rec; /* of one of them */
	uint64_t vaddr, count, opaque;
	uint64_t log; /* bytes it logged, with --log-causes */
};
struct stats {
	struct ptrace_run *run;
	struct ptrace_stats st;
	struct fcount *fn;
	uint32_t nfn, capfn;
	uint32_t *slot; /* hash of functions */
	struct icache {
		uint64_t ip;
		uint32_t fn;
		uint32_t tid;
	} * ic;
	struct foot *foot;
	bool some; /* only records that pass a filter count */
	bool complete;
	char reason[520]; /* first reason why not */
	uint64_t unexpected;
	bool why; /* --log-causes: */
	uint64_t why_bytes[SEM_NWHY];
	struct wblock {
		const struct modrec *rec;
		uint64_t vaddr, total, bytes[SEM_NWHY];
	} * wblock; /* blocks that log, in no order until reported */
	uint32_t nwblock, capwblock;
};
struct stats *stats_new(struct ptrace_run *r);
void stats_free(struct stats *s);
void stats_batch(struct stats *s, const struct ptrace_rec *rec, size_t n);
void stats_thread(struct stats *s, struct proc *p, const struct walk_result *res); /* at its end */
void stats_merge_blocks(struct stats *s); /* one entry a block, heaviest first */
void report_text(FILE *f, struct stats *s);
void report_json(FILE *f, struct stats *s);
void report_list(FILE *f, struct ptrace_run *r);
/* report_tree.c: processes and threads in at most so many lines, with their modules if asked for */
void report_tree(FILE *f, struct ptrace_run *r, uint32_t lines,
		 void (*modules)(FILE *f, const struct proc *p, int indent));
void report_ranges(FILE *f, struct ptrace_run *r);
void report_diffs(FILE *f, struct ptrace_run *r, struct proc *p, const struct walk_result *res);

/* ---- bin.c: the compressed trace format, see ptrace-trace(5) ----------------------------------- */

#define BIN_MAGIC 0x314e494254505450ull /* "PTPTBIN1" */
#define BIN_VERSION 2
struct bin_head {
	uint64_t magic;
	uint32_t version, zero;
};
enum { BIN_RECORDS = 1, BIN_TABLES = 2, BIN_END = 3 };
#define BIN_CHUNK_MAGIC 0x4b4e4942u /* "BINK" */
#define BIN_MAX_RECS 65536
struct bin_chunk {
	uint32_t magic, type;
	uint32_t count; /* records; END: 0 */
	uint32_t raw_size, disk_size;
	uint32_t part[3]; /* RECORDS: bytes of the three columns */
	uint64_t first; /* number of the first record; END: number of all records */
	uint64_t xxh3; /* XXH3_64bits of the payload as stored */
};
_Static_assert(sizeof(struct bin_head) == 16, "on-disk format");
_Static_assert(sizeof(struct bin_chunk) == 48, "on-disk format");

/* Columns of a chunk; worst case sizes a record: 1 + 4 + 5, 10, 10. */
struct bin_pred {
	uint64_t ip[4096], addr[4096];
};
size_t bin_pack(const struct ptrace_rec *rec, size_t n, uint8_t *buf, uint32_t part[3]);
#define BIN_PACK_MAX(n) ((size_t)(n)*30)
/* 0, or -1 if the columns do not hold exactly n records */
int bin_unpack(const uint8_t *buf, const uint32_t part[3], size_t n, struct ptrace_rec *rec);

#endif
