/* SPDX-License-Identifier: MIT
 *
 * walk_start.c - the first instruction of a thread
 *
 *   first thread of an image   start.bin: registers and memory. The instruction is a return address inside
 *                              ld.so, after the call of the runtime's constructor. Of one that goes on with a
 *                              recorded image: any, where RUN_EV_RESUME says
 *   any other                  RUN_EV_START: registers, and the stack of a forked process. The instruction
 *                              is the one behind the system call that made the thread
 *   neither                    begins at a mark
 *
 * Callers that are on the stack already are those that the walk before has left (walk_hand.c). Without one they are
 * unwound (cfi.c), and become ordinary frames.
 */
#include <stdlib.h>
#include <string.h>
#include "walk.h"

static void caller(struct walker *w, struct inst *m, uint64_t ip, const uint64_t *reg, struct frame *f)
{
	const struct map_leader *l = mod_leader(w, ip, &m);
	uint32_t check = 0;

	memset(f, 0, sizeof(*f));
	f->slot = reg[SEM_RSP] - 8; /* the CFA is the caller's rsp after the return */
	if (!l || !(l->flags & MAP_LEADER_RETURN)) {
		f->flags = FR_OPAQUE;
		return;
	}
	f->m = m;
	f->pc = m->code + l->ops;
	f->flags = leader_flags(m, l, &check);
	f->check = check;
	f->saved[0] = reg[SEM_RBX];
	f->saved[1] = reg[SEM_RBP];
	memcpy(f->saved + 2, reg + SEM_R12, 4 * sizeof(*reg));
}

/* the frames from `from` on were found newest first; those from w->base on that they replace go */
static void in_order(struct walker *w, uint32_t from)
{
	uint64_t top = w->nframe > from ? w->frame[w->nframe - 1].slot : 0;
	uint32_t keep = from;

	for (uint32_t i = from, k = w->nframe; i + 1 < k; i++) {
		struct frame f = w->frame[i];

		w->frame[i] = w->frame[--k];
		w->frame[k] = f;
	}
	while (keep > w->base && w->frame[keep - 1].slot <= top)
		keep--;
	memmove(&w->frame[keep], &w->frame[from], (w->nframe - from) * sizeof(*w->frame));
	w->nframe -= from - keep;
}

/* Frames of the callers of code at ip - 1, up to one that is there already. The first one that is not known
 * ends it: a return there is then found in memory. A table that leads nowhere must not be followed for ever: each
 * caller's frame is further up. */
int walk_callers(struct walker *w, uint64_t ip, const uint64_t *gpr)
{
	uint64_t reg[16], below;
	uint32_t from = w->nframe;
	bool known = false;

	memcpy(reg, gpr, sizeof(reg));
	while (!known) {
		struct inst *m = mod_at(w, ip);

		below = reg[SEM_RSP];
		if (!m || cfi_step(m->map, m->bias, &ip, reg, w->mem) <= 0 ||
		    reg[SEM_RSP] < below + 8 * (w->nframe > from))
			break;
		for (uint32_t i = from; !known && i > w->base; i--)
			known = w->frame[i - 1].slot == reg[SEM_RSP] - 8;
		if (frame_room(w))
			return 1;
		caller(w, m, ip, reg, &w->frame[w->nframe++]);
	}
	in_order(w, from);
	return 0;
}

static void start_registers(struct walker *w, const uint64_t *gpr, uint64_t rflags, uint64_t fsbase,
			    uint64_t gsbase)
{
	memcpy(w->r, gpr, SEM_NGPR * sizeof(*gpr));
	w->r[SEM_FSBASE] = fsbase;
	w->r[SEM_GSBASE] = gsbase;
	w->r[SEM_FC] = rflags & 1;
	w->r[SEM_FR] = rflags & 0x8d4; /* OF SF ZF AF PF */
	w->r[SEM_DF] = rflags >> 10 & 1;
}

static int first_callers(struct walker *w, uint64_t ip, const uint64_t *gpr)
{
	int k = walk_callers(w, ip, gpr);

	w->start_top = w->nframe ? w->frame[0].slot : 0;
	return k;
}

