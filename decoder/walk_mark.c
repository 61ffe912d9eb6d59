/* SPDX-License-Identifier: MIT
 *
 * walk_mark.c - control came from code that was not followed: the stream says where it is now
 *
 *   CALLX, JMPX, a jump that leaves, a return to opaque code
 *        │
 *        ▼          EVENT: module records take effect, a handler ends, the process ends; then again
 *   next mark ────▶ EVENT BACK, RET: opaque code came back, with the registers in the stream
 *                   RET alone: what was taken for a return to opaque code was one to a call
 *                   ENTRY: a group entered at rsp = expect
 *                   ENTRYX: at the rsp in the stream
 *                   RESYNC: landing pad or returns-twice site, rsp in the stream
 *                   LINK (only behind the jump it belongs to, walk_loop.c): its jump's own target
 *
 * An entry whose rsp is the newest frame's slot is that call arriving. Any other was made by
 * opaque code: a frame is pushed whose return leads to the next mark. A mark that fits nothing is
 * loss of sync.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include "walk.h"

static uint32_t rd32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t rd24(const uint8_t *p)
{
	return p[0] | p[1] << 8 | p[2] << 16;
}

static uint64_t rd64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static void ptab_grow(struct walker *w)
{
	struct walk_place *old = w->ptab;
	uint32_t cap = w->pcap;

	w->pcap = cap ? cap * 2 : 256;
	w->ptab = xcalloc(w->pcap, sizeof(*w->ptab));
	for (uint32_t i = 0; i < cap; i++) {
		uint32_t k = old[i].ip * 0x9e3779b97f4a7c15ull >> 32 & (w->pcap - 1);

		if (!old[i].ip)
			continue;
		while (w->ptab[k].ip)
			k = (k + 1) & (w->pcap - 1);
		w->ptab[k] = old[i];
	}
	free(old);
}

/* Counts that opaque code ran after the block at ip. */
int walk_place_opaque(struct walker *w, uint64_t ip)
{
	uint32_t k;

	w->st->opaque_entries++;
	if (!ip)
		return 0;
	if (w->pn * 2 >= w->pcap)
		ptab_grow(w);
	k = ip * 0x9e3779b97f4a7c15ull >> 32 & (w->pcap - 1);
	while (w->ptab[k].ip && w->ptab[k].ip != ip)
		k = (k + 1) & (w->pcap - 1);
	if (!w->ptab[k].ip) {
		w->ptab[k].ip = ip;
		w->pn++;
	}
	w->ptab[k].count++;
	return 0;
}

/* EVENT at p. NEXT: the next mark; MOVED: control is elsewhere, with w->at_mark at a mark, else at pc. */
enum { NEXT, END, MOVED };

static int moved(int end)
{
	return end ? END : MOVED;
}

static int event(struct walker *w)
{
	uint32_t id;
	uint64_t arg;

	if (!need(w, 12))
		return log_ended(w); /* the runtime writes events whole */
	id = rd32(w->p) >> RUN_MARK_ID_SHIFT;
	arg = rd64(w->p + 4);
	w->p += 12;
	switch (id) {
	case RUN_EV_MODULE:
		return mod_apply(w, (uint32_t)(arg > UINT32_MAX ? UINT32_MAX : arg));
	case RUN_EV_EXIT:
	case RUN_EV_STOP:
		w->end = id == RUN_EV_EXIT ? WALK_EXIT : WALK_STOP;
		w->res->arg = arg;
		return 1;
	case RUN_EV_EXEC:
		w->execing = true;
		w->goes_on = arg;
		return 0;
	case RUN_EV_TIME:
		return walk_time(w, arg);
	case RUN_EV_SIGRET:
		return moved(sig_return(w, arg));
	case RUN_EV_RESUME:
		return moved(sig_resume(w, arg));
	case RUN_EV_BACK:
		if (arg != sizeof(w->came.r))
			return lost(w, "an event with %llu bytes", (unsigned long long)arg);
		if (!need(w, sizeof(w->came.r)))
			return log_ended(w);
		memcpy(&w->came.r, w->p, sizeof(w->came.r));
		w->came.on = true;
		w->p += sizeof(w->came.r);
		return 0;
	case RUN_EV_FSBASE:
		w->r[SEM_FSBASE] = arg;
		return 0;
	case RUN_EV_UNEXPECTED:
		w->res->unexpected++;
		return 0;
	default:
		w->p -= 12;
		return lost(w, "an event of unknown kind %u", id);
	}
}

/* came: straight from the code that left, at the rsp it had. A jump that pushed something first (the PLT's
 * first entry, on its way to the dynamic linker) arrives like this with no frame at rsp; whether what it
 * pushed is a return address will show, but nothing untraced has run. */
