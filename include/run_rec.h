/* SPDX-License-Identifier: MIT
 *
 * run_rec.h - the record stream of an image that is replayed (PTRACE_CF=replay)
 *
 * What a single-threaded process cannot compute for itself: what the kernel said. The payloads of
 * thread-TID.log (struct run_chunk), one behind the other, are records; each begins with a rec_head, at a multiple
 * of eight bytes. ptrace-replay runs the program again, from start.bin on, and answers from them.
 *
 * Written by preload/rt_record.c, read by preload/rt_replay.c (through ptrace-replay).
 */
#ifndef PTRACE_RUN_REC_H
#define PTRACE_RUN_REC_H

#include <cpuid.h>
#include <stdint.h>

enum rec_kind {
	REC_CALL = 1, /* struct rec_call: a system call came back */
	REC_FILE, /* struct rec_file: the file that the next REC_CALL, an mmap, mapped */
	REC_NONDET, /* struct rec_nondet: an instruction whose result nobody can know */
	REC_SIGNAL, /* struct rec_signal: a handler is entered */
	REC_XSTATE, /* struct rec_xstate: behind the first record; not where the processor has no XSAVE */
	REC_END, /* struct rec_end: the last one. A stream without one was cut: its process was killed */
	REC_CPU, /* struct rec_cpu: behind the first record */
	REC_BYTES, /* struct rec_bytes: what the next REC_CALL, an mmap, mapped */
	REC_CHANGED, /* struct rec_file: this file changed while it was mapped, by somebody else's doing */
	REC_PLACE, /* struct rec_place: before a REC_END, which is not at a system call then */
};

static inline uint64_t rec_padded(uint64_t n)
{
	return (n + 7) & ~7ull;
}

struct rec_head {
	uint32_t kind; /* enum rec_kind */
	uint32_t size; /* of the record with all that belongs to it, bytes, a multiple of 8 */
};

/* Behind it nout times struct rec_out and its bytes, padded to eight: what the kernel wrote, in this order. */
struct rec_call {
	struct rec_head head;
	uint32_t nr, nout;
	int64_t ret; /* rax */
	uint64_t rip; /* original address of the next instruction */
	uint64_t arg[6]; /* rdi rsi rdx r10 r8 r9: the replay's are the same, or it has gone wrong */
	uint64_t before, tsc; /* TSC, before and after */
	uint64_t r11; /* flags as they were before, which are dead there: copies may leave others */
};
struct rec_out {
	uint64_t addr, len;
};

/* The path follows, NUL-terminated, padded to eight. */
struct rec_file {
	struct rec_head head;
	uint64_t dev, ino, size; /* stat(2) */
	int64_t mtime_sec, mtime_nsec;
};

/* The bytes follow, padded to eight: of the mapping's beginning; what is behind them, to its end, is zero. */
struct rec_bytes {
	struct rec_head head;
	uint64_t len;
};

/* What the program found the processor to be, before the start mostly (ifunc resolvers): one that replays it has all of
 * that, and the same state components. */
#define REC_CPU_WORDS 10
#define REC_CPU_7_EDX 0x03c0413cu /* its instructions; the others are for the kernel */
struct rec_cpu {
	struct rec_head head;
	uint64_t xcr0; /* XGETBV(0), 0 without XSAVE */
	uint32_t has[REC_CPU_WORDS]; /* CPUID's bits of features, by rec_cpu_get() */
};

/* what: tcb.what (run.h) */
struct rec_nondet {
	struct rec_head head;
	uint32_t what, flags; /* flags: CF of rdrand and rdseed */
	uint64_t rip; /* original address of the next instruction */
	uint64_t value[4]; /* rax rbx rcx rdx behind it */
};

/* Where the program was: all the places that are known without counting instructions. A fault is no record: the replay comes
 * to it by itself. */
enum rec_when {
	REC_AFTER_CALL, /* at the end of the call before */
	REC_BEFORE_CALL, /* the next call was about to be made */
	REC_AT_SIGRETURN, /* the call before is a sigreturn, which let it in: where that leads to */
	REC_AT_HANDLER, /* at the first instruction of the handler that is entered */
};
struct rec_signal {
	struct rec_head head;
	uint32_t signo, when; /* enum rec_when */
	uint8_t info[128]; /* siginfo_t */
};

/* SDM Vol. 2, CPUID: leaves 1, 7.0, 7.1, 0DH.1 and 80000001H */
static inline void rec_cpu_get(struct rec_cpu *c)
{
	uint32_t a, b, cx, d, lo, hi, max = __get_cpuid_max(0, 0);

	__cpuid(1, a, b, cx, d);
	c->has[0] = cx & ~(1u << 31); /* under a hypervisor */
	c->has[1] = d;
	c->xcr0 = 0;
	if (cx & bit_OSXSAVE) {
		__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
		c->xcr0 = (uint64_t)hi << 32 | lo;
	}
	c->has[2] = c->has[3] = c->has[4] = c->has[5] = c->has[6] = c->has[7] = 0;
	if (max >= 7) {
		__cpuid_count(7, 0, a, c->has[2], c->has[3], c->has[4]);
		c->has[4] &= REC_CPU_7_EDX;
		if (a >= 1)
			__cpuid_count(7, 1, c->has[5], b, cx, c->has[6]);
	}
	if (max >= 0xd)
		__cpuid_count(0xd, 1, c->has[7], b, cx, d);
	__cpuid(0x80000001, a, b, c->has[8], c->has[9]);
}

/* x87, SSE and AVX state at the start: values that nobody may rely on, but a program can see which registers are in use
 * (XSAVEC, XGETBV(1)). An area as XSAVE writes it, with these components (SDM Vol. 1, 13.4). */
#define REC_XSTATE_MASK 0xe7u
struct rec_xstate {
	struct rec_head head;
	uint8_t area[4096]; /* what none of them needs is zero */
};

/* Where the program was when a signal came that the recording could not go on from: between two system calls. What it is
 * compared with besides, if it is there, is the memory at that time: place.bin of this image (a process that was killed), else
 * start.bin of the next one. */
struct rec_place {
	struct rec_head head;
	uint64_t rip,
		rflags; /* original address of the next instruction; of a string instruction, maybe half done */
	uint64_t gpr[16]; /* hardware order */
	struct {
		uint64_t lo, hi;
	} skip[3]; /* memory that is not the program's: the signal's frame, the runtime's own data, the rseq area, which
	              is registered again before memory is written down */
	uint64_t nsec; /* CPU time of the process since it began */
	uint8_t area[4096]; /* vector registers, as in rec_xstate; what the frame does not have is zero */
};

enum rec_why {
	REC_EXIT = 1, /* exit_group(value) */
	REC_EXEC, /* execve went well, or so it seemed: the image PID.N + 1 has what follows */
	/* image PID.N + 1 goes on, recorded in full. value is REC_SOMEWHERE when that is not at a system call, but at
	 * the REC_PLACE before */
	REC_SWITCH,
	REC_KILLED, /* signal number `value`, whose action is the default one, ended it: at the REC_PLACE before, or within the
	             * call before, or, if that is elsewhere, before the call at rip */
	REC_STOP, /* recording ended before the call at rip: value is enum run_stop */
	REC_FAULT, /* the instruction that it was about to execute ended it, by signal value */
};
enum { REC_SOMEWHERE = 1 };
struct rec_end {
	struct rec_head head;
	uint32_t why, value;
	uint64_t rip; /* where: original address of the next instruction */
};

#endif
