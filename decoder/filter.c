/* SPDX-License-Identifier: MIT
 *
 * filter.c - which records are written: by number, address, module, function
 *
 * Numbers count all records of the chosen threads, before the other filters, so that a range
 * found in one output can be asked for in another. Block records (for instruction lines)
 * pass where the number and the code filters let them.
 */
#include <string.h>
#include "out.h"

static bool code_matches(struct filter *f, const struct proc *p, uint64_t ip, uint64_t *lo, uint64_t *hi)
{
	const struct modrec *m = sym_module(p, ip);
	const char *base, *fn;
	uint64_t start;

	*lo = ip;
	*hi = ip + 1;
	if (!m)
		return false;
	base = strrchr(m->path, '/');
	base = base ? base + 1 : m->path;
	if (f->module && strcmp(f->module, base) && strcmp(f->module, m->path)) {
		*lo = m->m.lo;
		*hi = m->m.hi;
		return false;
	}
	if (!f->function) {
		*lo = m->m.lo;
		*hi = m->m.hi;
		return true;
	}
	fn = sym_function(f->run->sym, p, ip, &start);
	return fn && !strcmp(fn, f->function);
}

static bool code_passes(struct filter *f, const struct ptrace_rec *r)
{
	struct fcache *c = &f->cache[(r->ip ^ r->ip >> 8) % NELEM(f->cache)];

	if (r->ip >= c->lo && r->ip < c->hi && c->tid == r->tid)
		return c->yes;
	c->tid = r->tid;
	c->yes = code_matches(f, f->run->thread[r->tid]->proc, r->ip, &c->lo, &c->hi);
	return c->yes;
}

bool filter_any(const struct filter *f)
{
	return f->by_addr || f->module || f->function || f->from || f->to != UINT64_MAX;
}

size_t filter_batch(struct filter *f, struct ptrace_rec *rec, uint64_t *time, size_t n, bool *stop)
{
	size_t k = 0;

	if (!filter_any(f))
		return n;
	for (size_t i = 0; i < n; i++) {
		const struct ptrace_rec *r = &rec[i];
		bool block = r->kind == WALK_BLOCK;
		uint64_t no = f->seen;

		if (no >= f->to) {
			*stop = true;
			break;
		}
		f->seen += !block;
		if (no < f->from)
			continue;
		if (f->by_addr && (block || r->addr >= f->hi || r->addr + r->size <= f->lo))
			continue;
		if ((f->module || f->function) && !code_passes(f, r))
			continue;
		if (time)
			time[k] = time[i];
		rec[k++] = *r;
	}
	return k;
}
