/* SPDX-License-Identifier: MIT
 *
 * map_sect.c - the sections of a map, from the emitted groups and their plans
 *
 * Here what a group knows by its own numbers (block, op, site, text offset) becomes the module's. Each section
 * goes through all groups, and is made in place where the group has it already.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "map_out.h"
#include "map_sect.h"
#include "sort.h"

static void add(struct buf *b, const void *p, size_t n)
{
	if (!b->p || b->n + n > b->cap) {
		b->cap = (b->n + n) * 2 + 256;
		b->p = realloc(b->p, b->cap);
		if (!b->p)
			abort();
	}
	if (n)
		memcpy(b->p + b->n, p, n);
	b->n += n;
}

/* a section made in one piece */
static void put_buf(struct mw *w, struct buf *b)
{
	out_section(w->out);
	out_add(w->out, b->p, b->n);
	free(b->p);
	memset(b, 0, sizeof(*b));
}

/* a section made by group */
static void each(struct mw *w, void (*put)(struct mw *w, uint32_t gi))
{
	for (uint32_t gi = 0; gi < w->m->ngroup; gi++)
		if (w->m->group[gi].reason == MAP_OK)
			put(w, gi);
}

static uint32_t string(struct mw *w, const char *s)
{
	struct buf *b = &w->strings;

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
	struct emitted *x = w->em[gi];
	uint32_t base = w->base[gi];

	for (uint32_t i = 0; i < x->nfix; i++) {
		uint8_t *p = x->text + x->fix[i].copy_off;
		uint32_t v;

		memcpy(&v, p, 4);
		if (x->fix[i].kind == MAP_FIX_MOD32)
			v -= base;
		else if (x->fix[i].kind == MAP_FIX_MARK)
			v += w->sitebase[gi] << RUN_MARK_ID_SHIFT;
		memcpy(p, &v, 4);
	}
	for (uint32_t i = 0; i < x->nref; i++) {
		const struct emit_ref *r = &x->ref[i];
		uint32_t v =
			w->base[r->group] + w->em[r->group]->block_off[r->block] - (base + r->text_off + 4);

		memcpy(x->text + r->text_off, &v, 4);
	}
	out_fill(w->out, 0xcc, base - out_size(w->out));
	out_add(w->out, x->text, x->ntext);
}

/* The groups' texts follow each other, so sorting each group's is sorting all. */
static void put_fixups(struct mw *w, uint32_t gi)
{
	struct emitted *x = w->em[gi];

	for (uint32_t i = 0; i < x->nfix; i++)
		x->fix[i].copy_off += w->base[gi];
	sort_first(x->fix, x->nfix, sizeof(*x->fix));
	out_add(w->out, x->fix, x->nfix * sizeof(*x->fix));
}

static void put_xlat(struct mw *w, uint32_t gi)
{
	const struct emitted *x = w->em[gi];
	const struct map_xlat *from = x->xlat;

	for (uint32_t k, left = x->nxlat; left; left -= k) {
		struct map_xlat *to;

		k = left < OUT_ROOM / sizeof(*to) ? left : OUT_ROOM / sizeof(*to);
		to = out_room(w->out, k * sizeof(*to));
		for (uint32_t i = 0; i < k; i++) {
			*to = *from++;
			to++->copy_off += w->base[gi];
		}
	}
	w->nxlat += x->nxlat;
}

