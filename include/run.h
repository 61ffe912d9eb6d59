/* SPDX-License-Identifier: MIT
 *
 * run.h - the run directory, the log streams, and the memory shared by the traced process
 * and ptrace-collect
 *
 *   run.dir/
 *     run.json                 the run: version, command, environment, machine, modes, state
 *     maps/KEY.ptmap           every map used (hard link or copy)
 *     proc-PID.N/              one per process image (N counts execs, from 0)
 *       proc.json              command, start/stop, completeness, reason of a stop
 *       start.bin              start state (struct run_start …)
 *       place.bin              as that: where a recording for a replay was killed (run_rec.h)
 *       modules.bin            struct run_module records, appended as modules come and go
 *       thread-TID.log         stream of one thread (struct run_chunk + payload, repeated)
 *       threads.log            those of threads that are one chunk from beginning to end, one behind the other
 *       pt-TID.bin             its Intel PT packets, where those tell the control flow (run_pt.h)
 *
 * Every file is append-only and valid up to its last complete record at any moment.
 */
#ifndef PTRACE_RUN_H
#define PTRACE_RUN_H

#include <stdint.h>

#define RUN_VERSION 18

/* ---- stream: marks -------------------------------------------------------------------
 *
 * The stream has no tags on the hot path: SEM_LOG ops of the map say what comes next. Where
 * control may have come from opaque code a mark follows. The low 3 bits of a mark's first
 * byte are its kind. RET and LINK are one byte. ENTRY, ENTRYX and RESYNC are three: kind | id << 3, the id being
 * the module's site_base + the site's number (struct map_site). The copy stores them as four, the next
 * log overwrites the last, so an id is below RUN_MARK_IDS; the runtime leaves a module opaque that would
 * need others, and gives the ids of modules that were unloaded to later ones. SYSCALL and EVENT, which
 * the runtime writes, are four bytes: kind | id << 3.
 */
enum run_mark {
	RUN_MARK_RET = 1, /* 1 byte: kind | check << 3; check = low 5 bits of the block's number,
	                         as in SEM_RMARK.imm. A return in traced code led here; where it did not, RUN_EV_BACK
	                         stands before it */
	RUN_MARK_ENTRY = 2, /* group entered with rsp as the last instrumented call left it */
	RUN_MARK_ENTRYX = 3, /* entered otherwise (callback, handler): + 8 bytes rsp */
	RUN_MARK_RESYNC = 4, /* landing pad / returns-twice site: + 8 bytes rsp */
	RUN_MARK_SYSCALL = 5, /* id = system call number; + 8 bytes result (rax) */
	RUN_MARK_EVENT = 6, /* id = enum run_event; + 8 bytes argument. May stand before any other
	                         mark at a place where a mark is expected */
	RUN_MARK_LINK = 7, /* 1 byte, alone: a jump through a slot led to the group that the map names for
	                        it (SEM_JMPX_LINK), whose direct entry is next. No other mark follows */
};
#define RUN_MARK_ID_SHIFT 3
#define RUN_MARK_IDS (1u << (24 - RUN_MARK_ID_SHIFT)) /* of sites: this many */
#define RUN_MARK_SITE_BYTES 3
#define RUN_MARK_KIND(byte) ((byte)&7)

enum run_event {
	RUN_EV_MODULE = 1, /* argument = index of a record in modules.bin that is valid from here on */
	RUN_EV_EXIT = 2, /* exit_group(argument): end of the stream */
	RUN_EV_STOP = 3, /* clean stop; argument = enum run_stop; end of the stream. For a stop by a
	                       signal the interrupted position is in proc.json / struct run_stop_state */
	RUN_EV_EXEC =
		4, /* execve about to be tried. Argument != 0: the end of a replay, whose process goes on as
	                       its next image at that address: the system call that is due, or behind it, or, with a SIGNAL
	                       just before, where that came */
	RUN_EV_UNEXPECTED = 5, /* int3 hit: argument = run-time address that was entered */
	RUN_EV_START = 6, /* first in the stream of every thread but the first of an exec'd image; argument =
	                       bytes that follow: struct run_thread_start and stack_size bytes of stack */
	RUN_EV_SIGNAL = 7, /* a handler is entered; argument = sizeof(struct run_signal), which follows */
	RUN_EV_SIGRET = 8, /* argument = run_signal.frame: back to where that signal interrupted, nothing
	                       changed. What its cut (struct run_cut) covers comes once more */
	/* control goes on at some instruction of traced code with new registers; argument = sizeof(struct
	 * run_resume), which follows. The next log is of that instruction */
	RUN_EV_RESUME = 9,
	/* argument = TSC. Before a system call that may wait, and behind it (both stand before its mark): what comes
	 * before is not later, what comes after is not earlier */
	RUN_EV_TIME = 10,
	/* Before a RET mark: it is not a ret of traced code that led to the return site. Code that is not traced came back, on
	 * whatever stack, with whatever registers. Argument = sizeof(struct run_back), which follows */
	RUN_EV_BACK = 11,
	/* argument = the fs base from here on, arch_prctl(ARCH_SET_FS). Before the system call's mark */
	RUN_EV_FSBASE = 12,
};

