/* SPDX-License-Identifier: MIT
 *
 * map_sect.c - the sections of a map, from the emitted groups and their plans
 *
 * Here what a group knows by its own numbers (block, op, site, text offset) becomes the module's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "map_sect.h"

static void *add(struct buf *b, const void *p, size_t n)
{
	if (!b->p || b->n + n > b->cap) {
		b->cap = (b->n + n) * 2 + 256;
		b->p = realloc(b->p, b->cap);
		if (!b->p)
			abort();
	}
	if (p)
		memcpy(b->p + b->n, p, n);
	else
		memset(b->p + b->n, 0, n);
	b->n += n;
	return b->p + b->n - n;
}

static uint32_t string(struct mw *w, const char *s)
{
	struct buf *b = &w->sect[MAP_STRINGS];

	if (!b->n)
		add(b, "", 1);
	if (!s || !*s)
		return 0;
	add(b, s, strlen(s) + 1);
	return b->n - strlen(s) - 1;
}

static uint32_t block_vaddr(const struct an_group *g, uint32_t b)
{
	return g->insn[g->block[b].first].vaddr;
}

/* ---- copy text, fix-ups, address map ---- */

static void put_copy(struct mw *w, uint32_t gi)
{
	struct buf *c = &w->sect[MAP_COPY];
	struct emitted *x = w->em[gi];
	uint32_t base = w->base[gi];
	uint8_t *t;

	if (c->n < base)
		memset(add(c, NULL, base - c->n), 0xcc, base - c->n);
	t = add(c, x->text, x->ntext);
	for (uint32_t i = 0; i < x->nfix; i++) {
		struct map_fixup f = {base + x->fix[i].copy_off, x->fix[i].kind};
		uint8_t *p = t + x->fix[i].copy_off;
		uint32_t v;

		memcpy(&v, p, 4);
		if (f.kind == MAP_FIX_MOD32)
			v -= base;
		else if (f.kind == MAP_FIX_MARK)
			v += w->sitebase[gi] << RUN_MARK_ID_SHIFT;
		memcpy(p, &v, 4);
		add(&w->sect[MAP_FIXUPS], &f, sizeof(f));
	}
	for (uint32_t i = 0; i < x->nref; i++) {
		const struct emit_ref *r = &x->ref[i];
		uint32_t v =
			w->base[r->group] + w->em[r->group]->block_off[r->block] - (base + r->text_off + 4);

		memcpy(t + r->text_off, &v, 4);
	}
	for (uint32_t i = 0; i < x->nxlat; i++) {
		struct map_xlat l = x->xlat[i];

		l.copy_off += base;
		add(&w->sect[MAP_XLAT], &l, sizeof(l));
	}
}