static void put_place(struct mw *w, uint32_t gi)
{
	struct map_place p = w->em[gi]->place;

	if (p.copy_off == AN_NONE)
		return;
	p.copy_off += w->base[gi];
	out_add(w->out, &p, sizeof(p));
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

/* op asks where control went at the end of a block: where that is in the copy */
static bool ask(const struct mw *w, uint32_t gi, uint32_t block, struct sem_op *o)
{
	const struct emit_flow *f = w->em[gi]->flow;
	uint32_t at;

	if (!f || !f[block].len)
		return false;
	f += block;
	at = w->base[gi] + f->off;
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

static int number_ops(struct mw *w, uint32_t gi)
{
	_Static_assert(SEM_RECVEC + 1 == SEM_RECREP && SEM_RECREP + 1 == SEM_RECXS && SEM_RECXS < SEM_VCHK &&
			       SEM_VCHK < SEM_FLOW && SEM_VCHK < SEM_PTW && SEM_VCHK < SEM_PTWSX &&
			       SEM_VCHK < SEM_BLOCK,
		       "what is looked at comes behind what is not");
	const struct plan *p = w->plan[gi];
	struct sem_op *o = p->op;
	uint32_t block = 0, nptw = 0;

	for (uint32_t i = 0; i < p->nop; i++) {
		uint32_t t = SEM_TAKEN(o[i].imm), n = SEM_NEXT(o[i].imm);
		bool taken = true, next = true;

		if (o[i].op <= SEM_VCHK) { /* most */
			i += o[i].op >= SEM_RECVEC && o[i].op <= SEM_RECXS; /* with a second slot */
			continue;
		}
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

static void put_ops(struct mw *w, uint32_t gi)
{
	if (!w->disagree && number_ops(w, gi))
		w->disagree = &w->m->group[gi];
	out_add(w->out, w->plan[gi]->op, w->plan[gi]->nop * sizeof(*w->plan[gi]->op));
}

/* ---- blocks, sites, leaders ---- */

/* MAP_G_UNWRITTEN */
static uint32_t unwritten(const struct an_group *g)
{
	static const uint8_t saved[] = {SEM_RBX, SEM_RBP, SEM_R12, SEM_R12 + 1, SEM_R12 + 2, SEM_R12 + 3};
	uint32_t writes = g->sum->ownwrite | g->sum->maywrite, set = 0;

	for (uint32_t i = 0; i < sizeof(saved); i++)
		set |= (~writes >> saved[i] & 1) << i;
	return set * MAP_G_UNWRITTEN;
}

static void put_group(struct mw *w, uint32_t gi)
{
	const struct an_group *g = &w->m->group[gi];
	struct map_group mg = {AN_NONE, string(w, g->name), w->blockbase[gi], g->nblock,
			       (g->sum->keeps ? MAP_G_KEEPS : 0) | unwritten(g)};

	for (uint32_t b = 0; b < g->nblock; b++)
		if ((g->block[b].flags & AN_B_ENTRY) && block_vaddr(g, b) < mg.vaddr)
			mg.vaddr = block_vaddr(g, b);
	if (mg.vaddr == AN_NONE)
		mg.vaddr = g->nblock ? block_vaddr(g, 0) : 0;
	out_add(w->out, &mg, sizeof(mg));
}

static void put_blocks(struct mw *w, uint32_t gi)
{
	const struct an_group *g = &w->m->group[gi];
	const uint32_t *op = w->plan[gi]->blockop, *off = w->em[gi]->block_off;

	for (uint32_t b = 0; b < g->nblock; b++) {
		const struct an_block *k = &g->block[b];
		struct map_block *mb = out_room(w->out, sizeof(*mb));

		*mb = (struct map_block){block_vaddr(g, b),   w->opbase[gi] + op[b], w->insn,
					 (uint16_t)k->n,      (uint16_t)k->flags,    w->group,
					 w->base[gi] + off[b]};
		w->insn += k->n;
	}
	w->group++;
}

static void put_insnlen(struct mw *w, uint32_t gi)
{
	const struct an_group *g = &w->m->group[gi];

	for (uint32_t b = 0; b < g->nblock; b++) {
		const struct an_insn *n = &g->insn[g->block[b].first];

		for (uint32_t k, left = g->block[b].n; left; left -= k) {
			uint8_t *p;

			k = left < OUT_ROOM ? left : OUT_ROOM;
			p = out_room(w->out, k);
			for (uint32_t i = 0; i < k; i++)
				*p++ = n++->len;
		}
	}
}

static void put_insnops(struct mw *w, uint32_t gi)
{
	const struct an_group *g = &w->m->group[gi];

	for (uint32_t b = 0; b < g->nblock; b++)
		out_add(w->out, w->plan[gi]->insnops + g->block[b].first, g->block[b].n);
}

static void put_sites(struct mw *w, uint32_t gi)
{
	const struct an_group *g = &w->m->group[gi];
	const struct emitted *x = w->em[gi];

	for (uint32_t i = 0; i < x->nsite; i++) {
		uint32_t b = x->site[i].block, op = w->plan[gi]->entryop[b];
		struct map_site s = {block_vaddr(g, b), x->site[i].kind, w->opbase[gi] + op};

		if (op == AN_NONE && !w->disagree)
			w->disagree = g;
		out_add(w->out, &s, sizeof(s));
	}
}

/* Every block that control enters from outside, and where a system call comes back (the decoder
 * needs its address for rcx). */
static void put_leaders(struct mw *w, uint32_t gi)
{
	const struct an_group *g = &w->m->group[gi];
	const struct plan *p = w->plan[gi];
	uint32_t *site_of = w->site_of;

	memset(site_of, 0xff, g->nblock * sizeof(*site_of));
	for (uint32_t i = 0; i < w->em[gi]->nsite; i++)
		site_of[w->em[gi]->site[i].block] = w->sitebase[gi] + i;
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
		add(&w->buf, &l, sizeof(l));
	}
}

/* ---- what does not depend on groups ---- */

static void make_ranges(struct mw *w, struct buf *b)
{
	struct module *m = w->m;
	struct map_range *r;
	size_t n = 0, total;

	for (uint32_t gi = 0; gi < m->ngroup; gi++)
		if (m->group[gi].reason == MAP_OK)
			add(b, m->group[gi].range, m->group[gi].nrange * sizeof(*r));
	r = (void *)b->p;
	total = b->n / sizeof(*r);
	if (!total)
		return;
	sort_first(r, total, sizeof(*r));
	for (size_t i = 1; i < total; i++) {
		if (r[i].start > r[n].end)
			r[++n] = r[i];
		else if (r[i].end > r[n].end)
			r[n].end = r[i].end;
	}
	b->n = (n + 1) * sizeof(*r);
}

static void make_opaque(struct mw *w, struct buf *b)
{
	for (uint32_t i = 0; i < w->m->nopaque; i++) {
		struct map_opaque o = w->m->opaque[i];

		o.name = 0;
		add(b, &o, sizeof(o));
	}
	sort_first(b->p, b->n / sizeof(struct map_opaque), sizeof(struct map_opaque));
}

static void put_rodata(struct mw *w)
{
	const struct module *m = w->m;
	uint64_t at = 0;

	out_section(w->out); /* MAP_RODATA */
	for (uint32_t i = 0; i < m->nro; i++) {
		struct map_rodata r = {m->ro[i].vaddr, m->ro[i].size, at,
				       m->ro[i].addresses ? MAP_RO_ADDRESSES : 0, 0};

		out_add(w->out, &r, sizeof(r));
		at += m->ro[i].size;
	}
	out_section(w->out); /* MAP_ROBYTES */
	for (uint32_t i = 0; i < m->nro; i++)
		out_add(w->out, m->ro[i].bytes, m->ro[i].size);
}

/* the sections that are made by group, behind those of the text and the patches */
static void put_groups(struct mw *w)
{
	static void (*const put[])(struct mw *, uint32_t) = {
		put_group, put_blocks, put_insnlen, put_insnops, put_ops, put_sites,
	};

	_Static_assert(MAP_SITES - MAP_GROUPS + 1 == sizeof(put) / sizeof(*put), "one for each section");
	for (uint32_t i = 0; i < sizeof(put) / sizeof(*put); i++) {
		out_section(w->out);
		each(w, put[i]);
	}
	each(w, put_leaders);
	sort_first(w->buf.p, w->buf.n / sizeof(struct map_leader), sizeof(struct map_leader));
	put_buf(w, &w->buf);
}

/* sect_all - all sections in their order (enum map_section) */
int sect_all(struct mw *w, char *err, size_t errlen)
{
	struct module *m = w->m;
	const char *slash = strrchr(m->path, '/');

	w->site_of = malloc(((size_t)w->nblock + 1) * sizeof(*w->site_of));
	if (!w->site_of)
		abort();
	string(w, NULL);
	out_section(w->out);
	each(w, put_copy);
	out_section(w->out);
	each(w, put_fixups);
	out_section(w->out);
	if (patch_write(m, &w->ps, w->em, w->base)) {
		snprintf(err, errlen, "a patch has no stub to go to");
		return -1;
	}
	out_add(w->out, w->ps.p, w->ps.n * sizeof(*w->ps.p));
	make_ranges(w, &w->buf);
	put_buf(w, &w->buf);
	make_opaque(w, &w->buf);
	put_buf(w, &w->buf);
	put_groups(w);
	out_section(w->out);
	each(w, put_xlat);
	put_rodata(w);
	out_section(w->out);
	out_add(w->out, m->seg, m->nseg * sizeof(*m->seg));
	w->name = string(w, m->soname ? m->soname : slash ? slash + 1 : m->path);
	put_buf(w, &w->strings);
	out_section(w->out);
	each(w, put_place);
	if (w->disagree) {
		snprintf(err, errlen, "group at %x: plan and copy disagree", w->disagree->insn[0].vaddr);
		return -1;
	}
	return 0;
}
