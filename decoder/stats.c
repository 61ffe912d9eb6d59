/* SPDX-License-Identifier: MIT
 *
 * stats.c - what a run did, by function
 *
 * Of a whole run, from the counts of its blocks. When only some records were asked for, by record, with
 * a cache of the functions that instructions belong to.
 */
#include <stdlib.h>
#include <string.h>
#include "out.h"

#define NIC 8192

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
	s->foot = foot_new();
	return s;
}

void stats_free(struct stats *s)
{
	if (!s)
		return;
	foot_free(s->foot);
	free(s->slot);
	free(s->fn);
	free(s->ic);
	free(s->wblock);
	free(s);
}

/* a module with a map is the same in every process */
static const void *identity(const struct modrec *rec)
{
	return rec->map ? (const void *)rec->map : rec;
}

static uint32_t *fn_slot(const struct stats *s, const struct modrec *rec, uint64_t vaddr)
{
	uint32_t mask = s->capfn * 2 - 1;
	uint32_t i = (vaddr ^ (uintptr_t)identity(rec)) * 0x9e3779b97f4a7c15ull >> 32 & mask;

	while (s->slot[i] &&
	       (identity(s->fn[s->slot[i]].rec) != identity(rec) || s->fn[s->slot[i]].vaddr != vaddr))
		i = (i + 1) & mask;
	return &s->slot[i];
}

static uint32_t function_at(struct stats *s, const struct modrec *rec, const char *name, uint64_t start)
{
	uint64_t vaddr = rec ? start - rec->m.bias : 0;
	uint32_t *at;

	if (!rec)
		return 0;
	at = fn_slot(s, rec, vaddr);
	if (*at)
		return *at;
	if (s->nfn == s->capfn) {
		s->capfn *= 2;
		s->fn = xrealloc(s->fn, s->capfn, sizeof(*s->fn));
		free(s->slot);
		s->slot = xcalloc(s->capfn * 2, sizeof(*s->slot));
		for (uint32_t i = 1; i < s->nfn; i++)
			*fn_slot(s, s->fn[i].rec, s->fn[i].vaddr) = i;
		at = fn_slot(s, rec, vaddr);
	}
	s->fn[s->nfn] = (struct fcount){.name = name, .rec = rec, .vaddr = vaddr};
	return *at = s->nfn++;
}

static uint32_t function_of(struct stats *s, const struct proc *p, uint64_t ip)
{
	const struct modrec *rec = sym_module(p, ip);
	uint64_t start;
	const char *name = sym_function(s->run->sym, p, ip, &start);

	return function_at(s, rec, name, start);
}

static void by_record(struct stats *s, const struct ptrace_rec *rec, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct ptrace_rec *r = &rec[i];
		struct icache *c = &s->ic[(r->ip ^ r->ip >> 13) % NIC];

		if (r->kind == WALK_BLOCK)
			continue;
		if (c->ip != r->ip || c->tid != r->tid || !c->ip) {
			c->fn = function_of(s, s->run->thread[r->tid]->proc, r->ip);
			c->ip = r->ip;
			c->tid = r->tid;
		}
		s->fn[c->fn].count++;
	}
}

void stats_batch(struct stats *s, const struct ptrace_rec *rec, size_t n)
{
	foot_batch(s->foot, rec, n);
	if (s->some)
		by_record(s, rec, n);
}

/* Blocks of a group are neighbours: its name is looked up once. A group without one may be several
 * functions of the ELF file. */
static void by_block_counts(struct stats *s, const struct walk_result *res)
{
	const struct modrec *rec = NULL;
	uint32_t group = NONE32, fn = 0;

	for (uint32_t i = 0; i < res->nblock; i++) {
		const struct walk_block *b = &res->block[i];
		uint32_t g = b->rec->map->block[b->block].group;

		if (b->rec != rec || g != group || !map_group_name(rec->map, g)) {
			uint64_t start;
			const char *name = sym_group(s->run->sym, b->rec, b->block, &start);

			fn = function_at(s, b->rec, name, start);
			rec = b->rec;
			group = g;
		}
		s->fn[fn].count += b->accesses;
	}
}

static void add_block(struct stats *s, const struct proc *p, const struct walk_why *why)
{
	const struct modrec *rec = sym_module(p, why->ip);
	struct wblock *b;

	if (s->nwblock == s->capwblock) {
		s->capwblock = s->capwblock ? s->capwblock * 2 : 1024;
		s->wblock = xrealloc(s->wblock, s->capwblock, sizeof(*s->wblock));
	}
	b = &s->wblock[s->nwblock++];
	*b = (struct wblock){.rec = rec, .vaddr = why->ip - (rec ? rec->m.bias : 0)};
	for (int k = 0; k < SEM_NWHY; k++) {
		b->bytes[k] = why->bytes[k];
		b->total += why->bytes[k];
	}
}

static void stats_causes(struct stats *s, struct proc *p, const struct walk_result *res)
{
	for (uint32_t i = 0; i < res->nwhy; i++) {
		struct fcount *fn = &s->fn[function_of(s, p, res->why_at[i].ip)];

		add_block(s, p, &res->why_at[i]);
		for (int k = 0; k < SEM_NWHY; k++) {
			s->why_bytes[k] += res->why_at[i].bytes[k];
			fn->log += res->why_at[i].bytes[k];
		}
	}
}

static int by_block(const void *a, const void *b)
{
	const struct wblock *x = a, *y = b;
	const char *p = x->rec ? x->rec->path : "", *q = y->rec ? y->rec->path : "";
	int c = strcmp(p, q);

	return c ? c : x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static int by_total(const void *a, const void *b)
{
	const struct wblock *x = a, *y = b;

	return x->total < y->total ? 1 : x->total > y->total ? -1 : by_block(a, b);
}

void stats_merge_blocks(struct stats *s)
{
	uint32_t n = 0;

	if (!s->nwblock)
		return;
	qsort(s->wblock, s->nwblock, sizeof(*s->wblock), by_block);
	for (uint32_t i = 0; i < s->nwblock; i++) {
		if (!n || by_block(&s->wblock[n - 1], &s->wblock[i])) {
			s->wblock[n++] = s->wblock[i];
			continue;
		}
		s->wblock[n - 1].total += s->wblock[i].total;
		for (int k = 0; k < SEM_NWHY; k++)
			s->wblock[n - 1].bytes[k] += s->wblock[i].bytes[k];
	}
	s->nwblock = n;
	qsort(s->wblock, n, sizeof(*s->wblock), by_total);
}

void stats_thread(struct stats *s, struct proc *p, const struct walk_result *res)
{
	for (uint32_t i = 0; i < res->nplace; i++) {
		uint32_t fn = function_of(s, p, res->place[i].ip);

		s->fn[fn].opaque += res->place[i].count;
	}
	if (!s->some)
		by_block_counts(s, res);
	stats_causes(s, p, res);
	s->unexpected += res->unexpected;
}