static int entered(struct walker *w, const struct map_site *s, struct inst *m, uint64_t rsp, bool came)
{
	bool top;

	sig_trim(w);
	frame_set_aside(w, rsp);
	top = w->nframe > w->base && w->frame[w->nframe - 1].slot == rsp;
	if (!top) {
		if (w->left && !came)
			walk_place_opaque(w, w->left);
		w->st->callbacks += !came;
		frame_push_opaque(w, rsp);
	}
	w->left = 0;
	w->r[SEM_RSP] = rsp;
	w->m = m;
	w->pc = m->code + s->ops;
	w->flow->ops->entered(w->flow, m->bias + s->vaddr);
	return 0;
}

/* the return site that RUN_EV_BACK names, with a RET mark of that check; NULL and lost if it is none */
static const struct map_leader *back_site(struct walker *w, uint32_t check, struct inst **m)
{
	const struct map_leader *l = NULL;
	uint64_t copy = w->came.r.copy;
	uint32_t expects;
	struct map_xlat x;

	*m = mod_at_copy(w, copy);
	if (*m && map_xlat_at((*m)->map, (uint32_t)(copy - (*m)->copy), &x))
		l = map_leader((*m)->map, x.vaddr);
	if (l && (l->flags & MAP_LEADER_RETURN) && leader_flags(*m, l, &expects) == FR_RMARK &&
	    expects == check)
		return l;
	lost(w, "a return mark (check %u) for %#llx in the copy, where there is none", check,
	     (unsigned long long)copy);
	return NULL;
}

static void back_registers(struct walker *w)
{
	w->came.on = false;
	for (int i = 0; i < NSAVED; i++)
		w->r[frame_saved[i]] = w->came.r.saved[i];
}

/* Opaque code came back: to whatever call that is under way, with whatever registers the stream says. */
static int came_back(struct walker *w)
{
	struct inst *m;
	const struct map_leader *l = back_site(w, *w->p >> 3, &m);

	if (!l)
		return 1;
	walk_place_opaque(w, w->left);
	w->left = 0;
	back_registers(w);
	w->flow->ops->entered(w->flow, m->bias + l->vaddr);
	return frame_back(w, w->came.r.rsp, l, m);
}

/* A RET mark at p, not consumed: the return site's own op does that. */
static int returned(struct walker *w)
{
	uint32_t check = *w->p >> 3;

	if (w->came.on)
		return came_back(w);
	for (uint32_t i = w->nframe; i--;) {
		struct frame *f = &w->frame[i];

		if (f->slot != w->expect - 1 || (f->flags & FR_OPAQUE))
			continue;
		if (!(f->flags & FR_RMARK) || f->check != check)
			break;
		w->left = 0;
		if (map_leader_of(f->m->map, f->pc - f->m->code))
			w->flow->ops->entered(
				w->flow, f->m->bias + map_leader_of(f->m->map, f->pc - f->m->code)->vaddr);
		return frame_resume(w, i);
	}
	return lost(w, "a return mark (check %u) that no call expects", check);
}

void walk_leave(struct walker *w)
{
	w->expect = w->r[SEM_RSP];
	w->left = here(w);
}

/* an event where some other mark than walk_mark's is expected: NEXT, or what to return */
static int other_event(struct walker *w, int *end)
{
	int e = event(w);

	*end = e == END || (e == MOVED && w->at_mark && walk_mark(w));
	return e;
}

int walk_mark(struct walker *w)
{
	for (;;) {
		const struct map_site *s;
		unsigned kind;
		struct inst *m;
		uint32_t id;
		size_t n;

		if (!need(w, 1)) {
			if (seek_dry_mark(w))
				return 1;
			continue;
		}
		kind = RUN_MARK_KIND(*w->p);
		if (kind == RUN_MARK_RET)
			return returned(w);
		if (kind == RUN_MARK_EVENT) {
			int e = event(w);

			if (e == NEXT || (e == MOVED && w->at_mark))
				continue;
			return e == END;
		}
		if (kind != RUN_MARK_ENTRY && kind != RUN_MARK_ENTRYX && kind != RUN_MARK_RESYNC)
			return lost(w, "a mark of kind %u where an entry or a return was expected", kind);
		n = RUN_MARK_SITE_BYTES + (kind == RUN_MARK_ENTRY ? 0 : 8);
		if (!need(w, n)) {
			if (seek_dry_mark(w))
				return 1;
			continue;
		}
		id = rd24(w->p) >> RUN_MARK_ID_SHIFT;
		s = mod_site(w, id, &m);
		if (!s || s->kind != (kind == RUN_MARK_RESYNC ? MAP_SITE_RESYNC : MAP_SITE_ENTRY))
			return lost(w, "a mark of kind %u names site %u, which %s", kind, id,
				    s ? "is of another kind" : "no loaded module has");
		if (kind == RUN_MARK_ENTRY && !w->expect)
			return lost(w, "an entry mark without rsp before any call");
		w->p += n;
		if (m->count)
			m->count[s->ops].mark += n;
		if (kind == RUN_MARK_RESYNC) {
			sig_longjmp(w, rd64(w->p - 8));
			frame_drop(w, rd64(w->p - 8));
			w->r[SEM_RSP] = rd64(w->p - 8);
			w->left = 0;
			w->m = m;
			w->pc = m->code + s->ops;
			w->flow->ops->entered(w->flow, m->bias + s->vaddr);
			return 0;
		}
		return entered(w, s, m, kind == RUN_MARK_ENTRY ? w->expect : rd64(w->p - 8),
			       kind == RUN_MARK_ENTRY);
	}
}