static int by_first(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* ---- ops ---- */

static uint32_t target(const struct mw *w, uint32_t gi, uint32_t t)
{
	const struct an_callee *c;

	if (t == AN_NONE)
		return t;
	if (!(t & 0x80000000u))
		return t < w->plan[gi]->nop ? w->opbase[gi] + t : AN_NONE - 1;
	c = &w->m->group[gi].callee[t & 0x7fffffff];
	if ((t & 0x7fffffff) >= w->m->group[gi].ncallee || !w->plan[c->group])
		return AN_NONE - 1;
	return w->opbase[c->group] + w->plan[c->group]->blockop[c->block];
}

static bool slotted(uint8_t op)
{
	return op == SEM_RECVEC || op == SEM_RECREP || op == SEM_RECXS;
}

/* op asks where control went at the end of a block: where that is in the copy */
static bool ask(const struct mw *w, uint32_t gi, uint32_t block, struct sem_op *o)
{
	const struct emit_flow *f = &w->em[gi]->flow[block];
	uint32_t at = w->base[gi] + f->off;

	if (!f->len)
		return false;
	o->a = (uint16_t)at;
	o->b = (uint16_t)(at >> 16);
	if (o->op == SEM_JCC_FLOW)
		o->dst = f->len;
	return true;
}

/* op reads what a ptwrite gives: where that is in the copy; nowhere, if the stub it would be in is not */
static bool ask_value(const struct mw *w, uint32_t gi, uint32_t k, struct sem_op *o)
{
	uint32_t at = AN_NONE;

	if (k >= w->em[gi]->nptw)
		return false;
	if (w->em[gi]->ptw[k] != AN_NONE)
		at = w->base[gi] + w->em[gi]->ptw[k];
	o->a = (uint16_t)at;
	o->b = (uint16_t)(at >> 16);
	return true;
}

static int put_ops(struct mw *w, uint32_t gi)
{
	const struct plan *p = w->plan[gi];
	struct sem_op *o = add(&w->sect[MAP_OPS], p->op, p->nop * sizeof(*o));
	uint32_t block = 0, nptw = 0;

	for (uint32_t i = 0; i < p->nop; i++) {
		uint32_t t = SEM_TAKEN(o[i].imm), n = SEM_NEXT(o[i].imm);
		bool taken = true, next = true;

		switch (o[i].op) {
		case SEM_BLOCK:
			block = (uint32_t)o[i].imm;
			o[i].imm += w->blockbase[gi];
			continue;
		case SEM_FLOW:
			if (!ask(w, gi, block, &o[i]))
				return -1;
			continue;
		case SEM_PTW:
		case SEM_PTWSX:
			if (!ask_value(w, gi, nptw++, &o[i]))
				return -1;
			continue;
		case SEM_JCC_FLOW:
			if (!ask(w, gi, block, &o[i]))
				return -1;
			break;
		case SEM_JMP:
			next = false;
			break;
		case SEM_JCC:
		case SEM_JCC_LOG:
		case SEM_CALL:
			break;
		case SEM_JMPX:
			if (o[i].dst != SEM_JMPX_LINK)
				continue;
			next = false;
			break;
		case SEM_CALLX:
		case SEM_SYSCALL:
			taken = false;
			break;
		default:
			i += slotted(o[i].op);
			continue;
		}
		t = taken ? target(w, gi, t) : AN_NONE;
		n = next ? target(w, gi, n) : AN_NONE;
		if (t == AN_NONE - 1 || n == AN_NONE - 1)
			return -1;
		o[i].imm = SEM_TARGETS(t, n);
	}
	return 0;
}

/* ---- blocks, sites, leaders ---- */

static void put_blocks(struct mw *w, uint32_t gi)
{
	const struct an_group *g = &w->m->group[gi];
	struct map_group mg = {AN_NONE, string(w, g->name), w->blockbase[gi], g->nblock,
			       g->sum->keeps ? MAP_G_KEEPS : 0};
	uint32_t group = w->sect[MAP_GROUPS].n / sizeof(mg);

	for (uint32_t b = 0; b < g->nblock; b++) {
		const struct an_block *k = &g->block[b];
		struct map_block mb = {block_vaddr(g, b),
				       w->opbase[gi] + w->plan[gi]->blockop[b],
				       (uint32_t)w->sect[MAP_INSNLEN].n,
				       (uint16_t)k->n,
				       (uint16_t)k->flags,
				       group,
				       w->base[gi] + w->em[gi]->block_off[b]};

		if ((k->flags & AN_B_ENTRY) && mb.vaddr < mg.vaddr)
			mg.vaddr = mb.vaddr;
		for (uint32_t i = 0; i < k->n; i++)
			add(&w->sect[MAP_INSNLEN], &g->insn[k->first + i].len, 1);
		add(&w->sect[MAP_INSNOPS], w->plan[gi]->insnops + k->first, k->n);
		add(&w->sect[MAP_BLOCKS], &mb, sizeof(mb));
	}
	if (mg.vaddr == AN_NONE)
		mg.vaddr = g->nblock ? block_vaddr(g, 0) : 0;
	add(&w->sect[MAP_GROUPS], &mg, sizeof(mg));
}

static int put_sites(struct mw *w, uint32_t gi, uint32_t *site_of)
{
	const struct an_group *g = &w->m->group[gi];
	const struct emitted *x = w->em[gi];

	memset(site_of, 0xff, g->nblock * 4);
	for (uint32_t i = 0; i < x->nsite; i++) {
		uint32_t b = x->site[i].block, op = w->plan[gi]->entryop[b];
		struct map_site s = {block_vaddr(g, b), x->site[i].kind, w->opbase[gi] + op};

		if (op == AN_NONE)
			return -1;
		site_of[b] = w->sitebase[gi] + i;
		add(&w->sect[MAP_SITES], &s, sizeof(s));
	}
	return 0;
}

/* Every block that control enters from outside, and where a system call comes back (the decoder
 * needs its address for rcx). */
static void put_leaders(struct mw *w, uint32_t gi, const uint32_t *site_of)
{
	const struct an_group *g = &w->m->group[gi];
	const struct plan *p = w->plan[gi];

	for (uint32_t b = 0; b < g->nblock; b++) {
		const struct an_block *k = &g->block[b];
		struct map_leader l = {block_vaddr(g, b), w->opbase[gi] + p->blockop[b], 0};
		bool after = k->first && g->insn[k->first - 1].flow == FLOW_SYSCALL;

		if (k->flags & (AN_B_TARGET | AN_B_ANYTARGET))
			l.flags |= MAP_LEADER_TARGET |
				   (glue_stub(w->m, g, b) == STUB_RELOAD ? MAP_LEADER_RELOAD : 0);
		if (k->flags & AN_B_RETURN) {
			l.flags |= MAP_LEADER_RETURN;
			if (p->retop[b] != AN_NONE)
				l.ops = w->opbase[gi] + p->retop[b];
		}
		if (k->flags & AN_B_ENTRY)
			l.flags |= MAP_LEADER_ENTRY;
		if (!l.flags && !after && site_of[b] == AN_NONE)
			continue;
		if (site_of[b] != AN_NONE)
			l.flags |= site_of[b] << 8;
		add(&w->sect[MAP_LEADERS], &l, sizeof(l));
	}
}

/* ---- what does not depend on groups ---- */

static void put_ranges(struct mw *w)
{
	struct module *m = w->m;
	struct buf *b = &w->sect[MAP_RANGES];
	struct map_range *r;
	size_t n = 0, total;

	for (uint32_t gi = 0; gi < m->ngroup; gi++)
		if (m->group[gi].reason == MAP_OK)
			add(b, m->group[gi].range, m->group[gi].nrange * sizeof(*r));
	r = (void *)b->p;
	total = b->n / sizeof(*r);
	if (!total)
		return;
	qsort(r, total, sizeof(*r), by_first);
	for (size_t i = 1; i < total; i++) {
		if (r[i].start > r[n].end)
			r[++n] = r[i];
		else if (r[i].end > r[n].end)
			r[n].end = r[i].end;
	}
	b->n = (n + 1) * sizeof(*r);
}

static void put_module(struct mw *w)
{
	struct module *m = w->m;
	const char *slash = strrchr(m->path, '/');

	w->name = string(w, m->soname ? m->soname : slash ? slash + 1 : m->path);
	put_ranges(w);
	for (uint32_t i = 0; i < m->nopaque; i++) {
		struct map_opaque o = m->opaque[i];

		o.name = 0;
		add(&w->sect[MAP_OPAQUE], &o, sizeof(o));
	}
	if (m->nopaque)
		qsort(w->sect[MAP_OPAQUE].p, m->nopaque, sizeof(struct map_opaque), by_first);
	add(&w->sect[MAP_SEGS], m->seg, m->nseg * sizeof(*m->seg));
	for (uint32_t i = 0; i < m->nro; i++) {
		struct map_rodata r = {m->ro[i].vaddr, m->ro[i].size, w->sect[MAP_ROBYTES].n,
				       m->ro[i].addresses ? MAP_RO_ADDRESSES : 0, 0};

		add(&w->sect[MAP_RODATA], &r, sizeof(r));
		add(&w->sect[MAP_ROBYTES], m->ro[i].bytes, m->ro[i].size);
	}
}

/* the large sections at their final sizes: growing them would copy and touch twice as much */
static void reserve(struct mw *w)
{
	size_t size[MAP_NSECTIONS] = {
		[MAP_COPY] = w->ncopy,
		[MAP_BLOCKS] = w->nblock * sizeof(struct map_block),
		[MAP_INSNLEN] = w->ninsn,
		[MAP_INSNOPS] = w->ninsn,
		[MAP_OPS] = w->nop * sizeof(struct sem_op),
	};

	for (uint32_t gi = 0; gi < w->m->ngroup; gi++) {
		if (!w->em[gi])
			continue;
		size[MAP_FIXUPS] += w->em[gi]->nfix * sizeof(struct map_fixup);
		size[MAP_XLAT] += w->em[gi]->nxlat * sizeof(struct map_xlat);
	}
	for (uint32_t i = 0; i < w->m->nro; i++)
		size[MAP_ROBYTES] += w->m->ro[i].size;
	for (int s = 0; s < MAP_NSECTIONS; s++) {
		struct buf *b = &w->sect[s];

		b->cap = size[s];
		b->p = size[s] ? malloc(size[s]) : NULL;
		if (size[s] && !b->p)
			abort();
	}
}

int sect_all(struct mw *w, char *err, size_t errlen)
{
	struct module *m = w->m;
	uint32_t *site_of = malloc(((size_t)w->nblock + 1) * 4);
	int r = 0;

	if (!site_of)
		abort();
	reserve(w);
	string(w, NULL);
	for (uint32_t gi = 0; gi < m->ngroup && !r; gi++) {
		if (m->group[gi].reason != MAP_OK)
			continue;
		put_copy(w, gi);
		put_blocks(w, gi);
		if (put_ops(w, gi) || put_sites(w, gi, site_of)) {
			snprintf(err, errlen, "group at %x: plan and copy disagree",
				 m->group[gi].insn[0].vaddr);
			r = -1;
		}
		if (!r)
			put_leaders(w, gi, site_of);
	}
	free(site_of);
	if (r)
		return r;
	if (w->sect[MAP_FIXUPS].n)
		qsort(w->sect[MAP_FIXUPS].p, w->sect[MAP_FIXUPS].n / sizeof(struct map_fixup),
		      sizeof(struct map_fixup), by_first);
	if (w->sect[MAP_LEADERS].n)
		qsort(w->sect[MAP_LEADERS].p, w->sect[MAP_LEADERS].n / sizeof(struct map_leader),
		      sizeof(struct map_leader), by_first);
	put_module(w);
	if (patch_write(m, &w->ps, w->em, w->base)) {
		snprintf(err, errlen, "a patch has no stub to go to");
		return -1;
	}
	add(&w->sect[MAP_PATCHES], w->ps.p, w->ps.n * sizeof(*w->ps.p));
	return 0;
}
