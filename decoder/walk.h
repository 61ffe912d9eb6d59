/* SPDX-License-Identifier: MIT
 *
 * walk.h - what the files of the walker share
 *
 *   walk.c        one thread: set-up, end
 *   walk_start.c  its first instruction
 *   walk_hand.c   what a walk leaves to that of an image that goes on with it, or is forked
 *   xlat.c        map ops ─▶ threaded code, a run at a time, on first execution
 *   walk_loop.c   executes it; everything rare is a call into the files below
 *   walk_mark.c   marks: where control goes when it came from unknown code
 *   walk_frame.c  the call stack
 *   walk_mod.c    modules come and go; run-time address ─▶ place in a map
 *   walk_pool.c   modules as loaded, kept with their threaded code for the next thread
 *   walk_why.c    on demand: what the log's bytes are for
 *   walk_seek.c   where a signal came
 *   walk_live.c   what the ops from a place on depend on
 *   walk_again.c  would control come to a place once more, and look the same
 *   walk_sig.c    handlers: what they interrupt is put aside and goes on
 *   walk_flow.c   control flow from a recording: where it is lost
 *   walk_key.c    and found again at a keyframe
 *   walk_count.c  blocks counted by the loop ─▶ instructions, accesses
 *   walk_vec.c    gathers, masks, string instructions, xsave: groups of records
 *
 * Functions that may end the walk return 0 to go on, or nonzero after setting w->end and
 * w->res->why. w->pc, w->m, w->p and w->lim are current whenever one is called.
 */
#ifndef WALK_H
#define WALK_H

#include "dec.h"
#include "flow.h"

/* One threaded op: the map's op with its handler. Same index as the map's op; h == 0: not translated
 * yet. SEM_NONE became ZERO where 0 is meant; shifts of scaled operands sit in b's top bits. imm of a
 * SEM_BLOCK, and of the second slot of ops that have one: address of the block's struct bcount. */
struct xop {
	uint16_t h, dst, a, b;
	int64_t imm;
};
_Static_assert(sizeof(struct xop) == 16, "four to a cache line");

#define ZERO SEM_NREGS /* a register that holds 0 */
#define WALK_NREGS (SEM_NREGS + 8)
#define B_REG(b) ((b)&0xfff)
#define B_SHIFT(b) ((b) >> 12)

/* With walk_opts.why: how often an op that reads the log ran, its own handler, and the bytes of marks that
 * led to it. */
struct opcount {
	uint64_t n, mark;
	uint32_t h;
};

/* What a block did. Its fixed records, and so its instructions and bytes of log, follow from n. */
struct bcount {
	uint64_t n; /* times begun */
	uint64_t extra; /* records of SEM_RECVEC, SEM_RECREP, SEM_RECXS */
};

/* A module as loaded. Kept after unload: frames may still name it. */
struct inst {
	const struct modrec *rec;
	struct map *map;
	struct xop *code;
	struct bcount *block; /* as map->block, and one more for ops before any */
	struct opcount *count; /* as code; NULL unless walk_opts.why */
	uint64_t bias;
	uint64_t copy; /* run-time address of the copy */
	bool live;
	uint32_t *seen; /* blocks that have been translated: only those can have been counted */
	uint32_t nseen;
	/* when it is idle, its code kept for another thread (walk_pool.c) */
	struct inst *next;
	bool blocks; /* walk_opts.blocks, which the code depends on */
};

enum {
	FR_OPAQUE = 1, /* the caller is opaque code: returning leads to a mark */
	FR_RMARK = 2, /* the return site begins with a SEM_RMARK */
	FR_RESYNC = 4, /* the return site writes a RESYNC mark */
	FR_DEAD = 8
};
#define NSAVED 6
struct frame {
	uint64_t slot; /* address of the return address */
	struct xop *pc; /* where a return leads */
	struct inst *m;
	uint64_t saved[NSAVED]; /* rbx, rbp, r12-r15 as the caller had them */
	uint32_t flags, check;
};
#define MAX_FRAMES (4u << 20)

#define LCACHE 4096
struct lcache {
	uint64_t addr;
	struct inst *m;
	uint32_t leader;
};

#define NREC 16384 /* records in a batch */
#define REC_KEEP 64 /* of the batch before, for SEM_VCHK */
#define NREC_TIMED 1024 /* with walk_opts.timed, but for REC_ROOM */
#define REC_ROOM 4096 /* records a block may add without a check of its own */