/* At a SEM_RMARK that a return leads to, and so it is: where flags are in use, at the very first instruction, or by a detour */
static bool back_here(struct walker *w)
{
	struct inst *m;
	const struct map_leader *l = back_site(w, *w->p >> 3, &m);

	if (!l || m != w->m || m->code + l->ops != w->pc || w->came.r.rsp != w->r[SEM_RSP])
		return false;
	back_registers(w);
	return true;
}

/* At a SEM_RMARK whose byte is not next. */
int walk_rmark(struct walker *w)
{
	for (;;) {
		int end;

		if (!need(w, 1))
			return seek_dry(w);
		if (w->came.on && RUN_MARK_KIND(*w->p) == RUN_MARK_RET && !back_here(w))
			return came_back(w);
		if (*w->p == (uint8_t)w->pc->imm) {
			w->p++;
			w->pc++;
			return 0;
		}
		if (RUN_MARK_KIND(*w->p) != RUN_MARK_EVENT)
			return lost(w, "byte %#x where the return mark %#x was expected", *w->p,
				    (uint8_t)w->pc->imm);
		if (other_event(w, &end) != NEXT)
			return end;
	}
}

/* a signal's event, at p, and reads its head */
static bool is_signal(struct walker *w)
{
	if (!need(w, 12) || rd32(w->p) >> RUN_MARK_ID_SHIFT != RUN_EV_SIGNAL ||
	    rd64(w->p + 4) != sizeof(struct run_signal))
		return false;
	w->p += 12;
	return true;
}

static bool makes_process(uint32_t nr)
{
	return nr == SYS_clone || nr == SYS_clone3 || nr == SYS_fork || nr == SYS_vfork;
}

int walk_syscall(struct walker *w)
{
	const struct xop *pc = w->pc;
	struct inst *m = w->m;
	uint32_t next = SEM_NEXT(pc->imm), nr;
	const struct map_leader *l;

	for (;;) {
		int end;

		if (!need(w, 4))
			return seek_dry(w);
		if (RUN_MARK_KIND(*w->p) == RUN_MARK_SYSCALL)
			break;
		if (RUN_MARK_KIND(*w->p) != RUN_MARK_EVENT)
			return lost(w, "a mark of kind %u where a system call's was expected",
				    RUN_MARK_KIND(*w->p));
		if (is_signal(w))
			return sig_at_call(w) || walk_mark(w);
		if (other_event(w, &end) != NEXT)
			return end;
	}
	if (!need(w, 12))
		return log_ended(w);
	w->execing = false;
	nr = rd32(w->p) >> RUN_MARK_ID_SHIFT;
	w->r[SEM_RAX] = rd64(w->p + 4);
	w->p += 12;
	w->r[SEM_R11] = w->r[SEM_FC] | w->r[SEM_FR] | w->r[SEM_DF] << 10 | 0x202;
	if (next == NONE32)
		return lost(w, "a system call that does not come back came back");
	/* the kernel leaves the return address in rcx (SDM Vol. 2, SYSCALL) */
	l = map_leader_of(m->map, next);
	w->r[SEM_RCX] = l ? m->bias + l->vaddr : 0;
	w->pc = m->code + next;
	if (makes_process(nr) && (int64_t)w->r[SEM_RAX] > 0 && l)
		hand_child(w, w->r[SEM_RAX], w->r[SEM_RCX]);
	return 0;
}

/* An indirect jump: to a leader of its own group, or out of it: with w->expect set where the copy sets tcb.expect, which a jump
 * of known targets does not, even if it should go elsewhere (it is an int3 that it meets then). */
int walk_ijmp(struct walker *w, uint64_t target, uint32_t group)
{
	struct inst *m;
	const struct map_leader *l = mod_leader(w, target, &m);

	if (l && m == w->m && (l->flags & MAP_LEADER_TARGET)) {
		uint32_t b = map_block_of(m->map, l->ops);

		if (b != NONE32 && m->map->block[b].group == group) {
			w->pc = m->code + l->ops;
			return 0;
		}
	}
	w->left = here(w);
	return walk_mark(w);
}