/* What the first instruction of a thread finds: it is the one behind the system call that made the thread.
 * tcb.expect is 0 then: no call of this thread is under way. */
struct run_thread_start {
	uint64_t rip, rflags, fsbase, gsbase;
	uint64_t gpr[16]; /* hardware order */
	uint64_t tsc;
	uint32_t flags; /* RUN_START_* */
	uint32_t modules; /* records of modules.bin in effect: those below this index */
	/* address and number of bytes that follow: the callers' frames. 0 when the thread has a stack of its own */
	uint64_t stack, stack_size;
};
enum {
	RUN_START_FORK = 1, /* a process with memory of its own */
	RUN_START_VFORK = 2, /* a process in its parent's memory, which waits */
	RUN_START_VM = 4, /* a process in its parent's memory, which does not wait */
};

/* Where a signal interrupted. `where` is enum run_stop_where: in RUN_STOP_IN_HOOK the event stands where the
 * system call's mark would, else the chunk has a cut for it. */
struct run_signal {
	uint32_t signo;
	uint16_t where, ahead; /* ahead: where is RUN_STOP_IN_COPY: map_xlat.ahead, bytes of the stream that
	                       instruction rip has logged already, whatever r15 holds; else 0 */
	uint64_t frame; /* address of the handler's struct ucontext: names this signal in RUN_EV_SIGRET */
	uint64_t rip, rflags; /* next instruction (original address), the program's flags */
	uint64_t
		ip; /* where the processor was: in the copy, the original text, the runtime. What a recording of
	                control flow has */
	uint64_t gpr[16]; /* the program's registers */
	uint64_t
		visit; /* the thread is about to execute rip for the visit-th time since the last byte of the stream before
	                   the `ahead` ones was logged. 0: not known */
	/* the stack from RUN_SIGNAL_BELOW bytes below rsp (the red zone) on; so many of its bytes are known */
	uint64_t nstack;
	uint8_t stack[512];
};
#define RUN_SIGNAL_BELOW 128
/* Where control goes on: right before what the copy of instruction rip does and logs. What stands between it and the
 * instruction before has an address map entry for rip, too, and is passed over: logs of that one, and at a
 * block's start the logs there. The address map says where that is: MAP_X_START. */
struct run_resume {
	uint64_t frame; /* of the signal that ends, 0 if none does */
	uint64_t rip, rflags;
	uint64_t gpr[16];
	uint64_t stack,
		stack_size; /* address and number of bytes that follow: of a stack whose frames the stream
	                       does not tell, from below rsp on up. 0 where rsp is that of the signal that ends */
};

struct run_back {
	uint64_t copy; /* run-time address in the copy: of the return site's stub */
	uint64_t rsp, saved[6]; /* the program's; rbx, rbp, r12 to r15 */
};
_Static_assert(sizeof(struct run_back) == 64, "rt_entry.S writes it");

/* A keyframe: what a walk that has lost its way needs to start from here. Only where Intel PT tells the control flow. It
 * stands at a chunk's beginning and is no part of the stream (run_chunk.key). The thread is in the chunk-full hook,
 * which goes on at `copy`: no log of what comes next is stored yet, nothing of what came before is missing. Right
 * after this is written the counter is put into the PT stream, as run_pt_info.counter says: what the stream has
 * behind it is control flow behind this place. */