/* bytes of each general register that matter; whether vector lanes and mask registers, or memory do, too */
struct live {
	uint8_t gpr[SEM_NGPR];
	bool lanes, memory;
};

/* Where the walk is put aside. */
struct place {
	struct inst *m;
	uint32_t block, insn; /* insn: those before it have run */
	uint32_t op; /* next */
	bool begun; /* in the block; else before it, or */
	bool mark; /* a mark was due */
};

/* The stream's next pause, and where the signal came that is behind it. */
struct seek {
	bool on, bad; /* there is one; it is not followed by a signal */
	struct log_pause at;
	struct run_signal s;
	uint32_t ahead; /* bytes before the pause that instruction rip has logged */
	struct inst *m; /* NULL: rip is no instruction of traced code */
	uint32_t block, insn, op, rep; /* op: its first; rep: its SEM_RECREP, NONE32 if none */
	uint16_t h; /* handler of op, which has H_BREAK */
	struct live live; /* at op */
	uint64_t idle; /* blocks begun at the pause */
	uint64_t visit; /* times that rip came up there */
	uint32_t nots; /* times that it looks the same, and is not */
};
#define SIG_EVENT (12 + sizeof(struct run_signal))

struct walker {
	uint64_t r[WALK_NREGS];
	struct xop *pc;
	struct inst *m;
	struct log *log;
	const uint8_t *p, *lim; /* next byte of the stream, end of what is in memory */
	struct ptrace_rec *out, *outlim;
	struct ptrace_rec *buf; /* REC_KEEP + NREC */
	uint32_t index; /* of the thread in the run: ptrace_rec.tid */

	struct frame *frame;
	uint32_t nframe, capframe;
	struct frame *limbo; /* frames that were jumped over, a hash by slot */
	uint32_t nlimbo, limbocap;
	uint64_t start_top; /* highest slot of the frames at the start */

	uint64_t expect; /* mirrors tcb.expect */
	bool blind; /* times may be in the stream that log_time does not know of: SEM_TSC */
	bool execing; /* an execve is under way: if it works, the stream just ends */
	uint64_t goes_on; /* or the next image goes on here, at this very place; 0 if not */
	bool whole; /* start.bin's place is about to be resumed at: all memory is known, */
	bool handed; /* and all that the walk of the image before knew */
	bool counted; /* which had come past the system call that it goes on with */
	struct {
		bool on;
		struct run_back r;
	} came; /* RUN_EV_BACK has been read, its RET mark is next */
	uint64_t left; /* ip of the block control left from to unknown code, 0 if none */

	struct proc *proc;
	struct inst **inst;
	uint32_t ninst;
	uint8_t *applied; /* per module record: already in effect */
	struct lcache *lc;
	bool lcused; /* there is something in it */
	struct mem *mem;
	struct mem *start_mem; /* after a new beginning: memory from before it, good for what is read-only */
	const uint8_t *ro; /* last read-only bytes used: rolo, ron */
	uint64_t rolo, ron;

	const struct walk_opts *o;
	struct flow *flow; /* what ops that ask for control flow get their answers from; */
	struct xop *back; /* where a handler's return led */
	uint64_t back_asked; /* flow.nasked then */
	struct flow *ask; /* the same, but where it turned out not to fit the log: it knows nothing */
	uint64_t flow_time; /* ask->tsc as it was met last */
	uint64_t asked; /* what was asked about when the answer was that it is lost; else 0 */
	uint32_t key; /* counter of the last keyframe met in the log */
	uint64_t
		key_asked; /* flow.nasked when the recording was last known to be as far as that, or farther */
	walk_fn fn;
	void *ctx;
	struct ptrace_stats *st;
	struct walk_result *res;
	enum walk_end end;
	struct seek seek;
	struct aside **aside; /* walk_sig.c: what handlers interrupted, newest last */
	uint32_t naside, base; /* frames below base are theirs */
	uint32_t debt; /* bytes of the stream that come, but are known already */
	uint64_t rep_done; /* elements of the string instruction at pc that are recorded already */
	bool at_mark; /* after an event that moved control: a mark is due */
	struct walk_place *ptab; /* hash of places */
	uint32_t pcap, pn;
};

/* walk_loop.c */
int walk_loop(struct walker *w);
extern const char *const walk_handler_name[];

/* xlat.c: translates the run that pc is in; sets why on failure */
int xlat_run(struct walker *w, struct inst *m, struct xop *pc);