/* the event that p is at; 0 if that is none */
static uint32_t first_event(struct walker *w)
{
	uint32_t mark;

	if (!need(w, sizeof(mark)))
		return 0;
	memcpy(&mark, w->p, sizeof(mark));
	return RUN_MARK_KIND(mark) == RUN_MARK_EVENT ? mark >> RUN_MARK_ID_SHIFT : 0;
}

static int start_image(struct walker *w, const struct run_start *s)
{
	const struct map_leader *l;
	struct inst *m;
	uint32_t check;
	bool called;

	walk_time(w, s->tsc);
	w->whole = first_event(w) == RUN_EV_RESUME;
	w->handed = hand_take(w, s->rip, s->gpr[SEM_RSP]);
	start_registers(w, s->gpr, s->rflags, s->fsbase, s->gsbase);
	l = mod_leader(w, s->rip, &m);
	called = l && (l->flags & MAP_LEADER_RETURN) && !w->whole;
	if (!w->handed && !called && first_callers(w, s->rip + 1, s->gpr))
		return 1;
	/* or as a return address: around the system call of clone() there is no unwind information (glibc's clone.S) */
	if (!w->handed && !w->nframe && first_callers(w, s->rip, s->gpr))
		return 1;
	w->handed &= w->whole;
	if (!called)
		return walk_mark(w);
	w->m = m;
	w->pc = m->code + l->ops;
	return leader_flags(m, l, &check) & FR_RESYNC ? walk_mark(w) : 0;
}

/* the bytes of the stack, from the stream into memory */
int walk_stack(struct walker *w, uint64_t addr, uint64_t left)
{
	while (left) {
		uint64_t n;

		if (!need(w, 1))
			return log_ended(w);
		n = (uint64_t)(w->lim - w->p) < left ? (uint64_t)(w->lim - w->p) : left;
		if (!mem_write(w->mem, addr, w->p, n))
			return lost(w, "shadow memory reached its bound (raise --memory)");
		w->p += n;
		addr += n;
		left -= n;
	}
	return 0;
}

/* RUN_EV_START at p */
static int start_thread(struct walker *w)
{
	struct run_thread_start s;
	const struct map_leader *l;
	struct inst *m;
	uint64_t size;
	bool handed;

	if (!need(w, 12 + sizeof(s)))
		return log_ended(w);
	memcpy(&size, w->p + 4, sizeof(size));
	memcpy(&s, w->p + 12, sizeof(s));
	if (size < sizeof(s) || size - sizeof(s) != s.stack_size || s.stack + s.stack_size < s.stack)
		return lost(w, "a start of %llu bytes with %llu bytes of stack", (unsigned long long)size,
			    (unsigned long long)s.stack_size);
	w->p += 12 + sizeof(s);
	if (s.stack_size && !hand_stacks(w, s.rip, s.gpr[SEM_RSP]))
		return lost(w, "shadow memory reached its bound (raise --memory)");
	if (walk_stack(w, s.stack, s.stack_size))
		return 1;
	if (s.modules > w->proc->nmod)
		return lost(w, "the start rests on %u module records, modules.bin has %u (damaged or cut)",
			    s.modules, w->proc->nmod);
	for (uint32_t i = 0; i < s.modules; i++)
		if (mod_apply(w, i))
			return 1;
	walk_time(w, s.tsc);
	handed = s.stack_size && hand_take(w, s.rip, s.gpr[SEM_RSP]);
	start_registers(w, s.gpr, s.rflags, s.fsbase, s.gsbase);
	l = mod_leader(w, s.rip, &m);
	if (s.stack_size && !handed && first_callers(w, s.rip, s.gpr))
		return 1;
	if (!l || m->map->op[l->ops].op != SEM_BLOCK)
		return walk_mark(w); /* the system call was not made by relocated code */
	w->m = m;
	w->pc = m->code + l->ops;
	return 0;
}

int walk_start(struct walker *w, uint32_t tid)
{
	const struct start *s = w->proc->start;

	if (mod_start(w))
		return 1;
	if (s && s->s.tid == tid)
		return start_image(w, &s->s);
	return first_event(w) == RUN_EV_START ? start_thread(w) : walk_mark(w);
}
