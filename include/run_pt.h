/* SPDX-License-Identifier: MIT
 *
 * run_pt.h - Intel PT in the run directory: a thread's packet stream, and what it takes to decode it
 *
 *   proc-PID.N/pt-TID.bin     struct run_pt_info, then struct run_pt_rec + payload, repeated. A tid that names several
 *                             threads of a process, one after the other: pt-TID.1.bin …, as thread-TID.1.log
 *   maps/KEY.text             the executable bytes of a module's file, at their file offsets (the rest are holes), with
 *                             its ELF header and program headers: what was not relocated runs from there. Of every module
 *                             in modules.bin that has a key, libptrace_rt.so among them
 *
 * The payloads of RUN_PT_DATA records, put together, are what the hardware wrote for the thread. Between two of them
 * nothing is missing unless the second one says RUN_PT_GAP: its first packets are of no use then, up to the first PSB
 * (an event that is enabled once more goes on without one: pt_config in arch/x86/events/intel/pt.c). Within the bytes the
 * hardware's own OVF packets tell what it lost.
 *
 * Written by ptrace-collect, append-only, valid up to the last complete record at any moment. All numbers are little
 * endian. TSC values are the processor's, as in the packets (SDM Vol. 3, "Intel Processor Trace", TSC packet; 56 bits
 * there).
 */
#ifndef PTRACE_RUN_PT_H
#define PTRACE_RUN_PT_H

#include <stdint.h>

#define RUN_PT_MAGIC 0x3054505450545054ull
#define RUN_PT_VERSION 2

/* What is in the stream: run_pt_info.flags */
enum {
	RUN_PT_TSC = 1, /* TSC packets */
	RUN_PT_MTC = 2, /* MTC and TMA packets */
	RUN_PT_CYC = 4, /* CYC packets */
	RUN_PT_PTW = 8, /* PTWRITE packets, each with the address of its instruction (FupOnPTW) */
	RUN_PT_RETC = 16, /* returns may be compressed (DisRETC is 0) */
};

/* How the counter of a keyframe (struct run_key in run.h) gets into the stream: run_pt_info.counter */
enum {
	/* by 32 conditional branches, one for each bit, the most significant one first; taken means 1. Branch i is at
	 * counter_branch + i * counter_stride. Not taken it goes to a nop, taken to what is behind that */
	RUN_PT_BRANCHES = 1,
	RUN_PT_PTWRITE = 2, /* by the 32-bit ptwrite at counter_ptw */
};
#define RUN_PT_COUNTER_BITS 32

struct run_pt_info {
	uint64_t magic; /* RUN_PT_MAGIC */
	uint32_t version, size; /* RUN_PT_VERSION; bytes of this struct, where the records begin */
	uint32_t pid, tid;
	/* the processor, as CPUID gives it (SDM Vol. 2): leaf 0 and 1; family and model with the extended ones added */
	char vendor[12];
	uint16_t family;
	uint8_t model, stepping;
	/* CPUID.15H: EBX/EAX is TSC to crystal clock, ECX the crystal's Hz; CPUID.16H: EAX base MHz. 0: not told */
	uint32_t tsc_ratio_eax, tsc_ratio_ebx, crystal_hz, base_mhz;
	uint32_t
		nom_freq; /* maximum non-turbo ratio, what CBR packets are relative to (in 100 MHz); 0: not known */
	/* perf's clock from a TSC (struct perf_event_mmap_page, linux/perf_event.h); time_mult is 0 where not told */
	uint32_t time_mult;
	uint64_t time_zero;
	uint16_t time_shift;
	/* as opened: the exponents that IA32_RTIT_CTL has (SDM Vol. 3, "IA32_RTIT_CTL MSR") */
	uint8_t mtc_freq, cyc_thresh, psb_freq;
	uint8_t counter; /* RUN_PT_BRANCHES or RUN_PT_PTWRITE */
	uint8_t counter_stride;
	uint8_t zero;
	uint32_t flags; /* RUN_PT_TSC … */
	uint32_t pmu_type; /* perf_event_attr.type */
	uint64_t config; /* perf_event_attr.config, in the layout of that machine's format directory */
	uint64_t aux_size, ring_size; /* of the buffers, bytes */
	uint64_t counter_branch, counter_ptw; /* run-time addresses, see above */
	uint64_t rt_base; /* run-time address of libptrace_rt.so's first byte */
	uint64_t xxh3; /* XXH3_64bits of the struct before this field */
};
_Static_assert(sizeof(struct run_pt_info) == 144, "on-disk format");

#define RUN_PT_REC_MAGIC 0x52545050u

enum run_pt_kind {
	RUN_PT_DATA = 1, /* payload: packets */
	RUN_PT_LOST = 2, /* value: so many perf records were dropped, which may have told of losses */
	RUN_PT_ITRACE_START = 3, /* value: pid << 32 | tid, as the kernel said it: tracing began */
	RUN_PT_OPEN_FAILED = 4, /* value: errno. There is no data: this thread's control flow is not known */
	RUN_PT_END = 5, /* value: enum run_pt_end. Nothing follows */
	RUN_PT_RING_LOST = 6, /* the perf ring overflowed between these records */
};

enum run_pt_end {
	RUN_PT_END_THREAD = 1, /* drained after the thread had ended, or had executed another program */
	RUN_PT_END_STOPPED = 2, /* the trace was ended before the thread was */
	RUN_PT_END_WRITE = 3, /* it could not be written any more (a full disk) */
};

/* of RUN_PT_DATA, about the bytes of the record. The low ones are perf's: PERF_AUX_FLAG_* in linux/perf_event.h,
 * whose bits from 8 on are a PMU's own format (PERF_AUX_FLAG_PMU_FORMAT_TYPE_MASK), are not kept, and mean something else here */
enum {
	RUN_PT_F_TRUNCATED = 1, /* behind these bytes some were lost: the buffer was full */
	RUN_PT_F_PARTIAL = 4, /* they have gaps that the hardware did not tell of */
	RUN_PT_F_COLLISION = 8, /* the tracing was disturbed by another user of the hardware */
	RUN_PT_GAP =
		0x100, /* something may be missing before these bytes: decoding starts anew at their first PSB */
	RUN_PT_F_LZ4 = 0x200, /* the payload is an LZ4 block */
	RUN_PT_F_ZSTD = 0x400, /* a zstd frame */
};

#define RUN_PT_BLOCK (1u << 20)

struct run_pt_rec {
	uint32_t magic; /* RUN_PT_REC_MAGIC */
	uint16_t kind; /* enum run_pt_kind */
	uint16_t flags;
	uint32_t size; /* payload bytes that follow */
	uint32_t raw; /* compressed: what they are uncompressed, RUN_PT_BLOCK at most; else 0 */
	uint64_t value;
	uint64_t
		offset; /* RUN_PT_DATA: of the first byte in the thread's stream, counted by the kernel (aux_head) */
	uint64_t tsc; /* when it was taken from the buffer; none of its bytes is of later */
	uint64_t
		xxh3; /* XXH3_64bits of the struct before this field, XOR that of the payload if there is one */
};
_Static_assert(sizeof(struct run_pt_rec) == 48, "on-disk format");

#endif
