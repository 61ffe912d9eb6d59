/* SPDX-License-Identifier: MIT
 *
 * flow.h - control flow that is not in the log: where the walk asks which way a branch went
 *
 * Maps with MAP_F_PT have ops that ask (SEM_JCC_FLOW, SEM_FLOW): each names an instruction of the copy. A provider
 * knows what the thread executed, instruction by instruction, and answers in order. Whatever was executed in between
 * (space checks, stubs, the runtime, opaque code) is nobody's question. Those with MAP_F_PTW ask for values, too
 * (SEM_PTW, SEM_PTWSX): what a ptwrite of the copy put into the recording, at its place in the order.
 *
 *   walk ──branch(ip)──▶ provider: on to the next instruction that any op asks about. It must be the one at ip
 *        ◀──next──────── where control went from there
 *        ──value(ip)───▶ the same
 *        ◀──v─────────── what that ptwrite gave
 *
 * Providers: the processor's recording (flow_pt.c); a list of addresses (test/flow).
 */
#ifndef PTRACE_FLOW_H
#define PTRACE_FLOW_H

#include <stdbool.h>
#include <stdint.h>

struct modrec;
struct thread;
struct flow;

enum flow_status {
	FLOW_OK = 0,
	FLOW_LOST = -1, /* something is missing, or does not fit the question: flow.why. resync() may go on */
	FLOW_END = -2, /* the recording is at its end */
};

struct flow_ops {
	/* branch - where control went from the instruction at ip, the next one that is asked about. *next is that
	 * instruction's own destination, even if the thread was interrupted just there. Returns an enum flow_status */
	int (*branch)(struct flow *f, uint64_t ip, uint64_t *next);

	/* value - what the ptwrite at ip gave, the next one that is asked about: four or eight bytes, zero-extended */
	int (*value)(struct flow *f, uint64_t ip, uint64_t *v);

	/* stops - was the thread interrupted at ip, before the next instruction that is asked about, and did it go on
	 * somewhere else (a signal's handler)? Then all up to there is passed; else nothing is. ip may be anywhere: in
	 * the copy, in the runtime. back: a handler's return leads to ip, where nothing was executed yet. The processor need
	 * not have been there: with one more signal waiting, rt_sigreturn goes to that one's handler at once */
	bool (*stops)(struct flow *f, uint64_t ip, bool back);

	/* more - was one more of the instructions that are asked about executed, with nothing asynchronous in front of it? */
	bool (*more)(struct flow *f);

	/* resync - after FLOW_LOST: on to the next keyframe's counter (struct run_key) that the recording shows, with all
	 * that follows it decodable. FLOW_OK with *counter, or FLOW_END */
	int (*resync)(struct flow *f, uint32_t *counter);

	/* entered - the log says that control came to `at` (an entry, a return site, a landing pad) from code that was not
	 * followed. Where the provider could not follow it either, that is how it knows that it has seen all of the way */
	void (*entered)(struct flow *f, uint64_t at);

	/* module - a record of modules.bin takes effect (loaded or unloaded), in the walk's order. With a map: the
	 * instructions at rec->m.copy_base + SEM_FLOW_AT of its ops are asked about from here on */
	void (*module)(struct flow *f, const struct modrec *rec);

	void (*close)(struct flow *f);
};

/* What providers begin with. */
struct flow {
	const struct flow_ops *ops;
	uint64_t nasked; /* how often branch() was called */
	uint32_t counter; /* of the last keyframe passed, 0 if none */
	uint64_t tsc; /* a time not later than the place the walk is at, as late as known; 0 if none */
	char why[200]; /* after FLOW_LOST and FLOW_END */
};

/* flow_pt.c: from the thread's Intel PT packets in its run directory; NULL with e if there are none to be decoded */
struct ptrace_error;
struct flow *flow_open_pt(struct thread *t, struct ptrace_error *e);

#endif
