/* SPDX-License-Identifier: MIT
 *
 * patch.c - what is written over the original text
 *
 * A patch point is the address of a block that control enters from outside the copy (glue.h). The
 * room there ends at the next point, at a call that is executed in the original text, or at
 * a byte that must stay.
 *
 *   room >= 5    e9 to the stub                         point: jmp stub
 *   room 2 to 4  eb to an island: five dead bytes       point: jmp isl ──▶ isl: jmp stub
 *                within -128..127                           or by way of other short jumps, in two dead bytes each
 *   room 1       before another point (a `ret` after    point: eb PX       ──▶ isl: jmp stub
 *                the last call of a function): rel8 is  next:     PX e9 …  (or PX eb, to an island)
 *                a prefix that the next point's jump ignores, which leaves 22 places for the island
 *   else         the call in the way, or one that an island may lie in, is emulated by the copy (emit_ctl.c): its bytes
 *                are dead then
 *   room 2 to 4  before a point with five: a jump of five bytes, of which the next jump has the last (patch_near.c)
 *   else         the group is opaque (MAP_R_TOO_SHORT)
 *
 * All points of all certain groups are placed before anything is planned, since a group that
 * turns opaque changes what others know. An endbr64 at an entry stays, with the jump after it,
 * where there is room. What is left of relocated code becomes int3.
 */
#include <stdlib.h>
#include <string.h>
#include "patch.h"
#include "sort.h"

static struct site *site_of(const struct pp *p, uint32_t v)
{
	uint32_t lo = 0, hi = p->nsite;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (p->site[mid].end <= v)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < p->nsite && p->site[lo].vaddr <= v ? &p->site[lo] : NULL;
}

