// SPDX-License-Identifier: MIT
//
// flow_list.c - a provider (decoder/flow.h) that knows the addresses of all executed instructions
//
// It holds the walk to the contract, with no packets and no image in between: an instruction that is asked about and
// passed without a question, or asked about and not executed next, is an error.
#include <stdlib.h>
#include <string.h>
#include "../../decoder/dec.h"
#include "../../decoder/flow.h"
#include "sem_eval.h"
#include "flow_list.h"

struct list {
	struct flow f;
	const uint64_t *ip;
	size_t n, at; /* at: not passed yet */
	uint64_t *set; /* hash of what is asked about, 0: free */
	size_t cap, nset;
	const struct modrec **mod; /* live, with maps */
	size_t nmod;
};

static uint64_t *slot(const struct list *l, uint64_t ip)
{
	size_t i = ip * 0x9e3779b97f4a7c15ull >> 32 & (l->cap - 1);

	while (l->set[i] && l->set[i] != ip)
		i = (i + 1) & (l->cap - 1);
	return &l->set[i];
}

static bool asked(const struct list *l, uint64_t ip)
{
	return l->cap && !(ip & FLOW_BROKEN) && *slot(l, ip);
}

static void add(struct list *l, uint64_t ip)
{
	uint64_t *old = l->set;
	size_t n = l->cap;

	if (l->nset * 2 >= l->cap) {
		l->cap = n ? n * 2 : 4096;
		l->set = xcalloc(l->cap, sizeof(*l->set));
		for (size_t i = 0; i < n; i++)
			if (old[i])
				*slot(l, old[i]) = old[i];
		free(old);
	}
	if (!*slot(l, ip))
		l->nset++;
	*slot(l, ip) = ip;
}

static int branch(struct flow *f, uint64_t ip, uint64_t *next)
{
	struct list *l = (struct list *)f;

	while (l->at < l->n && !asked(l, l->ip[l->at]))
		l->at++;
	if (l->at + 1 >= l->n) {
		snprintf(f->why, sizeof(f->why), "the list of executed instructions ends");
		return FLOW_END;
	}
	if (l->ip[l->at] != ip) {
		snprintf(f->why, sizeof(f->why), "entry %zu is %#llx, asked is %#llx", l->at,
			 (unsigned long long)l->ip[l->at], (unsigned long long)ip);
		return FLOW_LOST;
	}
	*next = l->ip[++l->at] & ~FLOW_BROKEN;
	return FLOW_OK;
}

static bool stops(struct flow *f, uint64_t ip, bool back)
{
	struct list *l = (struct list *)f;

	(void)back; /* with signals that wait the list is in the order of what was executed, too */
	for (size_t i = l->at; i < l->n && !asked(l, l->ip[i]); i++)
		if (l->ip[i] == (ip | FLOW_BROKEN)) {
			l->at = i + 1;
			return true;
		}
	return false;
}

static int value(struct flow *f, uint64_t ip, uint64_t *v)
{
	(void)f;
	(void)ip;
	(void)v;
	return FLOW_END; /* a list of places has none */
}

static bool more(struct flow *f)
{
	struct list *l = (struct list *)f;

	while (l->at < l->n && !asked(l, l->ip[l->at]) && !(l->ip[l->at] & FLOW_BROKEN))
		l->at++;
	return l->at + 1 < l->n && asked(l, l->ip[l->at]);
}

static int resync(struct flow *f, uint32_t *counter)
{
	(void)f;
	(void)counter;
	return FLOW_END;
}

static void entered(struct flow *f, uint64_t at)
{
	(void)f;
	(void)at;
}

static void add_all(struct list *l, const struct modrec *rec)
{
	for (uint32_t i = 0; i < rec->map->nop; i++) {
		const struct sem_op *o = &rec->map->op[i];

		if (o->op == SEM_FLOW || o->op == SEM_JCC_FLOW)
			add(l, rec->m.copy_base + SEM_FLOW_AT(o->a, o->b));
		i += sem_has_slot(o->op);
	}
}

static void module(struct flow *f, const struct modrec *rec)
{
	struct list *l = (struct list *)f;
	size_t n = l->nmod;

	for (size_t i = l->nmod = 0; i < n; i++) /* those that it replaces are gone */
		if (l->mod[i]->m.hi <= rec->m.lo || rec->m.hi <= l->mod[i]->m.lo)
			l->mod[l->nmod++] = l->mod[i];
	if (l->nmod < n) {
		memset(l->set, 0, l->cap * sizeof(*l->set));
		l->nset = 0;
		for (size_t i = 0; i < l->nmod; i++)
			add_all(l, l->mod[i]);
	}
	if (!rec->map)
		return;
	l->mod = xrealloc(l->mod, l->nmod + 1, sizeof(*l->mod));
	l->mod[l->nmod++] = rec;
	add_all(l, rec);
}

static void list_close(struct flow *f)
{
	struct list *l = (struct list *)f;

	free(l->mod);
	free(l->set);
	free(l);
}

struct flow *flow_list(const uint64_t *ip, size_t n)
{
	static const struct flow_ops ops = {branch, value, stops, more, resync, entered, module, list_close};
	struct list *l = xcalloc(1, sizeof(*l));

	l->f.ops = &ops;
	l->ip = ip;
	l->n = n;
	return &l->f;
}
