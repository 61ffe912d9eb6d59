/* SPDX-License-Identifier: MIT
 *
 * dec.h - what the parts of the decoder hand to each other
 *
 *   run_open ─▶ struct ptrace_run     processes, threads, module records, start states
 *   map_open ─▶ struct map            one per key, shared by all processes
 *   log_open ─▶ struct log            one per thread: bytes of the stream, in order
 *   walk     ─▶ records               joins the three, in batches
 *   out_*    ◀─ records               filters, writers, statistics
 *
 * Everything that comes from a file is checked before use; reasons for stopping are values
 * (struct ptrace_error, or the walker's `why`), carried up and reported once.
 */
#ifndef DEC_H
#define DEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include "map.h"
#include "ptrace_decode.h"
#include "run.h"
#include "sem.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define NELEM(a) (sizeof(a) / sizeof((a)[0]))
#define NONE32 0xffffffffu

/* ---- util.c ----------------------------------------------------------------------------- */

/* fills *e unless it already holds an error (the first cause is the one to tell); returns -1 */
int err_set(struct ptrace_error *e, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* names in messages come from files: nothing in them may end the line or reach the terminal as a command */
void one_line(char *s);
void *xrealloc(void *p, size_t n, size_t size); /* exits with PTRACE_IO when there is no memory */
void *xcalloc(size_t n, size_t size);
char *xprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* ptrace-collect is at it: it holds a lock on the directory of a process as long as more is coming (flock(2)) */
bool dir_locked(const char *dir);
double now(void); /* monotonic seconds */
/* whole file, read-only, private; NULL with err. An empty file gives a non-NULL pointer. */
const uint8_t *file_map(const char *path, size_t *size, struct ptrace_error *e);
void file_unmap(const uint8_t *p, size_t size);
char *text_read(const char *path); /* whole file, as a string to be freed; NULL if there is none */

/* ---- json.c: just enough to read what the runtime wrote ---------------------------------- */

/* value of a key of the outermost object; strings are unescaped. false if absent. */
bool json_get(const char *text, const char *key, char *buf, size_t size);
/* an array of strings, as one string with spaces between; false if absent */
bool json_words(const char *text, const char *key, char *buf, size_t size);
void json_puts(FILE *f, const char *s); /* quoted and escaped */

/* ---- map.c ------------------------------------------------------------------------------ */

struct map {
	char *path;
	const uint8_t *base;
	size_t size;
	const struct map_head *head;
	const struct sem_op *op;
	const struct map_range *range;
	const struct map_opaque *opaque;
	const struct map_group *group;
	const struct map_block *block;
	const uint8_t *insnlen, *insnops;
	const struct map_site *site;
	const struct map_leader *leader;
	const struct map_rodata *ro;
	const uint8_t *robytes;
	const char *strings;
	uint32_t nop, nrange, nopaque, ngroup, nblock, ninsnlen, ninsnops, nsite, nleader, nro;
	uint64_t nrobytes, nstrings;
	uint32_t *by_ops; /* leaders ordered by op index, made on first use */
	uint32_t *by_vaddr; /* blocks ordered by vaddr, made on first use */
	const struct map_xlat *xlat; /* read on first use */
	uint32_t nxlat;
	struct inst *idle; /* walk_pool.c */
	uint64_t eh_hdr; /* vaddr of .eh_frame_hdr once it was found (cfi.c) */
};

struct map *map_open(const char *path, struct ptrace_error *e);
/* checks an image in memory; the caller keeps it alive */
int map_parse(struct map *m, const uint8_t *base, size_t size, struct ptrace_error *e);
void map_close(struct map *m);
const char *map_name(const struct map *m, uint32_t off); /* "" when out of bounds */
const struct map_leader *map_leader(const struct map *m, uint32_t vaddr);
/* the address map's entry for an offset in the copy; checked on first use. false if there is none */
bool map_xlat_at(struct map *m, uint32_t copy_off, struct map_xlat *x);
/* leader of the lowest address whose op index is `op`, NULL if none */
const struct map_leader *map_leader_of(struct map *m, uint32_t op);
const struct map_block *map_block_at(struct map *m, uint32_t vaddr); /* the last that begins at or before */
/* the control op that ends the program at op; the first op of instruction n of a block, or what is behind the
 * last one's */
uint32_t map_block_end(const struct map *m, uint32_t op);
uint32_t map_insn_op(const struct map *m, const struct map_block *b, uint32_t n);
/* block a program leads to; NONE32 if it leads to a mark */
uint32_t map_block_of(const struct map *m, uint32_t op);
/* map_check.c: control may arrive at op: a block, or a program that leads to a block or a mark */
bool map_begins(const struct map *m, uint32_t op);
/* an op that reads a register's value, from the log or the processor's trace; and one that stubs have */
static inline bool map_value_op(const struct sem_op *o)
{
	return o->op == SEM_LOG || o->op == SEM_LOGSX || o->op == SEM_PTW || o->op == SEM_PTWSX;
}
static inline bool map_stub_op(const struct sem_op *o)
{
	return map_value_op(o) || o->op == SEM_RMARK;
}
int map_check(const struct map *m, struct ptrace_error *e);
/* group's name, or NULL */
const char *map_group_name(const struct map *m, uint32_t group);
/* n read-only bytes at vaddr, NULL if the map has not all of them; *run = bytes from there on */
const uint8_t *map_rodata(const struct map *m, uint64_t vaddr, size_t n, uint64_t *run);
/* the word at vaddr, if it is an address in read-only memory: *v plus the load bias */
bool map_roaddress(const struct map *m, uint64_t vaddr, uint64_t *v);

/* ---- log.c: the stream of one thread ------------------------------------------------------ */

#define LOG_MIN 1024 /* bytes log_need can be asked for at most: the widest group of logs */

struct log;
struct flow;
struct thread;
enum {
	LOG_ENDED = 1, /* the process is known to have; then, as when it is gone, what ptrace-collect has not
	                       written yet is waited for */
	LOG_MANY =
		2, /* many are open at a time: little memory, no descriptor and no thread each; log_time works */
	LOG_ONE = 4, /* one chunk is all of it: what stands behind it in the file is another's */
};
/* at: where in the file its first chunk is */
struct log *log_open(const char *path, uint64_t at, uint32_t pid, uint32_t tid, unsigned flags,
		     struct ptrace_error *e);
/* from a pipe, which is closed with it; whose log it is, is not looked at */
struct log *log_stream(int fd, const char *name, unsigned flags);
/* for tests; copies. Cuts as in a chunk */
struct log *log_mem(const uint8_t *bytes, size_t n, const struct run_cut *cut, uint32_t ncut, bool clean);
void log_close(struct log *l);
/* Where the stream pauses: a signal interrupted the program when it was written up to there, the last `bytes`
 * of that by the region of code that was interrupted. stop: for good, no event follows. */
struct log_pause {
	uint64_t pos;
	uint32_t bytes;
	bool stop;
};
/* the stream stops for good behind these bytes; before the first log_need */
void log_limit(struct log *l, uint64_t pos, uint32_t bytes);
bool log_pause(const struct log *l,
	       struct log_pause *p); /* the next one in the bytes at hand, at their end included */
void log_pass(struct log *l, const uint8_t **end); /* goes on behind it; *end is moved */
/* n bytes from a position in the bytes at hand, or at the start of the next chunk's; false if they are not there */
bool log_peek(struct log *l, uint64_t pos, void *buf, size_t n);
/* up to LOG_MIN bytes in front of *p, for as many that have been read since the last event */
void log_unread(struct log *l, const uint8_t **p, const void *bytes, size_t n);
/* makes n bytes contiguous from *p, which must be the current position: true and *p, *end are set,
 * or false at the end of what there is (log_why says why) */
bool log_need(struct log *l, const uint8_t **p, const uint8_t **end, size_t n);
/* The keyframe of the chunk that the walk is in, at stream position *pos, or NULL: it has none. Valid until the walk
 * leaves the chunk; behind the struct its stack_size bytes of stack follow */
const struct run_key *log_key(const struct log *l, uint64_t *pos);
/* To the first chunk whose keyframe has this counter or a higher one, ahead or behind (log is read before it is known which
 * keyframes the thread has passed); *p, *end: its bytes, as log_need gives them. NULL: there is none */
const struct run_key *log_resync(struct log *l, uint32_t counter, const uint8_t **p, const uint8_t **end);
/* to the end of what there is: its position, and when that was written (TSC); 0 if there is nothing */
uint64_t log_rest(struct log *l, uint64_t *tsc);
uint64_t log_pos(const struct log *l, const uint8_t *p); /* position in the stream */
bool log_clean(const struct log *l); /* the chunk marked as the last was reached */
const char *log_why(const struct log *l); /* damage found, or NULL */
uint64_t log_time(struct log *l, const uint8_t *p); /* TSC at the walk's position, exact or estimated */
/* when the stream began, by the head of its first chunk (TSC); UINT64_MAX if there is none */
uint64_t log_start(const char *path, uint64_t at);
/* the head of the chunk there, if there is one; *at: behind its payload */
bool log_head(int fd, uint64_t *at, struct run_chunk *c);
void log_sizes(const struct log *l, uint64_t *raw, uint64_t *disk); /* bytes seen so far */

/* log_time.c: times of a chunk */
struct log_times {
	struct log_when {
		uint64_t pos, tsc;
	} * at; /* ascending */
	uint32_t n, cap, hint;
};
void times_scan(struct log_times *t, const uint8_t *b, size_t n, uint64_t first, uint64_t open,
		uint64_t close);
uint64_t times_at(struct log_times *t, uint64_t pos); /* 0 if nothing is known */

/* ---- run.c, run_proc.c, run_mod.c, run_start.c ------------------------------------------------------------------- */

struct start {
	const uint8_t *base;
	size_t size;
	struct run_start s;
	const struct run_region *region;
	uint32_t nregion;
	const char *names; /* s.names bytes */
};

struct modrec { /* a record of modules.bin */
	struct run_module m;
	char *path;
	struct map *map; /* NULL when opaque or lost */
	char *lost; /* why a traced module has no usable map */
};

struct proc {
	struct ptrace_run *run;
	char *dir;
	uint32_t pid, image;
	struct proc *parent; /* image it was forked from, or, before exec, its own; NULL if not in the run */
	bool forked; /* from another process */
	uint64_t tsc; /* when it began; UINT64_MAX if not known */
	struct start *start; /* NULL if there is none: a forked process */
	uint32_t first, nlog; /* its threads in ptrace_run.thread */
	struct modrec *mod;
	uint32_t nmod;
	uint32_t index; /* in ptrace_run.proc */
	uint32_t parent_pid, parent_image; /* if forked, from proc.json */
	char *command; /* from proc.json, NULL if not there */
	size_t mod_at; /* bytes of modules.bin that were read */
	bool recorded; /* its trace comes from a replay: start.s.replay */
	struct proc *rec; /* the recorded image that this one goes on from, in full; it is in no table, */
	struct proc *rest; /* and this is its */
	struct hand
		*hand; /* what the walk before has left to that of its first thread (walk_hand.c); or NULL */
	struct replay *replay; /* while it is decoded */
	bool ended; /* proc.json knows how it ended */
	bool stopped; /* tracing did, cleanly, before the process */
	bool untraced; /* before anything was: there is no start state, nor a map */
	bool switched; /* it went on as the next image, recorded in full */
	char *stop; /* how it ended when not by itself, from proc.json; or NULL */
	char *end; /* how it ended, in any case; NULL if that is not known */
	bool async; /* stopped between marks (stop.bin): the stream is good up to lp_pos */
	struct run_stop_state stop_at; /* if async */
};
uint32_t
proc_image(const struct proc *p); /* what it is listed as: the first of the two, where it has a rec */
void proc_end(struct proc *p); /* reads `ended`, `stop` and `end` */
void proc_settle(
	struct proc *p); /* the same, when its log is done with; waits for ptrace-collect to say so */
/* start state of the process or its nearest ancestor that has one: the machine's state layout. NULL if none */
const struct run_start *proc_cpu(const struct proc *p);

struct thread {
	struct proc *proc;
	struct proc *rec; /* recorded image that has what it did before that; NULL */
	struct ptrace_thread pub;
	bool shared; /* its log is one chunk of threads.log, */
	uint64_t at; /* at that byte */
	bool decoded, exec; /* exec: it ended with one */
	int end; /* enum walk_end */
	uint64_t end_arg;
	uint64_t losses, lost_bytes, lost_tsc; /* as in struct ptrace_stats */
};
char *thread_path(const struct thread *t, const struct proc *p); /* of its log in that image; to be freed */

struct ptrace_run {
	char *dir;
	struct proc **proc;
	uint32_t nproc;
	struct thread **thread;
	uint32_t nthread, capthread, capproc;
	struct map **map;
	uint32_t nmap;
	struct mapfile *mapfile; /* run_mod.c: what is in maps/, as of maps_time */
	uint32_t nmapfile;
	struct timespec maps_time;
	struct ptrace_process *plist;
	struct ptrace_thread *tlist;
	struct ptrace_module *mlist;
	uint32_t nmlist;
	uint32_t damage; /* notes given: something was lost */
	void (*note)(void *ctx, const char *line);
	void *note_ctx;
	uint32_t nreplay; /* images that were replayed */
	struct sym *sym;
	struct ptcode *code; /* pt_code.c; NULL before it is needed */
};

void run_note(struct ptrace_run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* for run.c */
void run_open_proc(struct ptrace_run *r, const char *name, uint32_t pid, uint32_t image);
void run_find_parents(struct ptrace_run *r); /* when all processes are there; orders them */
void run_open_modules(struct proc *p);
bool run_module_known(const struct proc *p, const struct modrec *m); /* p has had the same one there */
#define REPLAY_MODULES                                                                                       \
	(1u << 16) /* records of a replay, at most: they come while it is walked, and must not move */
/* those of the replay whose run directory is `run` */
void run_replay_modules(struct proc *p, const char *run, const char *dir);
void run_open_threads(struct ptrace_run *r, struct proc *p);
void run_forget_maps(struct ptrace_run *r);
struct start *start_open(const char *path, struct ptrace_error *e);
void start_close(struct start *s);

/* ---- replay.c: a recorded image is run again, its log read as it comes ------------------------- */

/* From here on p has the modules of the replay. NULL with err; else the log, for replay_end. */
struct log *replay_begin(struct proc *p, bool verify, unsigned flags, struct ptrace_error *e);
/* all: the walk has come to an end by itself. Closes the log; what went wrong is noted. An enum ptrace_status */
int replay_end(struct proc *p, struct log *log, bool all);
/* records of modules.bin that have come since; false if there are none */
bool replay_modules(struct proc *p);

/* ---- mem.c: shadow memory ----------------------------------------------------------------- */

struct mem;
struct mem *mem_new(const struct start *s, uint64_t limit); /* s may be NULL; limit in bytes */
void mem_free(struct mem *m);
/* false when some byte is unknown */
bool mem_load(struct mem *m, uint64_t addr, uint32_t w, uint64_t *val);
/* false when the limit is reached */
bool mem_store(struct mem *m, uint64_t addr, uint32_t w, uint64_t val);
bool mem_read(struct mem *m, uint64_t addr, void *buf, size_t n);
/* n bytes become known; false when the limit is reached */
bool mem_write(struct mem *m, uint64_t addr, const uint8_t *buf, uint64_t n);
/* n bytes take values the decoder does not know; false when the limit is reached: what is there would be
 * stale */
bool mem_forget(struct mem *m, uint64_t addr, uint64_t n);
/* A page, with a bit for each byte that is known. mem_page: false when there is none; mem_put: when the limit is reached. */
struct mem_page {
	uint64_t addr, valid[64];
	uint8_t byte[4096];
};
bool mem_page(struct mem *m, uint64_t addr, struct mem_page *to);
bool mem_put(struct mem *m, const struct mem_page *from);

/* ---- cfi.c: callers of the first traced instruction ---------------------------------------- */

/* One unwinding step in a module's .eh_frame, found in its read-only bytes. reg[]: the 16 general
 * registers, updated; *ip = return address and reg[rsp] = CFA on success. Returns 1, 0 at the
 * outermost frame, -1 when the table does not say. */
int cfi_step(struct map *m, uint64_t bias, uint64_t *ip, uint64_t reg[16], struct mem *mem);

/* ---- sym.c -------------------------------------------------------------------------------- */

struct sym;
struct sym *sym_new(const struct ptrace_run *r);
void sym_free(struct sym *s);
const struct modrec *sym_module(const struct proc *p, uint64_t ip);
/* function that contains ip: its map's name, else the ELF's; NULL if unknown. *start: run time */
const char *sym_function(struct sym *s, const struct proc *p, uint64_t ip, uint64_t *start);
/* function of a block of a module's map */
const char *sym_group(struct sym *s, const struct modrec *rec, uint32_t block, uint64_t *start);
/* "module+0xoff function+0xoff file:line" (what is known of it) */
const char *sym_text(struct sym *s, const struct proc *p, uint64_t ip, bool line, char *buf, size_t n);

/* ---- walk.c ------------------------------------------------------------------------------- */

struct walk_opts {
	bool blocks; /* also give a record of kind WALK_BLOCK before each block's accesses */
	bool verify; /* explain differences */
	bool why; /* count the log's bytes by cause and place: walk_result.why_at */
	bool counts; /* give walk_result.block */
	struct flow *(*flow)(struct thread *t); /* flow.h: opens a thread's provider; NULL: the run's own */
	bool timed; /* one of several threads that are walked at a time: walk_result.when; small batches */
	uint64_t memory; /* bound of shadow memory, bytes */
	uint64_t
		idle; /* blocks in a row without a byte of the log, where a signal is looked for; 0: plenty */
};
/* kind: ip = first instruction, addr = const uint8_t * to lengths, size = number. addr = 0: a handler comes
 * before the block's instruction at ip; another one for the rest follows when it goes on */
#define WALK_BLOCK 0xff

/* WALK_WITH_PROCESS: set by decode_thread */
enum walk_end {
	WALK_EXIT,
	WALK_WITH_PROCESS,
	WALK_STOP,
	WALK_LOG_ENDS,
	WALK_LOST,
	WALK_CLOSED,
	WALK_CANCELLED
};

struct walk_place { /* a place after which opaque code ran */
	uint64_t ip; /* of the block that left */
	uint64_t count;
};

struct walk_block { /* a block that ran, with all its accesses */
	const struct modrec *rec;
	uint32_t block; /* index in rec->map */
	uint64_t count, accesses;
};

struct walk_why { /* the log's bytes written by a block, marks that lead to it included */
	uint64_t ip;
	uint64_t bytes[SEM_NWHY]; /* enum sem_why */
	uint64_t logs; /* reads, marks aside */
};

struct walk_diff {
	uint64_t ip, want, got, pos;
	uint32_t size, kind;
};

/* TSC at record `at` of a batch, from its first record to behind its last; two of the same `at`: at the end of what
 * is before it, and at the start of what is behind it */
struct walk_when {
	uint32_t at;
	uint64_t tsc;
};
#define NWHEN 256

struct walk_result {
	enum walk_end end;
	uint64_t arg; /* of EXIT or STOP */
	char why[500]; /* WALK_LOST, WALK_LOG_ENDS */
	struct walk_place *place;
	uint32_t nplace;
	struct walk_block *block;
	uint32_t nblock;
	struct walk_why *why_at; /* a block may appear more than once */
	uint32_t nwhy;
	struct walk_diff diff[8];
	uint32_t ndiff;
	uint64_t unexpected; /* RUN_EV_UNEXPECTED events */
	bool exec; /* WALK_EXIT: the process went on as another image */
	uint64_t losses, lost_bytes, lost_tsc; /* as in struct ptrace_stats */
	uint64_t blind, blind_at; /* returns to callers whose registers no unwind table tells; the first */
	char loss[500]; /* the first one */
	struct walk_when when[NWHEN]; /* walk_opts.timed: of the batch handed on */
	uint32_t nwhen;
};

typedef int (*walk_fn)(void *ctx, struct ptrace_rec *rec, size_t n);
/* Decode one thread. flow: NULL if all control flow is in the log. st accumulates. Returns enum walk_end, details in *res (walk_result_free). */
int walk_thread(struct proc *p, struct log *log, struct flow *flow, uint32_t tid, uint32_t index,
		const struct walk_opts *o, walk_fn fn, void *ctx, struct ptrace_stats *st,
		struct walk_result *res);
void walk_result_free(struct walk_result *res);
struct hand;
void hand_free(struct hand *h);
void pool_free(struct map *m); /* what walks have kept of it for other threads */

/* ---- decode.c, merge.c --------------------------------------------------------------------- */

struct decode {
	struct ptrace_run *run;
	const struct walk_opts *o;
	walk_fn fn;
	/* at a thread's end (may be NULL); status: enum ptrace_status */
	void (*ended)(void *ctx, uint32_t i, int status, const struct walk_result *res);
	void *ctx;
	struct ptrace_stats *st; /* accumulates */
	uint64_t *
		time; /* room for DECODE_TIMES: fn gets so many records at most, and their times (TSC) here; or NULL */
};
#define DECODE_TIMES 4096

/* thread i of the run; what was lost goes to run_note. Returns an enum ptrace_status. */
int decode_thread(struct ptrace_run *r, uint32_t i, const struct walk_opts *o, walk_fn fn, void *ctx,
		  struct ptrace_stats *st, struct walk_result *res);
/* only its part in one image, p */
int decode_part(struct ptrace_run *r, uint32_t i, struct proc *p, const struct walk_opts *o, walk_fn fn,
		void *ctx, struct ptrace_stats *st, struct walk_result *res);
/* Threads of the run, ascending. Returns the worst enum ptrace_status of a thread. */
int decode_threads(const struct decode *d, const uint32_t *list, uint32_t n, enum ptrace_merge merge);
int decode_by_time(const struct decode *d, const uint32_t *list, uint32_t n); /* walk_opts.timed */
void stats_add(struct ptrace_stats *to, const struct ptrace_stats *st); /* all but seconds */
const char *stop_name(uint64_t stop); /* enum run_stop in words */
/* how it ended, in words; "" if it was not decoded */
const char *thread_end(const struct thread *t, char *buf, size_t n);

#endif
