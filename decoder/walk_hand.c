/* SPDX-License-Identifier: MIT
 *
 * walk_hand.c - from one walk to another that begins where it is: a recorded image goes on in full (preload/rt_switch.c);
 * a process is forked
 *
 *   replay of image N … EXEC, argument rip │ image N+1: start.bin at rip, RESUME …
 *           … SIGNAL at rip, EXEC          │ the same: the handler is the next image's
 *   a system call that makes a process     │ the child: START at rip …
 *                                          │
 *   frames, limbo, handlers, registers ────┴──▶ the same
 *
 * Both are at the same instruction of the same program: what the first walk knows of its callers is so, whatever an unwind
 * table would say. Memory: start.bin has it all. A forked process has the stack that it is on from START; those that it may go
 * back to (fibers, the one below a signal's) come from the walk, as far as its frames reach. Modules may have other copies, and
 * other maps (Intel PT), so that a frame goes by its return address then.
 */
#include <stdlib.h>
#include <string.h>
#include "walk.h"

struct hand_frame {
	struct frame f; /* its pc and m are the first walk's */
	const struct map *map; /* NULL: opaque */
	uint64_t bias, ret; /* where it returns to; opaque: 0, or what is on the stack when no map has that */
	uint32_t op;
};

struct hand {
	uint64_t rip, start_top;
	bool counted; /* rip is a system call's instruction, and the walk has done it */
	uint64_t r[WALK_NREGS];
	struct hand_frame *frame;
	uint32_t nframe, nlimbo; /* those of limbo are behind */
	uint32_t naside, base;
	struct aside **aside;
	struct mem_page *page; /* a forked process's: where its frames are */
	size_t npage, cappage;
};

#define PAGE 4096ull
#define FRAME_REACH 0x10000ull /* what belongs to a frame is not further below its return address */

static void give(struct walker *w, const struct frame *f, struct hand_frame *h)
{
	const struct map_leader *l;
	uint32_t block;

	memset(h, 0, sizeof(*h));
	h->f = *f;
	h->op = NONE32;
	if (f->flags & FR_OPAQUE) {
		if (mem_load(w->mem, f->slot, 8, &h->ret) && mod_at(w, h->ret))
			h->ret = 0;
		return;
	}
	h->map = f->m->map;
	h->bias = f->m->bias;
	if (!f->pc || f->pc - f->m->code >= f->m->map->nop)
		return; /* a call that does not come back */
	h->op = f->pc - f->m->code;
	l = map_leader_of(f->m->map, h->op);
	block = l ? NONE32 : map_block_of(f->m->map, h->op);
	if (l || block != NONE32)
		h->ret = h->bias + (l ? l->vaddr : f->m->map->block[block].vaddr);
}

/* hand_give - the walk has come to where another image begins, at rip */
void hand_give(struct walker *w, struct proc *to, uint64_t rip, bool counted)
{
	struct hand *h = xcalloc(1, sizeof(*h));

	hand_free(to->hand);
	to->hand = h;
	h->rip = rip;
	h->counted = counted;
	h->start_top = w->start_top;
	memcpy(h->r, w->r, sizeof(h->r));
	h->frame = xcalloc(w->nframe + w->nlimbo, sizeof(*h->frame));
	for (uint32_t i = 0; i < w->nframe; i++)
		give(w, &w->frame[i], &h->frame[h->nframe++]);
	for (uint32_t i = 0; i < w->limbocap; i++)
		if (w->limbo[i].slot && !(w->limbo[i].flags & FR_DEAD))
			give(w, &w->limbo[i], &h->frame[h->nframe + h->nlimbo++]);
	h->base = w->base;
	h->naside = w->naside;
	h->aside = sig_give(w);
}