struct run_key {
	uint32_t counter; /* 1, 2, 3 … of this thread */
	uint32_t modules; /* records of modules.bin in effect: those below this index */
	uint64_t rip, rflags; /* the program's: original address of the next instruction */
	uint64_t copy; /* run-time address of the place in the copy */
	uint64_t gpr[16]; /* the program's registers, hardware order */
	uint64_t fsbase;
	uint64_t expect; /* tcb.expect */
	uint64_t tsc;
	uint64_t stack,
		stack_size; /* address and number of bytes that follow: the red zone below rsp and the callers' frames, at most
	                       RUN_KEY_STACK */
};
_Static_assert(sizeof(struct run_key) == 200, "on-disk format");
#define RUN_KEY_STACK (64u << 10)

/* Where in a chunk a signal interrupted copied code. The region that was interrupted had stored the `bytes` bytes
 * from `at` on, without having moved its log pointer past `at`; behind them RUN_EV_SIGNAL stands. When the
 * handler returns (RUN_EV_SIGRET), the same bytes stand once more and the region goes on behind them. An
 * array of these, ascending, follows the stream's bytes in a chunk's payload. */
struct run_cut {
	uint32_t at, bytes;
};

enum run_stop {
	RUN_STOP_NONE,
	RUN_STOP_THREAD,
	RUN_STOP_FORK_CHILD,
	RUN_STOP_SIGNAL,
	RUN_STOP_SPACE,
	RUN_STOP_COLLECTOR,
	RUN_STOP_UNSUPPORTED,
	RUN_STOP_GS,
	RUN_STOP_UNEXPECTED, /* an int3 of ours was entered */
	RUN_STOP_ROOM /* more processes, threads than the ring has room for */
};
/* their names in run.json and proc.json, "stop_reason" */
#define RUN_STOP_NAMES                                                                                       \
	{                                                                                                    \
		"none", "thread", "fork-child", "signal", "space", "collector", "unsupported", "gs",         \
			"unexpected", "room"                                                                 \
	}

/* ---- stream: chunks on disk ----------------------------------------------------------- */

#define RUN_CHUNK_MAGIC 0x4b435450u /* "PTCK" */
struct run_chunk {
	uint32_t magic;
	uint16_t version;
	uint8_t codec; /* 0 stored, 1 LZ4 block, 2 zstd frame */
	uint8_t kind; /* 0 main, 1 last chunk of the stream (clean end), 2 salvaged: read from a dead
	                       process as far as the thread is known to have stored it */
	uint32_t pid, tid;
	uint64_t seq; /* 0, 1, 2, … per stream */
	uint64_t first; /* stream position of the first payload byte */
	uint32_t raw_size, disk_size; /* payload bytes before and after compression */
	uint64_t tsc_open, tsc_close;
	uint64_t xxh3; /* XXH3_64bits of the payload as stored on disk */
	uint32_t ncut; /* the payload ends with so many struct run_cut; raw_size counts them */
	uint32_t
		key; /* it begins with so many bytes that are no part of the stream: struct run_key and its stack, or
	                none. `first` is the position of the byte behind them; run_cut.at counts from the payload's
	                beginning */
};
_Static_assert(sizeof(struct run_chunk) == 72, "on-disk format");

/* ---- start.bin ------------------------------------------------------------------------ */

#define RUN_START_MAGIC 0x5453545054505430ull
struct run_start {
	uint64_t magic;
	uint32_t version;
	uint32_t
		nregions; /* struct run_region follow, their names, then (page aligned) their bytes in order */
	uint32_t pid, tid;
	uint64_t rip, rflags, fsbase, gsbase; /* rip: first instruction executed traced (original address) */
	uint64_t gpr[16]; /* hardware order */
	uint64_t xcr0; /* XGETBV(0): which state xsave areas hold */
	uint32_t xsave_size, xsavec_size; /* CPUID.0DH for XCR0: EBX of sub-leaf 0, of sub-leaf 1 */
	uint64_t stack_lo, stack_hi; /* the initial stack's mapping */
	uint64_t tsc;
	uint32_t xsave_comp[2][64]; /* CPUID.0DH sub-leaf i: [0] size, [1] offset, for i >= 2 */
	uint64_t stack_limit; /* RLIMIT_STACK, bytes, ~0 none: how far the stack may grow */
	uint32_t names; /* bytes of names behind the regions table: NUL-terminated, the first one empty */
	uint32_t
		replay; /* 1: the thread's log is a record stream (run_rec.h), the trace comes from a replay */
	uint64_t xxh3; /* of this struct before the field and, right behind it, the regions table and names */
};
struct run_region {
	uint64_t addr, size;
	uint32_t prot; /* PROT_*, | RUN_REGION_DUMPED when its bytes follow, | RUN_REGION_ZERO: none do */
	uint32_t
		path; /* name of what is mapped, "[stack]" etc., too: where it begins in the names. 0: none */
	uint64_t file_off; /* of its bytes in start.bin; not dumped: in the file that is mapped */
};
/* every writable private mapping is; of an image that is to be replayed, all that is in no file as it is here */
#define RUN_REGION_DUMPED 0x100u
/* It would be dumped, but all its bytes are zero: memory that nobody has touched. A mapping may be split for that. */
#define RUN_REGION_ZERO 0x200u