static uint32_t first_point(const struct pp *p, uint32_t v)
{
	uint32_t lo = 0, hi = p->ps->npt;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (p->ps->pt[mid].vaddr < v)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* the call that covers v becomes dead bytes, but for points that begin there; false if there is none */
static bool emulate(struct pp *p, uint32_t v)
{
	struct site *s = in_text(p, v) && *use_at(p, v) == CALL ? site_of(p, v) : NULL;
	struct an_group *g;
	struct live *l;

	if (!s)
		return false;
	g = &p->m->group[s->group];
	l = g->live;
	if (!l->emul)
		l->emul = calloc(g->ninsn, 1);
	if (!l->emul)
		abort();
	l->emul[s->insn] = 1;
	memset(use_at(p, s->vaddr), FREE, s->end - s->vaddr);
	for (uint32_t i = first_point(p, s->vaddr); i < p->ps->npt && p->ps->pt[i].vaddr < s->end; i++)
		*use_at(p, p->ps->pt[i].vaddr) = START;
	p->ps->nemul++;
	return true;
}

static bool has_endbr(const struct pp *p, const struct point *t)
{
	const uint8_t *b = elf_at(p->m, t->vaddr, 4);

	return b && !memcmp(b, "\xf3\x0f\x1e\xfa", 4) && room(p, t->vaddr, 4) == 4;
}

static bool keep_endbr(struct pp *p, struct point *t)
{
	if (!has_endbr(p, t) || room(p, t->vaddr, 9) < 9)
		return false;
	take(p, t->vaddr, 4);
	t->at = t->vaddr + 4;
	return true;
}

static void place_at(struct pp *p, struct point *t, struct point *next);

static bool pun_island(struct pp *p, struct point *t, uint8_t rel)
{
	uint32_t to = t->at + 2 + (uint32_t)(int8_t)rel;

	if (!dead(p, to) || room(p, to, 5) < 5)
		return false;
	t->island = to;
	take(p, to, 5);
	t->state = 1;
	p->ps->nisland++;
	return true;
}

/* One byte at t, and the next one is next's. */
static bool pun(struct pp *p, struct point *t, struct point *next)
{
	if (!next || next->vaddr != t->at + 1)
		return false;
	while (room(p, next->vaddr, 3) < 3)
		if (!emulate(p, next->vaddr + room(p, next->vaddr, 3)))
			return false;
	next->island = AN_NONE;
	/* an endbr64 stays if its first byte leads to an island */
	if (!has_endbr(p, next) || room(p, next->vaddr, 9) < 9 || !pun_island(p, t, 0xf3)) {
		next->at = next->vaddr + 1;
		t->state = 4;
	} else {
		keep_endbr(p, next);
	}
	take(p, t->at, 2);
	place_at(p, next, NULL);
	return true;
}

/* next: the point that follows, NULL if it has its place already */
static void place(struct pp *p, struct point *t, struct point *next)
{
	if (t->state) /* with the one before */
		return;
	t->at = t->vaddr;
	t->island = t->hop = AN_NONE;
	keep_endbr(p, t);
	place_at(p, t, next);
}

/* Where a row of points was too much, one that has less than five bytes to the call behind it and no more before it takes
 * that call's at once: what it leaves else is taken by others, and the one before it has no jump to share (patch_near.c). */
static bool takes_call(struct pp *p, struct point *t, uint32_t r)
{
	return p->crowded[t->group] && t > p->ps->pt && t->vaddr - t[-1].vaddr < 5 && emulate(p, t->at + r);
}

static void place_at(struct pp *p, struct point *t, struct point *next)
{
	for (;;) {
		uint32_t r = room(p, t->at, 5);

		if (r == 5) {
			take(p, t->at, 5);
			t->state = 1;
			return;
		}
		if (r >= 2 && !takes_call(p, t, r)) {
			take(p, t->at, 2);
			t->state = 2;
			return;
		}
		if (r < 2 && !emulate(p, t->at + r)) {
			if (!r || !pun(p, t, next))
				t->state = 3;
			return;
		}
	}
}

/* five dead bytes that a short jump at `at` reaches */
static uint32_t island(struct pp *p, uint32_t at)
{
	for (uint32_t d = 0; d <= 128; d++) {
		uint32_t up = at + 2 + d, down = at + 2 - d;

		if (d <= 127 && room(p, up, 5) == 5 && dead(p, up))
			return up;
		if (down < at && room(p, down, 5) == 5 && dead(p, down))
			return down;
	}
	return AN_NONE;
}

#define NEAR 256 /* places that a short jump reaches */

/* the d-th nearest place to the end of a short jump at `at`: 0, -1, 1, ... -128 from there */
static uint32_t near(uint32_t at, uint32_t d)
{
	return at + 2 + (d & 1 ? -((d + 1) / 2) : d / 2);
}

static bool reaches(uint32_t at, uint32_t to)
{
	return (int32_t)(to - at - 2) == (int8_t)(to - at - 2);
}

/* A call that a short jump at `at` reaches, and whose bytes, with the dead ones next to them, are enough, makes room:
 * where a switch does nothing but call, every byte that is not a call's is taken. */
static bool clear_island(struct pp *p, uint32_t at)
{
	for (uint32_t d = 0; d < NEAR; d++) {
		uint32_t v = near(at, d);
		struct site *s = in_text(p, v) && *use_at(p, v) == CALL ? site_of(p, v) : NULL;
		uint32_t i, lo = v, hi;

		if (!s || s->vaddr != v)
			continue;
		while (v - lo < 4 && dead(p, lo - 1) && reaches(at, lo - 1))
			lo--;
		for (hi = s->end; hi - lo < 5 && dead(p, hi); hi++)
			;
		if (hi - lo < 5)
			continue;
		i = first_point(p, v);
		if (i == p->ps->npt || p->ps->pt[i].vaddr >= s->end)
			return emulate(p, v);
	}
	return false;
}

/* ---- short jumps to short jumps ---- */

#define HOPS 12 /* at most; rt_xlat.c follows 16 */
#define TRIED 4096 /* places, before it is given up */

struct way {
	uint32_t at, prev; /* prev: index of the one that leads here */
	uint32_t hops;
};

/* the way to w is taken, and what it ends in; false: its parts are in each other's way */
static bool go(struct pp *p, struct point *t, const struct way *way, uint32_t w)
{
	uint32_t n = p->ps->nhop, to, i;

	for (i = w; i; i = way[i].prev) {
		if (room(p, way[i].at, 2) < 2 || !dead(p, way[i].at))
			break;
		take(p, way[i].at, 2);
	}
	to = i ? AN_NONE : island(p, way[w].at);
	if (to == AN_NONE) {
		for (uint32_t k = w; k != i; k = way[k].prev)
			memset(use_at(p, way[k].at), FREE, 2);
		return false;
	}
	take(p, to, 5);
	t->island = to;
	for (i = w; i; i = way[i].prev) {
		p->ps->hop = grow(p->ps->hop, n, &p->ps->caphop, sizeof(*p->ps->hop));
		p->ps->hop[n++] = (struct map_patch){way[i].at, MAP_PATCH_JMP8, to};
		to = way[i].at;
	}
	p->ps->nhop = n;
	t->hop = to;
	t->state = 1;
	p->ps->nisland++;
	return true;
}

/* No island in reach, as among landing pads of which each leaves two or three bytes behind its jump: by way of those. The
 * places are tried nearest first, by number of jumps. */
static bool hop(struct pp *p, struct point *t)
{
	struct way *way = malloc(TRIED * sizeof(*way));
	uint8_t *seen = calloc(p->m->text_hi - p->m->text_lo + 1, 1);
	uint32_t n = 1;
	bool ok = false;

	if (!way || !seen)
		abort();
	way[0] = (struct way){t->at, 0, 0};
	for (uint32_t k = 0; k < n && !ok; k++) {
		for (uint32_t d = 0; d < NEAR && !ok && n < TRIED && way[k].hops < HOPS; d++) {
			uint32_t v = near(way[k].at, d);

			if (!dead(p, v) || !dead(p, v + 1) || seen[v - p->m->text_lo])
				continue;
			seen[v - p->m->text_lo] = 1;
			way[n] = (struct way){v, k, way[k].hops + 1};
			ok = go(p, t, way, n++);
		}
	}
	free(way);
	free(seen);
	return ok;
}

static void place_island(struct pp *p, struct point *t)
{
	for (;;) {
		uint32_t more;

		t->island = island(p, t->at);
		if (t->island != AN_NONE) {
			take(p, t->island, 5);
			t->state = 1;
			p->ps->nisland++;
			return;
		}
		more = room(p, t->at + 2, 3);
		if (more == 3) {
			take(p, t->at + 2, 3);
			t->state = 1;
			return;
		}
		if (!emulate(p, t->at + 2 + more) && !clear_island(p, t->at)) {
			if (!hop(p, t))
				t->state = 5;
			return;
		}
	}
}

/* Prefixes that a direct near jump ignores: segment overrides (SDM Vol. 2, 2.1.1, table of group 2: other than
 * branch hints, "reserved" but without effect here; GNU as and gcc pad jumps with them), REX. */
static const uint8_t prefixes[] = {0x26, 0x2e, 0x36, 0x3e, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46,
				   0x47, 0x48, 0x49, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f, 0x64, 0x65};

static void place_pun(struct pp *p, struct point *t)
{
	for (bool clear = false;; clear = true) {
		for (uint32_t k = 0; k < sizeof(prefixes); k++) {
			uint32_t to = t->at + 2 + prefixes[k];

			while (clear && room(p, to, 5) < 5 && emulate(p, to + room(p, to, 5)))
				;
			if (pun_island(p, t, prefixes[k]))
				return;
		}
		if (clear)
			break;
	}
	t->state = 3;
}

static void collect_group(struct pp *p, uint32_t gi)
{
	const struct an_group *g = &p->m->group[gi];

	for (uint32_t b = 0; b < g->nblock; b++)
		if (glue_stub(p->m, g, b) != STUB_NONE)
			p->ps->pt[p->ps->npt++] = (struct point){.vaddr = g->insn[g->block[b].first].vaddr,
								 .group = gi,
								 .block = b,
								 .island = AN_NONE,
								 .hop = AN_NONE};
	for (uint32_t i = 0; i < g->ninsn; i++) {
		const struct an_insn *n = &g->insn[i];

		if (n->flow != FLOW_CALL && n->flow != FLOW_ICALL)
			continue;
		p->site[p->nsite++] = (struct site){n->vaddr, n->vaddr + n->len, gi, i};
		memset(use_at(p, n->vaddr), CALL, n->len);
	}
}

/* of p no more than n bytes are needed */
static void *fit(void *p, size_t n)
{
	void *q = realloc(p, n + 1);

	return q ? q : p;
}

static void collect(struct pp *p)
{
	struct module *m = p->m;
	uint32_t np = 0, ns = 0;

	for (uint32_t gi = 0; gi < m->ngroup; gi++) {
		np += m->group[gi].nblock;
		ns += m->group[gi].ninsn;
	}
	free(p->ps->pt);
	free(p->site);
	p->ps->pt = malloc((np + 1) * sizeof(*p->ps->pt));
	p->site = malloc((ns + 1) * sizeof(*p->site));
	if (!p->ps->pt || !p->site)
		abort();
	p->ps->npt = p->nsite = 0;
	for (uint32_t gi = 0; gi < m->ngroup; gi++) {
		if (m->group[gi].reason != MAP_OK)
			continue;
		if (((struct live *)m->group[gi].live)->emul)
			memset(((struct live *)m->group[gi].live)->emul, 0, m->group[gi].ninsn);
		collect_group(p, gi);
	}
	p->ps->pt = fit(p->ps->pt, p->ps->npt * sizeof(*p->ps->pt));
	p->site = fit(p->site, p->nsite * sizeof(*p->site));
	sort_first(p->ps->pt, p->ps->npt, sizeof(*p->ps->pt));
	sort_first(p->site, p->nsite, sizeof(*p->site));
	for (uint32_t i = 0; i < p->ps->npt; i++)
		if (*use_at(p, p->ps->pt[i].vaddr) == FREE)
			*use_at(p, p->ps->pt[i].vaddr) = START;
}

/* one attempt; returns the number of groups that have to become opaque */
static uint32_t attempt(struct pp *p)
{
	uint32_t bad = 0;

	memset(p->ps->used, FREE, p->m->text_hi - p->m->text_lo + 1);
	memset(p->bad, 0, p->m->ngroup);
	p->ps->nemul = p->ps->nisland = p->ps->njmp = p->ps->nhop = 0;
	collect(p);
	for (uint32_t i = 0; i < p->ps->npt; i++)
		place(p, &p->ps->pt[i], i + 1 < p->ps->npt ? &p->ps->pt[i + 1] : NULL);
	for (uint32_t i = 0; i < p->ps->npt; i++)
		if (p->ps->pt[i].state == 4)
			place_pun(p, &p->ps->pt[i]);
	for (uint32_t i = 0; i < p->ps->npt; i++)
		if (p->ps->pt[i].state == 2)
			place_island(p, &p->ps->pt[i]);
	for (uint32_t i = 0; i < p->ps->npt; i++)
		if (p->ps->pt[i].state == 5 &&
		    (i + 1 == p->ps->npt || !patch_near(p, &p->ps->pt[i], &p->ps->pt[i + 1])))
			p->ps->pt[i].state = 3;
	for (uint32_t i = 0; i < p->ps->npt; i++) {
		struct point *t = &p->ps->pt[i];

		if (t->state == 3 && !p->bad[t->group]) {
			p->bad[t->group] = MAP_R_TOO_SHORT;
			bad++;
		}
		p->ps->njmp += t->state == 1;
	}
	return bad;
}

static void tailx_closure(struct module *m)
{
	bool again = true;

	while (again) {
		again = false;
		for (uint32_t gi = 0; gi < m->ngroup; gi++) {
			struct an_group *g = &m->group[gi];

			for (uint32_t k = 0; k < g->ncallee && !g->sum->tailx && g->reason == MAP_OK; k++)
				if (g->insn[g->callee[k].insn].flow != FLOW_CALL &&
				    m->group[g->callee[k].group].sum->tailx)
					again = g->sum->tailx = true;
		}
	}
}

static void forget_callee(struct module *m, const uint8_t *bad)
{
	for (uint32_t gi = 0; gi < m->ngroup; gi++) {
		struct an_group *g = &m->group[gi];
		uint32_t n = 0;

		for (uint32_t k = 0; k < g->ncallee; k++) {
			if (!bad[g->callee[k].group])
				g->callee[n++] = g->callee[k];
			else if (g->insn[g->callee[k].insn].flow != FLOW_CALL)
				g->sum->tailx = true;
		}
		g->ncallee = n;
	}
	tailx_closure(m);
}

int groups_demote(struct module *m, const uint8_t *bad, struct patches *ps)
{
	uint32_t more = 0, n = m->nopaque;
	struct map_opaque *o;

	for (uint32_t gi = 0; gi < m->ngroup; gi++)
		more += bad[gi] ? m->group[gi].nrange : 0;
	o = realloc(m->opaque, (m->nopaque + more + 1) * sizeof(*o));
	if (!o)
		return -1;
	m->opaque = o;
	for (uint32_t gi = 0; gi < m->ngroup; gi++) {
		struct an_group *g = &m->group[gi];

		if (!bad[gi])
			continue;
		ps->ndemoted++;
		g->reason = elf_sigreturn(m, g->insn[0].vaddr) ? MAP_R_SIGRET : bad[gi];
		for (uint32_t r = 0; r < g->nrange; r++)
			o[n++] = (struct map_opaque){g->range[r].start, g->range[r].end, g->reason, 0};
		for (uint32_t i = 0; i < g->ninsn; i++)
			if (g->insn[i].vaddr >= m->text_lo && g->insn[i].vaddr + g->insn[i].len <= m->text_hi)
				memset(&m->live_byte[g->insn[i].vaddr - m->text_lo], AN_BYTE_KEEP,
				       g->insn[i].len);
		g->ncallee = 0;
	}
	m->nopaque = n;
	forget_callee(m, bad);
	keep_private(m);
	return 0;
}

/* can every instruction of the group be copied? */
static enum map_reason group_can(const struct module *m, struct an_group *g)
{
	enum map_reason r = live_facts(m, g);

	if (r != MAP_OK)
		return r;
	for (uint32_t b = 0; b < g->nblock; b++)
		if (!g->block[b].n || g->insn[g->block[b].first].vaddr < m->text_lo)
			return MAP_R_LIMIT;
	return MAP_OK;
}

static void can(void *arg, uint32_t gi)
{
	struct pp *p = arg;

	if (p->m->group[gi].reason == MAP_OK)
		p->bad[gi] = group_can(p->m, &p->m->group[gi]);
}

/* groups that have not room enough are tried once more; false if all have been */
static bool crowd(struct pp *p)
{
	bool again = false;

	for (uint32_t gi = 0; gi < p->m->ngroup; gi++)
		if (p->bad[gi] && !p->crowded[gi]) {
			p->crowded[gi] = 1;
			again = true;
		}
	return again;
}

int patch_plan(struct module *m, struct patches *ps, int jobs)
{
	struct pp p = {.m = m, .ps = ps};
	int r = 0;

	free(ps->used);
	ps->used = malloc(m->text_hi - m->text_lo + 1);
	p.bad = calloc(m->ngroup + 1, 1);
	p.crowded = calloc(m->ngroup + 1, 1);
	if (!ps->used || !p.bad || !p.crowded)
		abort();
	for (uint32_t gi = 0; gi < m->ngroup; gi++)
		if (!m->group[gi].live && !(m->group[gi].live = calloc(1, sizeof(struct live))))
			abort();
	par_for(m->ngroup, jobs, can, &p);
	r = groups_demote(m, p.bad, ps);
	while (!r && attempt(&p))
		if (!crowd(&p))
			r = groups_demote(m, p.bad, ps);
	free(p.bad);
	free(p.crowded);
	free(p.site);
	return r;
}

/* ---- the list ---- */

static void add(struct patches *ps, uint32_t vaddr, uint32_t kind, uint32_t arg)
{
	ps->p = grow(ps->p, ps->n, &ps->cap, sizeof(*ps->p));
	ps->p[ps->n++] = (struct map_patch){vaddr, kind, arg};
}

static void retarget(struct module *m, struct patches *ps, uint32_t gi, struct emitted *const *em,
		     const uint32_t *base)
{
	const struct an_group *g = &m->group[gi];
	const struct live *l = g->live;

	for (uint32_t k = 0; k < g->ncallee; k++) {
		const struct an_callee *c = &g->callee[k];
		const struct an_insn *n = &g->insn[c->insn];

		if (n->flow == FLOW_CALL && !(l->emul && l->emul[c->insn]))
			add(ps, n->vaddr + n->len - 4, MAP_PATCH_CALL,
			    base[c->group] + em[c->group]->block_off[c->block]);
	}
}

/* bytes of the text from v on, up to len, that are all left over from relocated code, or none of which is */
static uint32_t stretch(const struct module *m, const struct patches *ps, uint32_t v, uint32_t len, bool over)
{
	const uint8_t *code = m->live_byte + v, *used = ps->used + v;
	const uint64_t one = 0x0101010101010101u;
	uint64_t c, u;
	uint32_t n = 0;

	_Static_assert(AN_BYTE_CODE == 1 && FREE == 0,
		       "in eight bytes at once: those that are left over are zero");
	for (; n + 8 <= len - v; n += 8) {
		memcpy(&c, code + n, 8);
		memcpy(&u, used + n, 8);
		c = (c ^ one) | u;
		if (over ? c : (c - one) & ~c & one << 7)
			break;
	}
	while (n < len - v && (code[n] == AN_BYTE_CODE && used[n] == FREE) == over)
		n++;
	return n;
}

int patch_write(struct module *m, struct patches *ps, struct emitted *const *em, const uint32_t *base)
{
	ps->n = 0;
	for (uint32_t i = 0; i < ps->npt; i++) {
		const struct point *t = &ps->pt[i];
		uint32_t to = base[t->group] + em[t->group]->stub_off[t->block];

		if (em[t->group]->stub_off[t->block] == AN_NONE)
			return -1;
		if (t->island != AN_NONE)
			add(ps, t->at, t->near ? t->near : MAP_PATCH_JMP8,
			    t->hop != AN_NONE ? t->hop : t->island);
		add(ps, t->island != AN_NONE ? t->island : t->at, MAP_PATCH_JMP, to);
	}
	for (uint32_t i = 0; i < ps->nhop; i++)
		add(ps, ps->hop[i].vaddr, ps->hop[i].kind, ps->hop[i].arg);
	for (uint32_t gi = 0; gi < m->ngroup; gi++)
		if (m->group[gi].reason == MAP_OK)
			retarget(m, ps, gi, em, base);
	for (uint32_t v = 0, n, len = m->text_hi - m->text_lo; v < len; v += n) {
		v += stretch(m, ps, v, len, false);
		n = stretch(m, ps, v, len, true);
		if (n)
			add(ps, m->text_lo + v, MAP_PATCH_INT3, n);
	}
	sort_first(ps->p, ps->n, sizeof(*ps->p));
	return 0;
}

void patch_free(struct patches *ps)
{
	free(ps->p);
	free(ps->pt);
	free(ps->hop);
	free(ps->used);
	memset(ps, 0, sizeof(*ps));
}
