/* SPDX-License-Identifier: MIT
 *
 * rt.h - what the files of the runtime share; its rules are in README.md
 *
 *   rt_init ─▶ rt_env, rt_dir        settings, the run directory
 *          ├─▶ rt_ring ─▶ rt_spawn   shared memory, ptrace-collect
 *          ├─▶ rt_pt                 is there Intel PT? its events are ptrace-collect's
 *          ├─▶ rt_mod ─▶ rt_elf, rt_map (─▶ rt_spawn: ptrace-analyze), rt_copy, rt_place, rt_apply
 *          └─▶ rt_start              start.bin
 *   rt_entry.S ─▶ rt_hook (system calls), rt_ring (full chunk), rt_sig ─▶ rt_sigwhere, rt_xlat, rt_sigframe
 *                    all ─▶ rt_stop  clean stop
 */
#ifndef RT_H
#define RT_H

#include <stdbool.h>
#include "map.h"
#include "replay.h"
#include "ring.h"
#include "rt_off.h"
#include "rt_sys.h"
#include "rt_sysout.h"
#include "run_rec.h"

#define RT_PATH 1024
#define RT_PAGE 4096ull
#define RT_NMOD 1024
#define RT_PRIVATE (128ull << 10) /* of each thread: its runtime stack, what is below it */
#define RT_ARENA (32ull << 20)
#define RT_WINDOW (256u << 10) /* text patched at a time */

struct rt_regs {
	uint64_t gpr[16];
	uint64_t rip;
	uint64_t flags; /* lahf/seto form */
	uint64_t mask;
	uint64_t nr;
};
enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };

/* kernel's struct sigaction (arch/x86/include/uapi/asm/signal.h) */
struct rt_ksig {
	uint64_t handler, flags, restorer, mask;
};

struct rt_sigview {
	struct rt_ksig act; /* what the program installed */
	uint32_t ours; /* the kernel has the runtime's handler instead */
	struct rt_ksig
		last; /* the last one with a handler: another thread may have been given it meanwhile */
};

struct rt_frames; /* rt_sigframe.c: what handlers interrupted */

/* One page of the ring. */
struct rt_tcb {
	union {
		struct {
			struct tcb t;
			struct rt_regs sv;
			struct rt_tcb *child; /* of what the system call is about to make */
			uint32_t stamp; /* system calls are time stamped */
			uint32_t lazy; /* recording: signals are held, not blocked (rt_hold.c) */
			uint64_t alt_lo, alt_size; /* where the program's stack must not be for that */
			uint64_t held_mask, held_info[16]; /* the program's mask; siginfo_t */
			uint64_t
				rflags; /* when C code was called: what sv.flags does not have of the program's */
			uint32_t held; /* 1: there is one */
			uint32_t child_how, child_proc, child_uid; /* RUN_START_*; its ring_proc */
			uint32_t born; /* RUN_START_*, 0: as a thread of its process */
			uint32_t clear_sig; /* the kernel has reset its handlers (CLONE_CLEAR_SIGHAND) */
			uint32_t vm; /* its process runs in another's memory */
			uint64_t parent_rsp; /* of who made it */
			uint64_t fsbase; /* at its birth, where the call says it, or: */
#define RT_FS_UNKNOWN (~0ull)
			uint64_t chunk; /* where its part of the current chunk begins */
			uint64_t halt_ns,
				halt_seen; /* its processor time when it was asked where it is, and later */
			uint32_t halting; /* it is about to say so (rt_halt.c) */
			struct sys_before before; /* recording: of the call under way */
			uint64_t lp0; /* log pointer at entry of the last slow system call */
			uint32_t at_once; /* recording: a signal was due when a handler returned */
			uint64_t called; /* recording: TSC at entry of the system call under way */
			struct rt_sigview *sig; /* [65]; a vfork child has a copy, as the kernel has */
			struct rt_sigview *sig_own; /* in its private memory, as are: */
			struct rt_frames *frames; /* NULL: no signal yet */
		};
		uint8_t room[RING_THREAD_OFF];
	};
	struct ring_thread th;
};