/* walk.c */
int lost(struct walker *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int log_ended(struct walker *w);
int flush(struct walker *w); /* hands the batch on */
int walk_time(struct walker *w, uint64_t tsc);
const struct map_block *block_here(const struct walker *w); /* the current block, NULL if unknown */
uint64_t here(const struct walker *w); /* run-time address of the current block, 0 if unknown */
const char *place(struct walker *w, uint64_t ip, char *buf, size_t n);
/* walk_seek.c. seek_dry, seek_dry_mark: no n bytes left at pc, or where a mark is due; 0 to go on there */
bool walk_more(struct walker *w, size_t n);
void seek_next(struct walker *w);
void seek_rearm(struct walker *w); /* modules have changed */
void seek_off(struct walker *w);
bool seek_insn(struct map *m, uint32_t vaddr, uint32_t *block, uint32_t *insn);
int seek_break(struct walker *w, bool *taken);
int seek_block(struct walker *w); /* pc at a SEM_BLOCK, no byte left */
int seek_dry(struct walker *w);
int seek_dry_mark(struct walker *w);
int seek_value(struct walker *w, bool *taken); /* pc at a SEM_PTW */
static inline bool need(struct walker *w, size_t n)
{
	return (size_t)(w->lim - w->p) > n || walk_more(w, n);
}

/* walk_live.c */
void walk_live(const struct map *m, uint32_t op, struct live *l);
void live_before(const struct sem_op *o,
		 uint8_t *need); /* from what is needed behind it; SEM_NREGS of them */
bool live_same(const struct live *l, const uint64_t *x, const uint64_t *y);

/* walk_again.c. RECORDS: with accesses in between; IDLE: without; LATER: it is not now, but at the earliest the *later-th
 * time from now on that what is live looks the same */
enum again { AGAIN_NO, AGAIN_RECORDS, AGAIN_IDLE, AGAIN_LATER };
enum again walk_again(struct walker *w, const struct live *l, const uint64_t *gpr, uint32_t *later);

/* walk_sig.c. Those that move control set w->at_mark */
int sig_take(struct walker *w, const struct place *at);
int sig_at_call(struct walker *w);
int sig_return(struct walker *w, uint64_t frame);
int sig_resume(struct walker *w, uint64_t size);
void sig_longjmp(struct walker *w, uint64_t rsp);
void sig_trim(struct walker *w);
void sig_finish(struct walker *w);
void sig_forget(struct walker *w); /* all that was put aside */
int sig_enter(struct walker *w, const struct place *at, uint64_t ip); /* in the middle of a block */
struct aside **
sig_give(const struct walker *w); /* copies for another walk; to be freed, each and the array */
bool sig_undo(struct walker *w, uint64_t rip); /* what came there last is the next image's to say */
void sig_handed(struct walker *w, struct aside **aside, uint32_t n, uint32_t base); /* takes them */

/* walk_count.c: at the end; fixed records of ops */
void count_finish(struct walker *w);
uint32_t count_records(const struct map *m, uint32_t from, uint32_t to);

/* walk_pool.c */
struct inst *pool_take(const struct walker *w, const struct modrec *rec);
void pool_give(const struct walker *w, struct inst *m);
void pool_seen(struct inst *m, uint32_t block); /* it is being translated */

/* walk_mod.c */
int mod_apply(struct walker *w, uint32_t index);
int mod_start(struct walker *w);
struct inst *mod_at(const struct walker *w, uint64_t addr);
struct inst *mod_at_copy(const struct walker *w, uint64_t addr);
/* leader at a run-time address; NULL if none */
const struct map_leader *mod_leader(struct walker *w, uint64_t addr, struct inst **m);
const struct map_site *mod_site(struct walker *w, uint32_t id, struct inst **m);
uint32_t return_flags(const struct inst *m, uint32_t op, uint32_t *check);
uint32_t leader_flags(const struct inst *m, const struct map_leader *l, uint32_t *check);
void mod_free(struct walker *w);

/* walk_frame.c */
extern const uint8_t frame_saved[NSAVED];
int frame_room(struct walker *w); /* for one more at frame[nframe] */
int frame_push(struct walker *w, struct inst *m, uint32_t op, uint32_t flags, uint32_t check);
void frame_push_opaque(struct walker *w, uint64_t slot);
void frame_drop(struct walker *w, uint64_t rsp); /* those whose slot is below rsp */
void frame_set_aside(struct walker *w, uint64_t rsp); /* the same, where none of them comes back by that */
void frame_cut(struct walker *w, uint32_t n); /* all but the first n */
void frame_limbo(struct walker *w, const struct frame *f); /* taken off without a return */
int frame_return(struct walker *w, uint64_t slot); /* ret */
int frame_switch(struct walker *w, uint64_t slot, uint64_t target); /* SEM_RETX */
/* untraced code came back, with that rsp, from a call to there, whose frame is taken off, wherever it is */
int frame_back(struct walker *w, uint64_t rsp, const struct map_leader *l, struct inst *m);
void frame_restore(struct walker *w, const struct frame *f);
int frame_resume(struct walker *w, uint32_t i); /* pops all from i on, goes on at its return site */

/* walk_start.c */
int walk_start(struct walker *w, uint32_t tid);
int walk_stack(struct walker *w, uint64_t addr,
	       uint64_t left); /* bytes of a stack, from the stream into memory */
int walk_callers(struct walker *w, uint64_t ip, const uint64_t *gpr); /* pushes their frames */

/* walk_hand.c */
void hand_give(struct walker *w, struct proc *to, uint64_t rip, bool counted);
void hand_child(struct walker *w, uint64_t pid, uint64_t rip);
bool hand_stacks(struct walker *w, uint64_t rip, uint64_t rsp);
bool hand_take(struct walker *w, uint64_t rip, uint64_t rsp);

/* walk_mark.c */
int walk_mark(struct walker *w);
void walk_leave(struct walker *w); /* a jump that leaves, and sets tcb.expect */
int walk_rmark(struct walker *w);
int walk_syscall(struct walker *w);
int walk_ijmp(struct walker *w, uint64_t target, uint32_t group);
int walk_place_opaque(struct walker *w, uint64_t ip);

/* walk_flow.c: what a walk without a recording asks; the provider could not answer the op at pc */
struct flow *flow_none(void);
struct flow *flow_astray(void);
int walk_flow_gone(struct walker *w, int status);
int walk_flow_time(struct walker *w);
void walk_flow_signal(struct walker *w, uint64_t ip); /* a signal that came there is passed */

/* walk_key.c */
bool walk_from_key(struct walker *w);
void walk_key_check(struct walker *w);

/* walk_vec.c: the op at pc; leaves pc alone */
int walk_recvec(struct walker *w);
int walk_recrep(struct walker *w);
int walk_rep_part(struct walker *w, uint32_t op, uint64_t n); /* the first n elements of the one at op */
int walk_recxs(struct walker *w);
int walk_vchk(struct walker *w, uint64_t back);

/* walk_why.c */
void why_wrap(struct inst *m, uint32_t from, uint32_t to);
void why_finish(struct walker *w); /* before mod_free */

/* handlers: enum H_* ------------------------------------------------------------------------ */

/* value ops specialised by width, register-register and register-immediate */
/* clang-format off */
#define H_VALUE(X) \
	X(ADD) X(SUB) X(AND) X(OR) X(XOR) X(MUL) X(SHL) X(SHR) X(SAR) X(CMPEQ) \
	X(FC_ADD) X(FC_SUB) X(FR_ADD) X(FR_SUB)
#define H_UNARY(X) X(MOV) X(SX) X(NOT) X(NEG) X(FR_LOGIC)
#define H_CC(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define H_OTHER(X) \
	X(IMM) X(LEA) X(SEL) X(GENERIC) X(LOG1) X(LOG2) X(LOG4) X(LOG8) X(LOGSX1) X(LOGSX2) X(LOGSX4) X(LOGSX6) \
	X(REC) X(REC_ROOM) X(RECVEC) X(RECREP) X(RECXS) X(VCHK) X(TSC) X(LOAD) X(STORE) X(LOADRO) \
	X(BLOCK) X(BLOCKREC) X(JMP) X(JCC_LOG) X(JCC) X(IJMP) X(IJMP_LOG) X(CALL) X(CALLX) X(JMPX) X(JMPX_LINK) X(RET) X(RETX) \
	X(SYSCALL) X(HALT) X(RMARK) X(JCC_FLOW) X(FLOW) X(PTW) X(COUNT) X(BREAK)
/* clang-format on */

#define H_W(X, op, form) X(op##_##form##1) X(op##_##form##2) X(op##_##form##4) X(op##_##form##8)
#define H_E(n) H_##n,
#define H_EV(op) H_W(H_E, op, R) H_W(H_E, op, I)
#define H_EU(op) H_W(H_E, op, U)
#define H_EC(cc) H_COND##cc,
enum handler { H_XLAT, H_VALUE(H_EV) H_UNARY(H_EU) H_CC(H_EC) H_OTHER(H_E) H_N };

#endif
