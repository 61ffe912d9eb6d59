/* SPDX-License-Identifier: MIT
 *
 * walk_frame.c - the call stack
 *
 * A frame is known by its slot, the address of its return address. The array is ordered by
 * time; on one stack that is also by falling slot, and a return is the top one's. When it is not
 * (stack switches, frames that were jumped over) the slot is searched for, newest first. Frames
 * taken off without a return go to a ring, limbo: if they were another stack's, control may
 * still come back to them. A slot used again replaces what limbo had there.
 */
#include <string.h>
#include "walk.h"

static const uint8_t saved_reg[NSAVED] = {SEM_RBX, SEM_RBP, SEM_R12, SEM_R13, SEM_R14, SEM_R15};

static int grow(struct walker *w)
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

	if (grow(w))
		return 1;
	f = &w->frame[w->nframe++];
	f->slot = w->r[SEM_RSP];
	f->m = m;
	f->pc = op == NONE32 ? NULL : m->code + op;
	for (int i = 0; i < NSAVED; i++)
		f->saved[i] = w->r[saved_reg[i]];
	f->flags = flags;
	f->check = check;
	return 0;
}

void frame_push_opaque(struct walker *w, uint64_t slot)
{
	struct frame *f;

	if (grow(w))
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
		w->r[saved_reg[i]] = f->saved[i];
}

static void to_limbo(struct walker *w, const struct frame *f)
{
	if (f->flags & FR_OPAQUE)
		return;
	if (!w->limbo)
		w->limbo = xcalloc(NLIMBO, sizeof(*w->limbo));
	w->limbo[w->nlimbo++ % NLIMBO] = *f;
}

void frame_drop(struct walker *w, uint64_t rsp)
{
	while (w->nframe && w->frame[w->nframe - 1].slot < rsp) {
		struct frame *f = &w->frame[--w->nframe];

		if (f->slot == rsp - 8)
			frame_restore(w, f); /* the call that comes back here, by another way */
		else
			to_limbo(w, f);
	}
}

/* Goes on at the return site of frame i; it and all above it are gone. */
int frame_resume(struct walker *w, uint32_t i)
{
	struct frame *f = &w->frame[i];

	while (w->nframe > i + 1)
		to_limbo(w, &w->frame[--w->nframe]);
	w->nframe = i;
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

static int from_limbo(struct walker *w, uint64_t slot)
{
	uint32_t n = w->nlimbo < NLIMBO ? w->nlimbo : NLIMBO;

	for (uint32_t k = 1; k <= n; k++) {
		struct frame *f = &w->limbo[(w->nlimbo - k) % NLIMBO];

		if (f->slot != slot || (f->flags & FR_DEAD))
			continue;
		if (grow(w))
			return -1;
		w->frame[w->nframe++] = *f;
		f->flags |= FR_DEAD;
		return 1;
	}
	return 0;
}

/* No frame: the caller was there before the start, or on a stack never seen. Memory may know. */
static int return_unknown(struct walker *w, uint64_t slot, uint64_t target)
{
	const struct map_leader *l;
	char buf[200];
	struct inst *m;

	if (!target && !mem_load(w->mem, slot, 8, &target))
		return lost(w, "a return to an unknown caller (slot %#llx)", (unsigned long long)slot);
	l = mod_leader(w, target, &m);
	if (!l) { /* opaque, or an entry that will announce itself */
		w->left = 0;
		return walk_mark(w);
	}
	if (l->flags & MAP_LEADER_RETURN) {
		uint32_t check;

		w->m = m;
		w->pc = m->code + l->ops;
		return leader_flags(m, l, &check) & FR_RESYNC ? walk_mark(w) : 0;
	}
	if (l->flags & MAP_LEADER_ENTRY) {
		w->left = here(w);
		w->expect = w->r[SEM_RSP];
		return walk_mark(w);
	}
	return lost(w, "a return to %s, which is no return site", place(w, target, buf, sizeof(buf)));
}

/* A ret that the loop could not match with the top frame. */
int frame_return(struct walker *w, uint64_t slot, uint64_t target)
{
	uint64_t rsp = w->r[SEM_RSP];
	bool plain;
	int k;

	for (uint32_t i = w->nframe; i--;) {
		struct frame *f = &w->frame[i];
		const struct map_leader *l;
		struct inst *m;

		if (f->slot != slot)
			continue;
		if (target && !(f->flags & FR_OPAQUE)) {
			l = mod_leader(w, target, &m);
			if (!l || m != f->m || m->code + l->ops != f->pc)
				break; /* same slot, another address was put there */
		}
		plain = !(f->flags & (FR_OPAQUE | FR_RESYNC));
		k = frame_resume(w, i);
		if (!k && plain)
			w->r[SEM_RSP] = rsp; /* ret n has popped more */
		return k;
	}
	if (target)
		return return_unknown(w, slot, target);
	k = from_limbo(w, slot);
	if (k)
		return k < 0 ? 1 : frame_resume(w, w->nframe - 1);
	return return_unknown(w, slot, 0);
}