static int by_slot(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Each frame lies between the next lower return address and its own. */
static void give_stacks(struct walker *w, struct hand *h)
{
	uint32_t n = h->nframe + h->nlimbo;
	uint64_t *slot = xcalloc(n + 1, sizeof(*slot)), page = 0; /* up to here they are handed on */

	for (uint32_t i = 0; i < n; i++)
		slot[i] = h->frame[i].f.slot;
	qsort(slot, n, sizeof(*slot), by_slot);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t from = slot[i] > FRAME_REACH ? (slot[i] - FRAME_REACH) & -PAGE : 0;

		if (slot[i] >> 63)
			break; /* nobody's stack */
		for (page = from > page ? from : page; page <= slot[i] + 7; page += PAGE) {
			if (h->npage == h->cappage) {
				h->cappage = h->cappage * 2 + 16;
				h->page = xrealloc(h->page, h->cappage, sizeof(*h->page));
			}
			h->npage += mem_page(w->mem, page, &h->page[h->npage]);
		}
	}
	free(slot);
}

/* hand_child - a system call has made process pid, which begins at rip. In a pid namespace of its own it has another id, and
 * is not found */
void hand_child(struct walker *w, uint64_t pid, uint64_t rip)
{
	const struct ptrace_run *r = w->proc->run;
	struct proc *to = NULL;

	for (uint32_t i = 0; r && i < r->nproc; i++) {
		struct proc *p = r->proc[i];

		if (p->pid == pid && p->forked && p->parent == w->proc && (!to || (to->hand && !p->hand)))
			to = p; /* ids may be used again: the next in time */
	}
	if (!to)
		return;
	hand_give(w, to, rip, true);
	give_stacks(w, to->hand);
}

void hand_free(struct hand *h)
{
	if (!h)
		return;
	for (uint32_t i = 0; i < h->naside; i++)
		free(h->aside[i]);
	free(h->aside);
	free(h->frame);
	free(h->page);
	free(h);
}

/* false: what was opaque is not now, and nothing is known of its registers */
static bool take(struct walker *w, const struct hand_frame *h, struct frame *f)
{
	const struct map_leader *l;
	struct inst *m = h->map ? mod_at(w, h->ret) : NULL;

	*f = h->f;
	f->m = NULL;
	f->pc = NULL;
	if (!h->map) {
		l = h->ret ? mod_leader(w, h->ret, &m) : NULL;
		return !l || !(l->flags & MAP_LEADER_RETURN);
	}
	f->flags = FR_OPAQUE;
	if (h->op != NONE32 && m && m->map == h->map && m->bias == h->bias) {
		f->m = m;
		f->pc = m->code + h->op;
		f->flags = h->f.flags;
		return true;
	}
	l = h->ret ? mod_leader(w, h->ret, &m) : NULL;
	if (l && (l->flags & MAP_LEADER_RETURN)) {
		f->m = m;
		f->pc = m->code + l->ops;
		f->flags = leader_flags(m, l, &f->check);
	}
	return true;
}

/* hand_stacks - what else is known of a forked process's stacks, before START's own; false: the memory is at its bound */
bool hand_stacks(struct walker *w, uint64_t rip, uint64_t rsp)
{
	struct hand *h = w->proc->hand;

	for (size_t i = 0; h && h->rip == rip && h->r[SEM_RSP] == rsp && i < h->npage; i++)
		if (!mem_put(w->mem, &h->page[i]))
			return false;
	return true;
}

/* hand_take - the callers of code at rip, as the walk before has left them; false: it has not */
bool hand_take(struct walker *w, uint64_t rip, uint64_t rsp)
{
	struct hand *h = w->proc->hand;

	if (!h || h->rip != rip || h->r[SEM_RSP] != rsp)
		return false;
	w->frame = xrealloc(w->frame, h->nframe + 1024, sizeof(*w->frame));
	w->capframe = h->nframe + 1024;
	for (uint32_t i = 0; i < h->nframe + h->nlimbo; i++) {
		struct frame f;

		if (!take(w, &h->frame[i], &f)) {
			w->nframe = 0;
			return false;
		}
		if (i < h->nframe)
			w->frame[w->nframe++] = f;
		else
			frame_limbo(w, &f);
	}
	memcpy(w->r + SEM_NGPR, h->r + SEM_NGPR, sizeof(h->r) - SEM_NGPR * sizeof(*h->r));
	w->start_top = h->start_top;
	w->counted = h->counted;
	sig_handed(w, h->aside, h->naside, h->base);
	h->aside = NULL;
	h->naside = 0;
	return true;
}
