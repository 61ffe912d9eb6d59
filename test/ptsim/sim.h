/* SPDX-License-Identifier: MIT
 *
 * sim.h - what the parts of the Intel PT simulator share
 *
 *	ptsim.c		options
 *	alone.c		one program, its stream and what it executed in files
 *	kern_*.c	the kernel's side: the fake PMU, its events, system calls on them
 *	sim_tasks.c	the loop over stops: threads and processes
 *	sim_exec.c	one thread's execution, instruction for instruction
 *	code.c, insn.c	its code as blocks
 *	pt_cpu.c	when which packet is due
 *	pt_enc.c	packets as bytes
 */
#ifndef SIM_H
#define SIM_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "code.h"
#include "pt_cpu.h"

/* A message on stderr; exits 125. With errno, if that is set. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t size);
uint64_t rnd(uint64_t *state);

struct task {
	pid_t pid, tgid;
	struct mm *mm; /* NULL: it has stopped before its maker told of it */
	struct user_regs_struct regs;
	bool dirty; /* regs are to be written back */
	bool stopped;
	bool due; /* it has stopped, with this status, which is not accounted for yet: */
	int status;
	bool trap_waits; /* a SIGTRAP for it, until it unblocks them: */
	siginfo_t trap_info;
	bool begun; /* it has stopped once since its maker told of it */
	uint64_t rseq; /* its area, where it has registered one */
	pid_t traps; /* the thread to which it is sending a SIGTRAP, which waits for it */
	bool killed; /* it was when it was to go on, and has not executed anything since */
	int held; /* by how many others: it stays stopped as long as this is not 0 */
	bool busy; /* somebody looks after it, who will let it go on */
	bool listening; /* in a group stop */
	bool in_call; /* between the stops of a system call */
	bool to_handler; /* a signal was injected: the next stop is its handler's first instruction */
	bool forgot; /* the system call under way changes code: the others of its memory wait */
	int inject; /* signal to deliver at the next resume */
	bool blocks_trap; /* SIGTRAP, in the program's eyes; it is not, or the kernel would unblock it for our traps */
	struct pt_cpu *cpu; /* the trace unit, while it records this thread */
	bool pmi; /* the unit raises an interrupt */
	struct event *event; /* of the fake PMU (kern.h) */
	struct kcall *kcall; /* its system call that is answered by us */
	uint64_t until_irq; /* instructions */
	/* what it was resumed to do (sim_exec.c) */
	bool running;
	uint64_t run_ip; /* from here: a block, */
	bool one; /* or this instruction alone: */
	struct insn insn;
	struct user_regs_struct before;
	bool lifted; /* our int3 on it is out */
	bool fenced; /* an int3 is behind it, on this byte: */
	uint8_t under;
	bool ahead; /* it stopped for us alone: branches and simple instructions can be done here */
	bool stale_trap; /* a SIGTRAP of ours is yet to come, for what has been accounted for */
	bool own_int3; /* it stopped at an int3 of the program */
	bool restarts; /* its last system call may come once more: the kernel moves rip back then */
	struct task *next;
	struct task *ended;
};

/* sim_exec.c */

/* Told of each instruction that retires, if there is somebody to tell. */
extern void (*sim_retired)(struct task *t, uint64_t ip);
/* Options: an interrupt every so many instructions on average, 0: none; the seed */
extern uint64_t sim_irq, sim_seed;
/* --verify: what emu.c makes of each stepped instruction is compared with what the processor does; how often */
extern bool sim_verify;
extern uint64_t sim_verified;

/* t has stopped, regs are read: account for what it executed since it was resumed. kind: how it stopped. */
enum stop_kind {
	STOP_TRAP, /* SIGTRAP of an int3 of ours, or of a single step */
	STOP_ENTRY, /* at a system call's entry */
	STOP_SIGNAL, /* a signal is about to be delivered, or the thread was stopped: it is in the kernel */
	STOP_FAULT, /* the signal is for the instruction at rip, which did not retire */
	STOP_SIGTRAP, /* SIGTRAP of its own */
};
void exec_stopped(struct task *t, enum stop_kind kind);
/* Prepare it to go on from regs.rip; do what needs no running, unless as_is. What to resume it with. A thread without an
 * event just goes on, but for what it cannot run: an int3 of ours. */
int exec_resume(struct task *t, bool as_is);
/* What a SIGTRAP is: STOP_TRAP, STOP_SIGTRAP, STOP_SIGNAL for one that comes late. */
enum stop_kind exec_trap_kind(struct task *t);

/* ptsim.c */
/* Stop all other threads of t's memory; or let them go on. Calls nest. */
void sim_quiesce(struct task *t, bool stop);
/* One byte of code; false when it cannot be written. */
bool mem_poke(pid_t pid, uint64_t addr, uint8_t byte, uint8_t *old);
/* A page of code was read for the first time, or after it had changed. */
extern void (*sim_page)(uint64_t addr, const uint8_t *bytes, size_t n);

#endif
