/* SPDX-License-Identifier: MIT
 *
 * walk_frame.c - the call stack
 *
 * A frame is known by its slot, the address of its return address. The array is ordered by
 * time; on one stack that is also by falling slot, and a return is the top one's. When it is not
 * (stack switches, frames that were jumped over) the slot is searched for, newest first. Frames
 * taken off without a return go to limbo, a hash by slot: if they were another stack's, control may
 * still come back to them. A slot used again replaces what limbo had there. Frames below walker.base are
 * of what a signal's handler interrupted: only a return to one of them takes them off.
 *
 * A SEM_RET takes the callee-saved registers from its frame, so without one there is no going on.
 * A SEM_RETX knows its target and all registers; frames only follow what it did to the stack.
 */
#include <stdlib.h>
#include <string.h>
#include "walk.h"

#define FRAME_MAX (1ull << 20) /* a frame pointer is not further from its function's stack pointer */

const uint8_t frame_saved[NSAVED] = {SEM_RBX, SEM_RBP, SEM_R12, SEM_R13, SEM_R14, SEM_R15};

int frame_room(struct walker *w)
{
	if (w->nframe < w->capframe)
		return 0;
	if (w->capframe >= MAX_FRAMES)
		return lost(w, "more than %u calls deep", MAX_FRAMES);
	w->capframe = w->capframe ? w->capframe * 2 : 1024;
	w->frame = xrealloc(w->frame, w->capframe, sizeof(*w->frame));
	return 0;
}

int frame_push(struct walker *w, struct inst *m, uint32_t op, uint32_t flags, uint32_t check)
{
	struct frame *f;

	if (frame_room(w))
		return 1;
	f = &w->frame[w->nframe++];
	f->slot = w->r[SEM_RSP];
	f->m = m;
	f->pc = op == NONE32 ? NULL : m->code + op;
	for (int i = 0; i < NSAVED; i++)
		f->saved[i] = w->r[frame_saved[i]];
	f->flags = flags;
	f->check = check;
	return 0;
}

void frame_push_opaque(struct walker *w, uint64_t slot)
{
	struct frame *f;

	if (frame_room(w))
		return; /* a later return then finds no frame and says so */
	f = &w->frame[w->nframe++];
	memset(f, 0, sizeof(*f));
	f->slot = slot;
	f->flags = FR_OPAQUE;
}

void frame_restore(struct walker *w, const struct frame *f)
{
	if (f->flags & FR_OPAQUE)
		return;
	for (int i = 0; i < NSAVED; i++)
		w->r[frame_saved[i]] = f->saved[i];
}

static struct frame *limbo_find(struct walker *w, uint64_t slot)
{
	uint32_t k = slot / 8 * 0x9e3779b97f4a7c15ull >> 32;

	for (;; k++) {
		struct frame *f = &w->limbo[k & (w->limbocap - 1)];

		if (!f->slot || f->slot == slot)
			return f;
	}
}

static void limbo_grow(struct walker *w)
{
	struct frame *old = w->limbo;
	uint32_t n = w->limbocap;

	w->limbocap = n ? n * 2 : 256;
	w->limbo = xcalloc(w->limbocap, sizeof(*w->limbo));
	w->nlimbo = 0;
	for (uint32_t i = 0; i < n; i++)
		if (old[i].slot && !(old[i].flags & FR_DEAD)) {
			*limbo_find(w, old[i].slot) = old[i];
			w->nlimbo++;
		}
	free(old);
}

void frame_limbo(struct walker *w, const struct frame *f)
{
	struct frame *at;

	if (!f->slot)
		return;
	if (w->nlimbo * 2 >= w->limbocap)
		limbo_grow(w);
	at = limbo_find(w, f->slot);
	w->nlimbo += !at->slot;
	*at = *f;
}

void frame_drop(struct walker *w, uint64_t rsp)
{
	while (w->nframe > w->base && w->frame[w->nframe - 1].slot < rsp) {
		struct frame *f = &w->frame[--w->nframe];

		if (f->slot == rsp - 8)
			frame_restore(w, f); /* the call that comes back here, by another way */
		else
			frame_limbo(w, f);
	}
}

/* Untraced code may call from a stack above its own return address: libffi takes the arguments, which are there, for its stack. The
 * call that led to it is not over. */
void frame_set_aside(struct walker *w, uint64_t rsp)
{
	while (w->nframe > w->base && w->frame[w->nframe - 1].slot < rsp)
		frame_limbo(w, &w->frame[--w->nframe]);
}

void frame_cut(struct walker *w, uint32_t n)
{
	while (w->nframe > n)
		frame_limbo(w, &w->frame[--w->nframe]);
}

/* Goes on at the return site of frame i; it and all above it are gone. */
int frame_resume(struct walker *w, uint32_t i)
{
	struct frame *f = &w->frame[i];

	frame_cut(w, i + 1);
	w->nframe = i;
	sig_trim(w);
	w->r[SEM_RSP] = f->slot + 8;
	if (f->flags & FR_OPAQUE) {
		w->left = 0;
		return walk_mark(w);
	}
	frame_restore(w, f);
	w->m = f->m;
	w->pc = f->pc;
	return f->flags & FR_RESYNC ? walk_mark(w) : 0;
}

/* takes the frame of a slot back from limbo; false if there is none */
static bool from_limbo(struct walker *w, uint64_t slot, struct frame *f)
{
	struct frame *at = w->limbocap ? limbo_find(w, slot) : NULL;

	if (!at || !at->slot || (at->flags & FR_DEAD))
		return false;
	*f = *at;
	at->flags |= FR_DEAD;
	return true;
}

