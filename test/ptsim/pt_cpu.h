/* SPDX-License-Identifier: MIT
 *
 * pt_cpu.h - when a processor sends which Intel PT packet
 *
 * One struct pt_cpu is the trace unit as one traced thread sees it (an event with pid = thread, cpu = -1). It is
 * told what was executed, in order, and writes packets. exclude_kernel is assumed: the thread is
 * traced in user mode only (IA32_RTIT_CTL.User = 1, OS = 0), so ContextEn falls at every entry into the kernel.
 *
 *	pt_cpu_on()             the kernel schedules the event in: TraceEn 0 -> 1
 *	  pt_cpu_user(ip)       control arrives in user mode at ip: TIP.PGE
 *	    pt_cpu_jcc, _ret, …   one call for each instruction retired
 *	  pt_cpu_sync_exit()    a system call: TIP.PGD
 *	  pt_cpu_async_exit(ip) interrupt or fault before the instruction at ip: FUP, TIP.PGD
 *	pt_cpu_off()            TraceEn 1 -> 0
 */
#ifndef PT_CPU_H
#define PT_CPU_H

#include "pt_enc.h"

#define PT_CALLS 64 /* RET targets a decoder is to keep (SDM, "Indirect Transfer Compression for Returns") */

struct pt_cpu_config {
	bool tsc, mtc, cyc, ptw, fup_on_ptw;
	bool no_retc; /* DisRETC */
	bool defer; /* TIPs wait for their TNT to fill ("Deferred TIPs", which a processor may do) */
	bool long_tnt; /* else six branches at a time at most */
	bool no_48; /* IPBytes 4 is not used */
	unsigned psb_period; /* bytes of output */
	unsigned mtc_period; /* an MTC every 2^n ticks of the crystal clock */
	unsigned cyc_thresh; /* cycles; a CYC not before so many */
	uint32_t tsc_ratio_n, tsc_ratio_d; /* TSC ticks = crystal ticks * n / d (CPUID.15H:EBX / EAX) */
	uint8_t bus_ratio; /* core : bus (CBR); CYC counts the core's cycles */
	uint8_t tsc_bus_ratio; /* what CBR is when the core runs at the TSC's rate */
};

struct pt_cpu {
	struct pt_enc enc;
	struct pt_cpu_config cfg;
	void (*put)(void *arg, const uint8_t *bytes, size_t n);
	void *put_arg;
	bool on, in_user; /* TriggerEn; PacketEn */
	bool mode_sent; /* MODE.Exec since the last PSB */
	bool lost; /* internal buffer overflow: nothing is sent till it resolves */
	uint64_t tnt;
	unsigned ntnt;
	uint64_t tips[32]; /* deferred */
	unsigned ntips;
	uint64_t calls[PT_CALLS];
	unsigned ncalls, calls_top;
	uint64_t sent; /* bytes since the last PSB */
	uint64_t total;
	uint64_t psb_at, ovf_at; /* total in front of the last PSB, OVF */
	/* the virtual clock, in core cycles since the event began, and what is derived from it */
	uint64_t cycles, cyc_sent;
	uint64_t tsc_base;
	uint64_t mtc_sent; /* crystal ticks >> mtc_period at the last one */
	struct { /* counted for tests: a kind that never occurs is not tested */
		uint64_t psb, tnt, tip, pge, pgd, fup, ovf, ptw, retc, mtc, cyc;
	} n;
};

void pt_cpu_init(struct pt_cpu *c, const struct pt_cpu_config *cfg,
		 void (*put)(void *arg, const uint8_t *bytes, size_t n), void *arg, uint64_t tsc);
void pt_cpu_on(struct pt_cpu *c);
void pt_cpu_off(struct pt_cpu *c, uint64_t ip); /* ip: where the thread is, if it is in user mode */
void pt_cpu_user(struct pt_cpu *c, uint64_t ip);
void pt_cpu_sync_exit(struct pt_cpu *c);
void pt_cpu_async_exit(struct pt_cpu *c, uint64_t ip);

/* Instructions. All but these take time only: pt_cpu_tick. */
void pt_cpu_tick(struct pt_cpu *c, unsigned cycles);
void pt_cpu_jcc(struct pt_cpu *c, bool taken);
void pt_cpu_call(struct pt_cpu *c, uint64_t ret, bool indirect,
		 uint64_t target); /* near; not to the next ip */
void pt_cpu_ret(struct pt_cpu *c, uint64_t target);
void pt_cpu_jmp(struct pt_cpu *c, uint64_t target); /* indirect */
/* a transaction that begins at ip and is aborted there; control goes to `to` */
void pt_cpu_abort(struct pt_cpu *c, uint64_t ip, uint64_t to);
void pt_cpu_ptwrite(struct pt_cpu *c, uint64_t ip, uint64_t value, unsigned size);
/* A place between two instructions, the next being at ip: where a PSB may go. */
void pt_cpu_between(struct pt_cpu *c, uint64_t ip);

/* The internal buffer overflows; it resolves before the instruction at ip, or in the kernel. */
void pt_cpu_overflow(struct pt_cpu *c);
void pt_cpu_resolve(struct pt_cpu *c, uint64_t ip);
uint64_t pt_cpu_tsc(const struct pt_cpu *c);

#endif
