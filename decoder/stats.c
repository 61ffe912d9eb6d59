/* SPDX-License-Identifier: MIT
 *
 * stats.c - what a run did: accesses by function, footprint
 *
 * Both are counted a record at a time, so both have a cache that hits nearly always: the last
 * function an instruction belonged to, by instruction; the last page, by page. The footprint is
 * exact up to MAX_PAGES pages; beyond it is a lower bound and said to be one.
 */
#include <stdlib.h>
#include <string.h>
#include "out.h"

#define NIC 8192
#define MAX_PAGES (8u << 20) /* 16 bytes each, table at most 3/4 full: 256 MiB */

struct page {
	uint64_t no, lines;
}; /* lines != 0 where used */
struct foot {
	struct page *tab;
	uint64_t cap, pages;
	bool full;
	struct page *last;
};

struct stats *stats_new(struct ptrace_run *r)
{
	struct stats *s = xcalloc(1, sizeof(*s));

	s->run = r;
	s->complete = true;
	s->ic = xcalloc(NIC, sizeof(*s->ic));
	s->capfn = 256;
	s->fn = xcalloc(s->capfn, sizeof(*s->fn));
	s->slot = xcalloc(s->capfn * 2, sizeof(*s->slot));
	s->nfn = 1; /* 0: unknown code */
	s->foot = xcalloc(1, sizeof(*s->foot));
	s->foot->cap = 4096;
	s->foot->tab = xcalloc(s->foot->cap, sizeof(struct page));
	return s;
}

void stats_free(struct stats *s)
{
	if (!s)
		return;
	free(s->foot->tab);
	free(s->foot);
	free(s->slot);
	free(s->fn);
	free(s->ic);
	free(s);
}

static struct page *page_slot(const struct foot *f, uint64_t no)
{
	uint64_t i = no * 0x9e3779b97f4a7c15ull >> 24 & (f->cap - 1);

	while (f->tab[i].lines && f->tab[i].no != no)
		i = (i + 1) & (f->cap - 1);
	return &f->tab[i];
}

static void foot_grow(struct foot *f)
{
	struct page *old = f->tab;
	uint64_t cap = f->cap;

	f->cap *= 2;
	f->tab = xcalloc(f->cap, sizeof(*f->tab));
	for (uint64_t i = 0; i < cap; i++)
		if (old[i].lines)
			*page_slot(f, old[i].no) = old[i];
	free(old);
	f->last = NULL;
}

static void touch_line(struct foot *f, uint64_t line)
{
	uint64_t no = line >> 6;
	struct page *p = f->last;

	if (!p || p->no != no) {
		p = page_slot(f, no);
		if (!p->lines) {
			if (f->pages >= MAX_PAGES) {
				f->full = true;
				return;
			}
			f->pages++;
			p->no = no;
			if (f->pages * 4 > f->cap * 3) {
				p->lines = 1ull << (line & 63);
				foot_grow(f);
				return;
			}
		}
		f->last = p;
	}
	p->lines |= 1ull << (line & 63);
}

void stats_footprint(const struct stats *s, uint64_t *lines, uint64_t *pages, bool *all)
{
	*lines = 0;
	for (uint64_t i = 0; i < s->foot->cap; i++)
		*lines += __builtin_popcountll(s->foot->tab[i].lines);
	*pages = s->foot->pages;
	*all = !s->foot->full;
}

static uint32_t *fn_slot(const struct stats *s, const char *name, const struct modrec *rec, uint64_t start)
{
	uint32_t mask = s->capfn * 2 - 1;
	uint32_t i = (start ^ (uintptr_t)rec) * 0x9e3779b97f4a7c15ull >> 32 & mask;

	while (s->slot[i] && (s->fn[s->slot[i]].rec != rec || s->fn[s->slot[i]].start != start))
		i = (i + 1) & mask;
	(void)name;
	return &s->slot[i];
}

static uint32_t function_of(struct stats *s, const struct proc *p, uint64_t ip)
{
	const struct modrec *rec = sym_module(p, ip);
	uint64_t start;
	const char *name = sym_function(s->run->sym, p, ip, &start);
	uint32_t *at;

	if (!rec)
		return 0;
	at = fn_slot(s, name, rec, start);
	if (*at)
		return *at;
	if (s->nfn == s->capfn) {
		s->capfn *= 2;
		s->fn = xrealloc(s->fn, s->capfn, sizeof(*s->fn));
		free(s->slot);
		s->slot = xcalloc(s->capfn * 2, sizeof(*s->slot));
		for (uint32_t i = 1; i < s->nfn; i++)
			*fn_slot(s, s->fn[i].name, s->fn[i].rec, s->fn[i].start) = i;
		at = fn_slot(s, name, rec, start);
	}
	s->fn[s->nfn] = (struct fcount){name, rec, start, 0, 0};
	return *at = s->nfn++;
}

void stats_batch(struct stats *s, const struct ptrace_rec *rec, size_t n)
{
	struct foot *f = s->foot;

	for (size_t i = 0; i < n; i++) {
		const struct ptrace_rec *r = &rec[i];
		struct icache *c = &s->ic[(r->ip ^ r->ip >> 13) % NIC];
		uint64_t line = r->addr >> 6, last;

		if (r->kind == WALK_BLOCK)
			continue;
		if (c->ip != r->ip || c->tid != r->tid || !c->ip) {
			c->fn = function_of(s, s->run->thread[r->tid]->proc, r->ip);
			c->ip = r->ip;
			c->tid = r->tid;
		}
		s->fn[c->fn].count++;
		if (r->kind == PTRACE_P || !r->size)
			continue;
		last = (r->addr + r->size - 1) >> 6;
		do
			touch_line(f, line);
		while (line++ != last);
	}
}

void stats_thread(struct stats *s, struct proc *p, const struct walk_result *res)
{
	for (uint32_t i = 0; i < res->nplace; i++) {
		uint32_t fn = function_of(s, p, res->place[i].ip);

		s->fn[fn].opaque += res->place[i].count;
	}
	s->unexpected += res->unexpected;
}