/* ---- modules.bin ---------------------------------------------------------------------- */

#define RUN_MODULE_MAGIC 0x4d4f4454u
struct run_module {
	uint32_t magic;
	uint32_t size; /* of this record, bytes, with path, multiple of 8 */
	uint32_t index; /* 0, 1, 2 … : what RUN_EV_MODULE names */
	uint32_t kind; /* 0 unloaded, 1 loaded and traced, 2 loaded, opaque */
	uint64_t bias; /* run-time address = bias + vaddr */
	uint64_t copy_base; /* where the copy text is, 0 if opaque */
	uint64_t lo, hi; /* span at run time */
	uint32_t site_base; /* first mark id */
	uint32_t reason; /* enum run_module_reason when opaque */
	uint8_t key[32]; /* as in struct map_head */
	uint32_t key_len, path_len; /* path follows, NUL-terminated */
	uint32_t
		map_flags; /* MAP_F_* of the map used: with MAP_F_PTW it is maps/KEY-w.ptmap, else with MAP_F_PT maps/KEY-p.ptmap, else
				maps/KEY.ptmap */
	uint32_t zero;
	uint64_t xxh3; /* of the record with this field zero */
	/* char path[] */
};
enum run_module_reason {
	RUN_MOD_OK,
	RUN_MOD_SELF,
	RUN_MOD_NO_MAP,
	RUN_MOD_NO_ROOM,
	RUN_MOD_TEXTREL,
	RUN_MOD_MISMATCH,
	RUN_MOD_REFUSED,
	RUN_MOD_NOTHING /* recorded for a replay: no system calls in it */
};

/* ---- stop.bin -------------------------------------------------------------------------
 *
 * Where a clean stop ended the trace. Synchronous stops end the stream with RUN_EV_STOP. A stop
 * by a signal (async = 1) has no mark: the last chunk goes on after lp_pos with the `bytes` bytes that the
 * interrupted region had stored at its static offsets (and garbage behind them). The walk ends at the
 * end of those, when it is about to execute original instruction `rip` with these registers.
 */
#define RUN_STOP_MAGIC 0x504f545354505450ull
struct run_stop_state {
	uint64_t magic;
	uint32_t version;
	uint32_t reason; /* enum run_stop */
	uint16_t async;
	uint16_t bytes; /* of the stream stored from lp_pos on, in RUN_STOP_IN_COPY: map_xlat.off */
	uint32_t signo; /* RUN_STOP_SIGNAL: which; else 0 */
	uint32_t tid, zero; /* the thread whose stream it is about */
	uint64_t lp_pos; /* stream position of the log pointer */
	uint64_t rip; /* original address of the next instruction (run time) */
	uint16_t where; /* enum run_stop_where */
	uint16_t ahead; /* as in struct run_signal */
	uint32_t module; /* index in modules.bin when where is RUN_STOP_IN_COPY, else ~0 */
	uint64_t copy_off; /* interrupted copy offset when where is RUN_STOP_IN_COPY */
	uint64_t ip; /* as in struct run_signal; 0 if no signal came */
	uint64_t rflags;
	uint64_t gpr[16]; /* the program's registers, hardware order */
};
enum run_stop_where {
	RUN_STOP_IN_COPY, /* at an instruction of the copy */
	RUN_STOP_IN_TEXT, /* in opaque code or at a call of the original text: the walk ends where it
	                        next needs a mark or that call's callee */
	RUN_STOP_IN_HOOK, /* at a system call: before its mark */
};

/* ---- the thread control block, reached through %gs -------------------------------------
 *
 * Offsets are used by the emitted code: a change is a change of MAP_VERSION.
 */