struct rt_module {
	uint32_t kind; /* as in struct run_module; slot free if index is ~0 */
	uint32_t index;
	uint32_t reason;
	uint32_t site_base;
	uint64_t bias, lo, hi;
	uint64_t copy, copy_size;
	const struct map_head *map;
	uint64_t map_size;
	uint8_t key[32];
	uint32_t key_len;
	const struct map_patch *patch; /* in scratch memory, while the module is being loaded */
	uint64_t npatch;
	uint8_t *window; /* there, too: RT_WINDOW bytes */
	bool vdso;
	bool patched;
	bool hidden; /* its map is MAP_F_HIDDEN */
	uint8_t *saved; /* vDSO: its original bytes */
	char *path; /* in the arena */
};

/* what is done with system calls */
enum rt_how { RT_FULL, RT_RECORD, RT_REPLAY };

struct rt {
	enum rt_how how;
	const struct replay_info *replay;
	/* settings (rt_env.c) */
	char **envp;
	const char *dir_opt, *run_opt, *analyze_opt, *collect_opt, *compress_opt, *stream_opt, *home, *xdg;
	bool oracle;
	enum { RT_CF_AUTO, RT_CF_PT, RT_CF_SOFT } cf; /* PTRACE_CF */
	bool info; /* PTRACE_LOG=info */
	bool ptwrite; /* PTRACE_PTWRITE=1 */
	uint32_t budget; /* PTRACE_PTWRITE_BUDGET, its logarithm, or MAP_BUDGET_ALL */
	struct ring_pt pt_set; /* until there is a ring */
	bool pt; /* Intel PT tells the control flow */
	int exit; /* the program must not run: its exit status */
	uint32_t mapflags; /* MAP_F_* */
	uint32_t fullflags; /* recording: those of what is recorded in full from some point on */
	uint32_t umask; /* recording: as it was at the start */
	const char *full_why; /* what made that necessary; NULL: nothing, yet */
	bool bases; /* some module's map is MAP_F_BASES */
	bool blind; /* a module's system calls, or some of them, would not be seen */
	uint32_t nchunks;
	char spool[24]; /* bytes, in digits */
	/* where things are */
	char self[RT_PATH]; /* directory of this library */
	char collect[RT_PATH], analyze[RT_PATH];
	char run[RT_PATH]; /* run directory, absolute */
	char proc[RT_PATH]; /* this process image's directory in it */
	char cache[RT_PATH]; /* map cache directory, "" if none is usable */
	char live[RT_PATH]; /* registry of live processes (rt_live.c) */
	bool root; /* this process made the run directory */
	uint32_t pid;
	bool active, stopped;
	/* memory of ours, all at explicit addresses (rt_place.c) */
	uint64_t arena, arena_top, arena_end;
	uint64_t next; /* next free address of ours */
	struct ring_head *ring;
	uint64_t private; /* RT_PRIVATE bytes for each TCB */
	struct rt_tcb *main; /* of the first thread */
	uint32_t registered; /* process that is in the registry of live ones */
	bool seccomp; /* the program has a filter of system calls */
	bool shared; /* a process that we do not wait for runs in our memory, or did */
	uint32_t lock; /* futex: what all threads share, below */
	bool restorable; /* start.bin has all that the image can be restored from, for a replay */
	uint64_t stack_lo, stack_hi; /* the first thread's stack */
	struct rt_module *mod;
	uint32_t nmod, nindex;
	struct {
		uint32_t module, vaddr;
	} seen[16]; /* unexpected entries of this image */
	uint32_t nseen;
	uint32_t next_id; /* behind the mark ids given last */
	struct rt_sigview sig[65];
};
extern struct rt rt;
extern struct rt_regs rt_out; /* state to leave the runtime with at a stop: private memory */