/* goes on at a return site with the registers as they are */
static int at_return_site(struct walker *w, const struct map_leader *l, struct inst *m)
{
	uint32_t check;

	w->m = m;
	w->pc = m->code + l->ops;
	return leader_flags(m, l, &check) & FR_RESYNC ? walk_mark(w) : 0;
}

/* No frame: the caller was there before the start, above what could be unwound. Memory knows where it goes on; its
 * registers are taken to be those that there are, which is said: the epilogues that restored them need not have
 * been followed. Not where a loss was before: the caller may be one that was lost, with registers that were, too. */
static int return_unknown(struct walker *w, uint64_t slot)
{
	const struct map_leader *l;
	uint64_t target;
	struct inst *m;

	if (slot <= w->start_top || !mem_load(w->mem, slot, 8, &target))
		return lost(w, "a return to a caller that was never seen (slot %#llx)",
			    (unsigned long long)slot);
	l = mod_leader(w, target, &m);
	if (l && (l->flags & MAP_LEADER_RETURN)) {
		if (w->res->losses)
			return lost(w, "a return to a caller whose registers were lost (slot %#llx)",
				    (unsigned long long)slot);
		if (!w->res->blind++)
			w->res->blind_at = target;
		return at_return_site(w, l, m);
	}
	w->left = 0; /* opaque, or an entry that will announce itself */
	return walk_mark(w);
}

/* A ret that the loop could not match with the top frame. */
int frame_return(struct walker *w, uint64_t slot)
{
	uint64_t rsp = w->r[SEM_RSP];
	uint32_t i = w->nframe;
	bool plain;
	int k;

	w->expect = rsp - 7;
	while (i && w->frame[i - 1].slot != slot)
		i--;
	if (!i) {
		if (frame_room(w))
			return 1;
		if (!from_limbo(w, slot, &w->frame[w->nframe]))
			return return_unknown(w, slot);
		i = ++w->nframe;
	}
	plain = !(w->frame[i - 1].flags & (FR_OPAQUE | FR_RESYNC));
	k = frame_resume(w, i - 1);
	if (!k && plain)
		w->r[SEM_RSP] = rsp; /* ret n has popped more */
	return k;
}

/* A label of the group that pc is in, reached by a ret or a jump that was not known to stay. */
static bool own_label(const struct walker *w, const struct map_leader *l, const struct inst *m)
{
	const struct map_block *from = block_here(w);
	uint32_t to;

	if (m != w->m || !from || !(l->flags & MAP_LEADER_RELOAD))
		return false;
	to = map_block_of(m->map, l->ops);
	return to != NONE32 && m->map->block[to].group == from->group;
}

/* Is this the call that comes back to pc with that rsp? What it was called by need not care where rsp is: with a frame pointer,
 * which points into its own frame. */
static bool comes_back(const struct frame *f, const struct xop *pc, uint64_t rsp, uint64_t rbp)
{
	if (f->pc != pc || !f->slot || (f->flags & (FR_OPAQUE | FR_DEAD)))
		return false;
	return f->slot + 8 == rsp ||
	       (f->saved[1] == rbp && rbp - f->slot < FRAME_MAX && rbp >= rsp && rbp - rsp < FRAME_MAX);
}

/* Only a call that is still under way: where one has come back already the frame is no longer what it was then, and what the
 * analyzer knows of the frame behind the call need not be so. */
int frame_back(struct walker *w, uint64_t rsp, const struct map_leader *l, struct inst *m)
{
	struct xop *pc = m->code + l->ops;
	uint64_t rbp = w->r[SEM_RBP];
	uint32_t i = w->nframe, k = 0;
	struct frame *f = w->limbocap ? limbo_find(w, rsp - 8) : NULL;
	char buf[200];

	w->r[SEM_RSP] = rsp;
	while (i && !comes_back(&w->frame[i - 1], pc, rsp, rbp))
		i--;
	if (i) {
		frame_cut(w, i);
		w->nframe--;
		sig_trim(w);
	} else if (f && comes_back(f, pc, rsp, rbp)) {
		f->flags |= FR_DEAD;
	} else {
		while (k < w->limbocap && !comes_back(&w->limbo[k], pc, rsp, rbp))
			k++;
		if (k == w->limbocap)
			return lost(w,
				    "untraced code came back to %s, where no call is under way with that "
				    "stack pointer",
				    place(w, m->bias + l->vaddr, buf, sizeof(buf)));
		w->limbo[k].flags |= FR_DEAD;
	}
	w->m = m;
	w->pc = pc;
	return 0;
}

/* SEM_RETX - control goes to target with rsp just above slot, from wherever the stack was */
int frame_switch(struct walker *w, uint64_t slot, uint64_t target)
{
	const struct map_leader *l;
	struct frame gone;
	uint32_t i = w->nframe, check;
	char buf[200];
	struct inst *m;

	while (i && w->frame[i - 1].slot != slot)
		i--;
	if (i) {
		frame_cut(w, i);
		w->nframe--;
		sig_trim(w);
	} else {
		while (w->nframe > w->base && w->frame[w->nframe - 1].slot < slot)
			frame_limbo(w, &w->frame[--w->nframe]);
		from_limbo(w, slot, &gone);
	}
	l = mod_leader(w, target, &m);
	w->left = l && (l->flags & MAP_LEADER_ENTRY) ? 0
						     : here(w); /* an entry: nothing untraced comes between */
	if (l && (l->flags & MAP_LEADER_RETURN))
		return at_return_site(w, l, m);
	if (!l || (l->flags & MAP_LEADER_ENTRY) || (leader_flags(m, l, &check) & FR_RESYNC))
		return walk_mark(w);
	if (own_label(w, l, m)) {
		w->pc = m->code + l->ops;
		return 0;
	}
	return lost(w, "a return to %s, which is no return site", place(w, target, buf, sizeof(buf)));
}