struct tcb {
	uint64_t lp; /* 0x00 log pointer while r15 is given back */
	uint64_t r15; /* 0x08 the program's r15 while r15 is the log pointer */
	uint64_t
		expect; /* 0x10 rsp that the callee of the last instrumented call sees at entry. Behind a return: one more
	                        than the address of the return address (ret n: n + 1 more) */
	uint64_t spill[2]; /* 0x18 0x20 borrowed registers */
	uint64_t flags; /* 0x28 rax while flags are saved around a space check */
	uint64_t resume; /* 0x30 copy address to go on at after the slow path */
	uint64_t target; /* 0x38 target of an indirect jump through memory */
	uint64_t chunk_full; /* 0x40 rt entry: next chunk. Jumped to with tcb.resume set and r15 = log
	                        pointer, all other registers and flags the program's; comes
	                        back to tcb.resume with r15 = new log pointer, all else kept */
	uint64_t syscall; /* 0x48 rt entry: jumped to in place of `syscall` with r15 = log pointer,
	                        tcb.resume set, tcb.target = original address of the next instruction;
	                        executes it as the kernel would (rcx = tcb.target, r11 = RFLAGS),
	                        writes the mark, comes back to tcb.resume with r15 = log pointer */
	uint64_t self; /* 0x50 linear address of this block */
	uint64_t
		back; /* 0x58 rt entry: jumped to at a return site that no return of traced code leads to, with tcb.resume set,
	                        r15 free, all other registers and flags the program's; writes RUN_EV_BACK, comes back to
	                        tcb.resume with r15 = log pointer, all else kept */
	uint64_t rt_stack; /* 0x60 top of the runtime's own stack for this thread */
	uint64_t
		nondet; /* 0x68 rt entry: jumped to in place of an instruction whose result a replay must be told
	                       (MAP_F_NONDET), with r15 = log pointer, tcb.resume set, tcb.what saying which;
	                       comes back to tcb.resume with the registers it sets, all else kept */
	uint64_t
		what; /* 0x70 enum nondet | register << 8 | operand size << 16 | length of the instruction << 24 */
	uint64_t
		limit; /* 0x78 copies for Intel PT: full is a log pointer that is not below this. Where the chunk's bit comes on,
	                       or 0: ptrace-collect wants a keyframe */
	uint64_t place; /* 0x80 where the copy jumps to at its MAP_PLACE (map.h), if it has one */
	/* 0x88: the runtime's own */
};
_Static_assert(sizeof(struct tcb) == 0x88, "offsets are compiled into maps");
enum {
	TCB_LP = 0,
	TCB_R15 = 8,
	TCB_EXPECT = 0x10,
	TCB_SPILL0 = 0x18,
	TCB_SPILL1 = 0x20,
	TCB_FLAGS = 0x28,
	TCB_RESUME = 0x30,
	TCB_TARGET = 0x38,
	TCB_CHUNK_FULL = 0x40,
	TCB_SYSCALL = 0x48,
	TCB_BACK = 0x58,
	TCB_NONDET = 0x68,
	TCB_WHAT = 0x70,
	TCB_LIMIT = 0x78,
	TCB_PLACE = 0x80
};

/* What tcb.what names */
enum nondet {
	NONDET_RDTSC = 1,
	NONDET_RDTSCP,
	NONDET_CPUID,
	NONDET_XGETBV,
	NONDET_RDRAND,
	NONDET_RDSEED,
	NONDET_RDPID,
	NONDET_XBEGIN /* not executed: recording in full begins here. tcb.resume leads here, too, tcb.target is its address */
};

/* ---- log chunks in memory --------------------------------------------------------------
 *
 * A chunk is RUN_CHUNK_SPAN bytes of address space, aligned to it. The log pointer
 * starts at its base. When bit RUN_CHUNK_FULL_BIT of r15 is set the chunk is full: emitted
 * code tests it (or compares with tcb.limit) at group entries, return sites and loop heads, and writes at most
 * RUN_CHUNK_SLACK bytes between two tests on any path.
 */
#define RUN_CHUNK_SIZE (1u << 20)
#define RUN_CHUNK_FULL_BIT 20
#define RUN_CHUNK_SLACK (1u << 16)
#define RUN_CHUNK_SPAN (2u << 20)

#endif