/* rt_lib.c */
void *memcpy(void *d, const void *s, size_t n);
void *memset(void *d, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t rt_strlen(const char *s);
bool rt_streq(const char *a, const char *b);
const char *rt_starts(const char *s, const char *prefix); /* rest of s, or NULL */
struct rt_str {
	char *p;
	size_t n, cap;
	bool cut;
}; /* always terminated */
struct rt_str rt_str(char *buf, size_t cap);
void rt_put(struct rt_str *s, const char *t);
void rt_putu(struct rt_str *s, uint64_t v);
void rt_putx(struct rt_str *s, uint64_t v, int digits);
void rt_say(const char *a, const char *b, const char *c, const char *d); /* one line on stderr */
const char *rt_strerror(long err);
void *rt_alloc(size_t n); /* from the arena, zeroed, never freed; NULL when it is used up */
bool rt_dirname(char *path); /* cut at the last slash; false if there is none */
void rt_take_xfsz(void);
/* around what all threads share: modules, the arena, signal handlers. Held across fork */
void rt_lock(void);
void rt_unlock(void);
int rt_write_all(int fd, const void *p, size_t n); /* 0 or -errno */
/* memcpy from and to memory of the program, by the kernel and without faults. 0 or -errno (a filter of system
 * calls may refuse): copy it yourself then */
int rt_copy_out(void *to, uint64_t from, size_t n);
int rt_copy_in(uint64_t to, const void *from, size_t n);

/* rt_maps.c */
struct rt_vma {
	uint64_t lo, hi, off, ino;
	uint32_t dev_major, dev_minor;
	uint8_t prot;
	bool priv;
	const char *path;
};
typedef bool rt_vma_fn(const struct rt_vma *v, void *arg); /* false ends the walk */
int rt_maps(rt_vma_fn *fn, void *arg); /* 0 or -errno */
bool rt_ours(uint64_t addr); /* in memory the runtime mapped */

/* rt_place.c */
int rt_place_init(void);
uint64_t rt_place_far(uint64_t size, uint64_t align, int fd, int prot, int flags); /* 0 on failure */
uint64_t rt_place_near(uint64_t lo, uint64_t hi, uint64_t size);
bool rt_place_reaches(uint64_t lo, uint64_t hi, uint64_t at,
		      uint64_t end); /* would near have allowed this? */

/* rt_env.c: 0, or -1 after saying why */
int rt_env(char **envp);
const char *rt_env_get(const char *name); /* NULL if it is not set */
int rt_env_bool(const char *name, bool *to); /* 0 or 1; as it was if it is not set */
int rt_refuse(const char *name, const char *value, const char *why); /* says so; -1 */
bool rt_env_oracle(char **envp);

/* rt_limit.c: 0, or -1 after saying why; bytes of address space, of a file */
int rt_limit(void);
uint64_t rt_limit_space(void);
uint64_t rt_limit_file(void);

/* rt_dir.c */
int rt_dir_open(void);
int rt_dir_next(void); /* a directory for one more image of this process */
bool rt_dir_is_run(const char *dir);
/* rt_stat.c: fields of /proc/PID/stat, or of /proc/PID/task/TID/stat */
struct rt_stat {
	uint32_t pid, ppid, threads;
	char state; /* 'R' runs or wants to, 'Z' has ended, ... */
	uint64_t start; /* time of its start, clock ticks since boot */
};
bool rt_stat(const char *path, struct rt_stat *st); /* false: it is not there */
/* rt_live.c: the registry of live traced processes */
struct rt_dirent { /* getdents64(2) */
	uint64_t ino, off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};
void rt_live_register(void); /* enter the process */
void rt_live_leave(void);
bool rt_live_join(void); /* sets rt.run to the run that it belongs to; false if to none */
bool rt_live_run(const char *dir); /* a process that is alive belongs to the run there */
long rt_live_lock(void); /* nobody else makes a run directory until rt_live_unlock() of what it returns */
void rt_live_unlock(long lock);
int rt_old_remove(const char *dir); /* rt_old.c */
void rt_dir_path(char *buf, const char *dir, const char *name);

/* rt_spawn.c */
int rt_spawn_collector(int memfd);
int rt_spawn_wait(void);
/* avoid: list of addresses for --avoid, or NULL; place: for --place, ~0: none */
int rt_spawn_analyzer(const char *file, const char *out, const char *name, const char *avoid, uint32_t place);

/* rt_elf.c */
struct rt_elf {
	uint8_t key[32];
	uint32_t key_len, key_kind;
	bool textrel;
	uint64_t vaddr0, lo, hi;
};
int rt_elf_read(int fd, struct rt_elf *e); /* enum run_module_reason */
uint64_t rt_xxh3(const void *p, size_t n);

/* rt_map.c: maps the module's map; enum run_module_reason */
int rt_map_get(struct rt_module *m, const struct rt_elf *e, const char *file);
void rt_map_avoid(const struct rt_module *m, uint32_t vaddr);
static inline const void *rt_map_sect(const struct map_head *h, int s, uint64_t *n, size_t size)
{
	*n = h->sect[s].size / size;
	return (const uint8_t *)h + h->sect[s].off;
}

/* rt_copy.c */
int rt_copy_make(struct rt_module *m, int fd); /* enum run_module_reason */
void rt_copy_drop(struct rt_module *m);
int rt_copy_seal(void); /* the modules that were loaded with the program have their copies: 0 or -errno */
uint8_t *rt_scratch(uint64_t size); /* NULL: there is no room. What was in it is lost */
void rt_scratch_drop(void);

/* rt_apply.c: patches the text; fd: the module's file. Without a copy after a failure */
int rt_apply(struct rt_module *m, int fd); /* enum run_module_reason */
void rt_unapply(struct rt_module *m);
void rt_unapply_all(void);

/* rt_mod.c */
int rt_mod_start(void);
bool rt_mod_ids(struct rt_module *m); /* gives it mark ids (m->site_base), as many as its map wants */
struct rt_module *rt_mod_exec(uint64_t addr, uint64_t size);
uint32_t rt_mod_unmap(uint64_t addr, uint64_t size, uint32_t *index, uint32_t max);
bool rt_mod_text(uint64_t addr, uint64_t size); /* touches patched text */
struct rt_module *rt_mod_at(uint64_t addr); /* original span */
struct rt_module *rt_mod_at_copy(uint64_t addr);
struct rt_module *rt_mod_traced(uint64_t addr); /* addr is in original text that was relocated */

/* rt_ring.c */
int rt_ring_open(void);
int rt_ring_ready(void); /* the collector is; 0, or -errno after saying why */
void rt_ring_wait_done(struct ring_proc *p);
void rt_ring_kick(void);
bool rt_ring_dead(void);
uint64_t rt_ring_pos(const struct rt_tcb *t, uint64_t lp); /* stream position */
bool rt_in_ring(uint64_t addr);
bool rt_chunk_take(struct rt_tcb *t, uint64_t first);
void rt_chunk_give(struct rt_tcb *t, uint32_t kind); /* enum ring_kind */
struct ring_desc *rt_chunk_desc(const struct rt_tcb *t);
int rt_ring_message(uint32_t kind, const void *p, uint32_t n); /* kind: enum ring_kind */
void rt_called(struct rt_tcb *t, uint32_t nr, uint64_t result); /* the mark of a system call */
void rt_event(struct rt_tcb *t, uint32_t ev, uint64_t arg); /* enum run_event */
void rt_event_with(struct rt_tcb *t, uint32_t ev, uint64_t arg, const void *p,
		   uint32_t n); /* p: n bytes follow */
void rt_log(struct rt_tcb *t, const void *from, uint64_t n);
int rt_chunk_full(struct rt_tcb *t);
/* 0: at tcb.lp, maybe in another chunk now, is room for a cut and some KiB; else enum run_stop: stop */
uint32_t rt_ring_room(struct rt_tcb *t);
void rt_cut(struct rt_tcb *t, uint64_t at, uint32_t bytes); /* at: address in the current chunk */
void rt_cut_undo(struct rt_tcb *t);

/* rt_thread.c */
struct ring_proc *rt_proc(const struct rt_tcb *t);
struct rt_tcb *rt_thread_first(void);
struct rt_tcb *rt_thread_new(struct rt_tcb *t, uint32_t how);
bool rt_room_comes(void); /* there was no room, and there will be */
void rt_thread_drop(struct rt_tcb *t);
uint32_t rt_thread_end(struct rt_tcb *t);
void rt_born(struct rt_tcb *t);
uint64_t rt_stack_size(uint64_t rsp); /* bytes from there on that may hold callers' frames */

/* rt_pt.c: 0, or -1 after saying why */
int rt_pt_env(void);
int rt_pt_look(void);
int rt_pt_open(void);
int rt_pt_start(void); /* 0 or -errno */
void rt_pt_born(struct rt_tcb *t);
void rt_pt_key(struct rt_tcb *t);

/* rt_text.c */
int rt_text_keep(const struct rt_module *m, int fd);

/* rt_pages.c: which pages of [lo, hi), anonymous private memory, may hold something other than zero */
struct rt_pages {
	long fd;
	uint64_t at, hi;
	bool no_scan; /* an older kernel */
};
void rt_pages_open(struct rt_pages *p, uint64_t lo, uint64_t hi);
bool rt_pages_next(struct rt_pages *p, uint64_t *lo, uint64_t *hi); /* the next stretch; false: no more */
void rt_pages_close(const struct rt_pages *p);

/* rt_start.c: into this file of the image's directory; it is there whole or not at all */
int rt_start_write(const char *name, const uint64_t *regs, uint64_t rflags);

/* rt_stop.c */
bool rt_stop_here(struct rt_tcb *t, uint32_t reason);
void rt_stop(struct rt_tcb *t, uint32_t reason, const struct run_stop_state *st);
/* as rt_stop_here, at a place that st describes */
bool rt_stop_at(struct rt_tcb *t, uint32_t reason, const struct run_stop_state *st);
int rt_stop_leave(struct rt_tcb *t, uint32_t reason, uint64_t rip);

/* rt_xlat.c: the program's state from the state at an interruption. *st->rip etc. filled */
struct rt_where {
	uint64_t rip;
	uint32_t where, module;
	uint64_t copy_off;
	uint16_t off, ahead; /* struct map_xlat */
	bool stub; /* MAP_X_STUB */
};
void rt_xlat(struct rt_tcb *t, uint64_t *gpr, uint64_t rip, uint64_t *rflags, struct rt_where *w);
uint64_t rt_rflags(uint64_t rflags, uint64_t lahf);
uint64_t rt_rflags_hook(const struct rt_tcb *t); /* the program's, in a hook's C code */
uint64_t rt_lahf(uint64_t rflags); /* the other way round: struct rt_regs.flags */
/* Where in the copy execution can go on with instruction vaddr: the offset and what to borrow. false: nowhere */
struct rt_spot {
	uint64_t copy_off;
	uint32_t off; /* what the log pointer is behind the stream's position */
	uint8_t r15_reg; /* holds the program's r15; its own value is in tcb.spill[spill]. 0xff: none */
	uint8_t spill;
	bool keeps; /* MAP_G_KEEPS: only for who was called by traced code */
};
bool rt_xlat_to(const struct rt_module *m, uint32_t vaddr, struct rt_spot *s);
uint32_t rt_patch_len(const struct map_patch *p); /* rt_apply.c: bytes of the original text */
bool rt_xlat_patched(const struct rt_module *m, uint32_t vaddr);

/* rt_sigframe.c: handlers within the trace */
struct rt_intr { /* where a signal found the thread */
	uint64_t gpr[16], rflags; /* the program's registers; the next instruction is w.rip */
	struct rt_where w;
	uint64_t raw[16], raw_rip, raw_flags; /* to go on with as if nothing had happened */
	bool lp_in_r15; /* of raw */
	uint64_t lp; /* log pointer; w.off bytes from there on are stored */
	uint64_t ip; /* where the processor was */
	uint64_t visit; /* struct run_signal */
};
uint32_t rt_frame_leave(struct rt_tcb *t, uint64_t *uc, uint64_t frame);
uint32_t rt_frame_enter(struct rt_tcb *t, int sig, uint64_t uc,
			const struct rt_intr *in); /* as rt_ring_room */
int rt_sigreturn(struct rt_tcb *t);
/* goes on at a ucontext's rip with its registers: what is needed to do so is put into it. Where nobody was
 * expected. false: it cannot be */
bool rt_enter(struct rt_tcb *t, uint64_t *uc);
bool rt_enter_called(struct rt_tcb *t, uint64_t *uc); /* whoever led there is traced, too */
void rt_enter_anyway(struct rt_tcb *t, uint64_t *uc); /* the log is thrown away */

/* rt_sig.c */
bool rt_sig_pause(struct rt_tcb *t, int sig,
		  uint64_t *uc); /* logged where t was; what it needs is put aside */
void rt_sig_unpause(struct rt_tcb *t, uint64_t *uc); /* uc: as it was, on its way back */
struct rt_go { /* what rt_signal() wants: */
	uint64_t handler; /* 0: sigreturn to what is in the ucontext. 1: into the program's handler */
	uint64_t traced; /* which is at tcb.target, mask in tcb.sv; else in rt_out */
};

/* rt_sigwhere.c: from the ucontext as the kernel filled it in */
extern const uint8_t
	rt_uc_word[16]; /* registers, hardware order, in a ucontext of eight-byte words; others: */
static inline bool within(uint64_t rip, const char *lo, const char *hi)
{
	return rip >= (uint64_t)lo && rip < (uint64_t)hi;
}
enum { MC_RIP = UC_RIP / 8, MC_EFLAGS = UC_EFLAGS / 8, MC_MASK = UC_SIGMASK / 8 };
struct rt_tcb *rt_sig_look(struct rt_tcb *t, const uint64_t *uc,
			   struct rt_intr *in); /* the TCB in force: rt_switch.c */
void rt_resume_where(struct rt_tcb *t, struct rt_intr *in); /* with the registers in t->sv, at tcb.resume */

/* rt_sigact.c */
int rt_sig_init(void);
void rt_sig_restore(struct rt_sigview *sig);
long rt_sig_action(struct rt_tcb *t, long sig, uint64_t act, uint64_t old, uint64_t size);
long rt_ksig(int sig, const struct rt_ksig *act, struct rt_ksig *old); /* the system call */
bool rt_sig_fault(int sig);
bool rt_sig_always(int sig, uint64_t handler);
void rt_sig_full(void);
struct rt_ksig
rt_sig_mine(int sig, const struct rt_ksig *like); /* what the kernel gets in place of the program's action */

/* rt_halt.c */
void rt_halt_others(const struct rt_tcb *t);
void rt_halt_born(const struct rt_tcb *t);
bool rt_halted(struct rt_tcb *t, int sig, const int *info, uint64_t *uc);

/* rt_init.c */
void rt_start(char **envp, const uint64_t *regs);

/* rt_record.c */
bool rt_record_alone(void); /* nobody else can write to the process's memory */
void rt_record_not(const char *why); /* in full from the start */
int rt_record_prepare(void); /* 0 or -errno */
void rt_record_start(struct rt_tcb *t);
int rt_record_before(struct rt_tcb *t);
int rt_record_call(struct rt_tcb *t, long r);
void rt_record_sigreturn(struct rt_tcb *t, const uint64_t *uc);
void rt_record_signal(struct rt_tcb *t, int sig, const void *info, uint32_t when); /* enum rec_when */
void rt_record_place(struct rt_tcb *t, const uint64_t *uc);
void rt_record_end(struct rt_tcb *t, uint32_t why, uint32_t value, uint64_t rip); /* enum rec_why */
void rt_nondet(struct rt_tcb *t);
int rt_transaction(struct rt_tcb *t); /* as rt_chunk_full() */
void rt_record_put(struct rt_tcb *t, const void *p, uint64_t n); /* a record, or part of one */

/* rt_recfile.c: files that a recorded program maps. NULL, or why a replay could not have what is in the memory */
const char *rt_recfile_map(struct rt_tcb *t, long r);
bool rt_recfile_at(uint64_t addr, uint64_t size); /* some of it is mapped from a file that is no module */
void rt_recfile_unmap(struct rt_tcb *t, uint64_t addr, uint64_t size);
bool rt_recfile_written(const struct rt_tcb *t, long r); /* by the program itself, while it is mapped */
void rt_recfile_end(struct rt_tcb *t);

/* rt_full.c: why the call that t is about to make, with these arguments, cannot be recorded for a replay; NULL */
const char *rt_full_before(const struct rt_tcb *t, const uint64_t *arg);

/* rt_switch.c; why: in a few words */
int rt_switch_here(struct rt_tcb *t, uint64_t rip, const char *why);
struct rt_tcb *rt_switch_signal(struct rt_tcb *t, uint64_t *uc);
void rt_switch_never(struct rt_tcb *t, const uint64_t *uc);

/* rt_replay.c */
int rt_replay_before(struct rt_tcb *t);
long rt_answer(struct rt_tcb *t);
void rt_replay_after(struct rt_tcb *t, long r);
void rt_replay_mask(uint64_t *mask);
/* rt_undo.c */
#define MSEAL_NR 462 /* Linux 6.10 */
enum rt_undo { RT_UNDO_NOT, RT_UNDO_DROP, RT_UNDO_SEAL, RT_UNDO_DISPATCH };
enum rt_undo rt_undoes(uint64_t nr, const uint64_t *arg);
long rt_undo_drop(const uint64_t *arg);

/* rt_tsc.c */
uint64_t rt_tsc(void);
bool rt_tsc_takes(uint64_t nr, const uint64_t *arg); /* the call takes it away from its thread */
void rt_tsc_taken(struct rt_tcb *t); /* it is about to be */
bool rt_tsc_there(void); /* false: some thread of this memory has none */
uint64_t rt_now(void); /* TSC; in a replay, of the recording */
/* a signal that comes there, if one does; mask: that is about to be in force */
bool rt_replay_signal(struct rt_tcb *t, uint32_t when, uint64_t *mask);
void rt_replay_diverged(const char *what, uint64_t rip) __attribute__((noreturn));
const struct rec_nondet *rt_replay_nondet(struct rt_tcb *t, uint32_t what);
void rt_replay_transaction(struct rt_tcb *t) __attribute__((noreturn));

void rt_replay_here(struct rt_tcb *t, const struct rt_intr *in) __attribute__((noreturn));

/* rt_vdso.c */
#define RT_VDSO_STUB 8 /* bytes that a function begins with now */
int rt_vdso_change(void);
const void *rt_vdso_file(void); /* its image as it is to be analysed */
void rt_vdso_signal(uint64_t rip);
void rt_vdso_back(void);

/* rt_clock.c */
void rt_clock_move(uint8_t *image, uint64_t size,
		   uint64_t at); /* of __vdso_clock_gettime, before it gets its stub */
/* Makes this call, whose arguments these are, without the kernel, if it is one for the time: *r its result */
bool rt_clock(const struct rt_tcb *t, const uint64_t *arg, long *r);
void rt_clock_called(const struct rt_tcb *t, long r, int class); /* after any call; class: rt_sysout() */

/* rt_hold.c */
void rt_hold_start(struct rt_tcb *t);
void rt_hold_never(struct rt_tcb *t);
void rt_hold_block(struct rt_tcb *t);
void rt_hold_give(struct rt_tcb *t);
void rt_hold_stack(struct rt_tcb *t, const uint64_t *stack);
void rt_hold_handler(int sig, uint64_t flags);

/* rt_reach.c */
extern uint64_t rt_reach_last;
void rt_reach_init(const uint8_t *rec, const uint8_t *end);
uint32_t rt_reach_in(const struct rt_module *m);
void rt_reach_module(const struct rt_module *m);
void rt_reach_record(const uint8_t *next);
bool rt_reach_possible(void); /* the place will be recognized */
uint64_t rt_reach_unlike(void); /* what kept it from being */
void rt_reach(struct rt_tcb *t, uint64_t rflags);

/* rt_hook.c */
extern const uint8_t rt_special[RT_NSYS];
extern uint8_t rt_slow_all; /* every call comes to rt_syscall() */
int rt_syscall(struct rt_tcb *t);
void rt_args(const struct rt_tcb *t, uint64_t *arg); /* the six of a call */
void rt_result(const struct rt_tcb *t, uint64_t *gpr, uint64_t r); /* registers after a call */
int rt_syscall_post(struct rt_tcb *t);
void rt_syscall_undo(struct rt_tcb *t, bool real); /* a call that will be made over again; real: RT_DO_REAL */

/* rt_seccomp.c: prctl or seccomp of the program; *done: made, with this result. An exec that must not be traced */
long rt_seccomp(const struct rt_tcb *t, bool *done);
void rt_exec_alone(struct rt_tcb *t);

/* rt_entry.S */
long rt_call(const uint64_t *gpr, uint64_t nr); /* a call of the program, executed for it */
void rt_park(struct rt_tcb *t) __attribute__((noreturn)); /* until the process ends, without its TCB */
void rt_pt_counter(uint32_t counter, uint32_t ptwrite); /* puts it into the thread's packets */
extern char rt_pt_branch[], rt_pt_ptw[];
extern char rt_clone_after[], rt_exit_after[], rt_call_after[];
extern char rt_full_entry[], rt_full_regs[], rt_full_saved[], rt_full_end[];
extern char rt_back_entry[], rt_back_rax[], rt_back_told[], rt_back_done[], rt_back_end[];
extern char rt_sys_early[], rt_sys_ready[], rt_sys_late[], rt_sys_late_end[];
extern char rt_sys_entry[], rt_sys_nr[], rt_sys_flags[], rt_sys_call[], rt_sys_after[], rt_sys_logged[],
	rt_sys_end[];
extern char rt_slow_entry[], rt_slow_saved[], rt_real_after[], rt_real_done[], rt_finish[], rt_finish_end[];
extern char rt_sig_open[], rt_sig_open_end[];
extern char rt_text_lo[], rt_text_hi[];
extern char rt_reach_all[], rt_reach_count[], rt_reach_memory[], rt_reach_regs[];
extern char rt_sig_entry[], rt_restorer[], rt_stack_top[];

#endif
