/* SPDX-License-Identifier: MIT
 *
 * map.c - a log-site map, checked once so that the walker need not
 *
 * A map is refused whole when its head or one of the sections the decoder reads is damaged:
 * its ops say how many bytes of the stream to take, so one bad op loses everything after it.
 * What single ops name (registers, op indices) is checked when they are translated (xlat.c).
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "dec.h"
#include "sem_eval.h"

static const struct {
	uint8_t sect;
	uint8_t elem;
	const char *name;
} need[] = {
	{MAP_RANGES, sizeof(struct map_range), "ranges"},
	{MAP_OPAQUE, sizeof(struct map_opaque), "opaque"},
	{MAP_GROUPS, sizeof(struct map_group), "groups"},
	{MAP_BLOCKS, sizeof(struct map_block), "blocks"},
	{MAP_INSNLEN, 1, "instruction lengths"},
	{MAP_INSNOPS, 1, "ops of instructions"},
	{MAP_OPS, sizeof(struct sem_op), "ops"},
	{MAP_SITES, sizeof(struct map_site), "sites"},
	{MAP_LEADERS, sizeof(struct map_leader), "leaders"},
	{MAP_RODATA, sizeof(struct map_rodata), "read-only data"},
	{MAP_ROBYTES, 1, "read-only bytes"},
	{MAP_STRINGS, 1, "strings"},
};

static int check_head(struct map *m, struct ptrace_error *e)
{
	const struct map_head *h = (const void *)m->base;

	if (m->size < sizeof(*h) || h->magic != MAP_MAGIC)
		return err_set(e, PTRACE_BAD, "%s is not a log-site map (or is cut)", m->path);
	if (h->version != MAP_VERSION)
		return err_set(e, PTRACE_BAD,
			       "%s has map version %u, this decoder reads %d: use the "
			       "ptrace-decode of the version that made the run",
			       m->path, h->version, MAP_VERSION);
	if (h->head_xxh3 != XXH3_64bits(h, offsetof(struct map_head, head_xxh3)))
		return err_set(e, PTRACE_BAD, "%s: the head is damaged (checksum)", m->path);
	m->head = h;
	return 0;
}

static int check_sections(struct map *m, struct ptrace_error *e)
{
	for (size_t i = 0; i < NELEM(need); i++) {
		const struct map_sect *s = &m->head->sect[need[i].sect];

		if (s->off > m->size || s->size > m->size - s->off || s->size % need[i].elem || s->off % 8 ||
		    s->size / need[i].elem >= NONE32)
			return err_set(e, PTRACE_BAD, "%s: section %s does not fit in the file (cut?)",
				       m->path, need[i].name);
		if (s->xxh3 != XXH3_64bits(m->base + s->off, s->size))
			return err_set(e, PTRACE_BAD, "%s: section %s is damaged (checksum)", m->path,
				       need[i].name);
	}
	return 0;
}

#define SECT(field, count, s)                                                                                \
	do {                                                                                                 \
		m->field = (const void *)(base + m->head->sect[s].off);                                      \
		m->count = m->head->sect[s].size / sizeof(*m->field);                                        \
	} while (0)

int map_parse(struct map *m, const uint8_t *base, size_t size, struct ptrace_error *e)
{
	m->base = base;
	m->size = size;
	if (check_head(m, e) || check_sections(m, e))
		return -1;
	SECT(op, nop, MAP_OPS);
	SECT(range, nrange, MAP_RANGES);
	SECT(opaque, nopaque, MAP_OPAQUE);
	SECT(group, ngroup, MAP_GROUPS);
	SECT(block, nblock, MAP_BLOCKS);
	SECT(insnlen, ninsnlen, MAP_INSNLEN);
	SECT(insnops, ninsnops, MAP_INSNOPS);
	SECT(site, nsite, MAP_SITES);
	SECT(leader, nleader, MAP_LEADERS);
	SECT(ro, nro, MAP_RODATA);
	SECT(robytes, nrobytes, MAP_ROBYTES);
	SECT(strings, nstrings, MAP_STRINGS);
	return map_check(m, e);
}

struct map *map_open(const char *path, struct ptrace_error *e)
{
	struct map *m = xcalloc(1, sizeof(*m));
	size_t size;
	const uint8_t *base = file_map(path, &size, e);

	m->path = xprintf("%s", path);
	if (!base || map_parse(m, base, size, e)) {
		map_close(m);
		return NULL;
	}
	return m;
}

void map_close(struct map *m)
{
	if (!m)
		return;
	file_unmap(m->base, m->size);
	free(m->by_ops);
	free(m->by_vaddr);
	free(m->path);
	free(m);
}

const char *map_name(const struct map *m, uint32_t off)
{
	return off < m->nstrings ? m->strings + off : "";
}

const struct map_leader *map_leader(const struct map *m, uint32_t vaddr)
{
	uint32_t lo = 0, hi = m->nleader;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (m->leader[mid].vaddr < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < m->nleader && m->leader[lo].vaddr == vaddr ? &m->leader[lo] : NULL;
}

bool map_xlat_at(struct map *m, uint32_t copy_off, struct map_xlat *x)
{
	const struct map_sect *s = &m->head->sect[MAP_XLAT];
	uint32_t lo = 0, hi;

	if (!m->xlat && s->off <= m->size && s->size <= m->size - s->off && !(s->off % 8) &&
	    s->size / sizeof(*x) < NONE32 && s->xxh3 == XXH3_64bits(m->base + s->off, s->size)) {
		m->xlat = (const void *)(m->base + s->off);
		m->nxlat = s->size / sizeof(*x);
	}
	for (hi = m->nxlat; lo < hi;) { /* the first one behind it */
		uint32_t mid = lo + (hi - lo) / 2;

		if (m->xlat[mid].copy_off <= copy_off)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo)
		*x = m->xlat[lo - 1];
	return lo > 0;
}

static int by_ops(const void *a, const void *b, void *map)
{
	const struct map *m = map;
	uint32_t x = m->leader[*(const uint32_t *)a].ops, y = m->leader[*(const uint32_t *)b].ops;

	return x < y ? -1 : x > y;
}

const struct map_leader *map_leader_of(struct map *m, uint32_t op)
{
	uint32_t lo = 0, hi = m->nleader;

	if (!m->by_ops) {
		m->by_ops = xrealloc(NULL, m->nleader, sizeof(*m->by_ops));
		for (uint32_t i = 0; i < m->nleader; i++)
			m->by_ops[i] = i;
		qsort_r(m->by_ops, m->nleader, sizeof(*m->by_ops), by_ops, m);
	}
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (m->leader[m->by_ops[mid]].ops < op)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < m->nleader && m->leader[m->by_ops[lo]].ops == op ? &m->leader[m->by_ops[lo]] : NULL;
}

static int by_vaddr(const void *a, const void *b, void *map)
{
	const struct map *m = map;
	uint32_t x = m->block[*(const uint32_t *)a].vaddr, y = m->block[*(const uint32_t *)b].vaddr;

	return x < y ? -1 : x > y;
}

uint32_t map_block_end(const struct map *m, uint32_t op)
{
	while (op < m->nop && (m->op[op].op <= SEM_BLOCK || m->op[op].op == SEM_RMARK))
		op += 1 + sem_has_slot(m->op[op].op);
	return op;
}

uint32_t map_insn_op(const struct map *m, const struct map_block *b, uint32_t n)
{
	uint32_t op = map_block_end(m, b->ops) + 1;

	while (n < b->ninsn)
		op -= m->insnops[b->insn + n++];
	return op;
}

const struct map_block *map_block_at(struct map *m, uint32_t vaddr)
{
	uint32_t lo = 0, hi = m->nblock;

	if (!m->by_vaddr) { /* in the file they are in order of emission */
		m->by_vaddr = xrealloc(NULL, m->nblock, sizeof(*m->by_vaddr));
		for (uint32_t i = 0; i < m->nblock; i++)
			m->by_vaddr[i] = i;
		qsort_r(m->by_vaddr, m->nblock, sizeof(*m->by_vaddr), by_vaddr, m);
	}
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (m->block[m->by_vaddr[mid]].vaddr <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &m->block[m->by_vaddr[lo - 1]] : NULL;
}

uint32_t map_block_of(const struct map *m, uint32_t op)
{
	if (!map_begins(m, op))
		return NONE32;
	for (; m->op[op].op != SEM_BLOCK; op++) {
		if (m->op[op].op == SEM_JMP)
			return (uint32_t)m->op[SEM_TAKEN(m->op[op].imm)].imm;
		if (m->op[op].op == SEM_HALT || m->op[op].op == SEM_JMPX)
			return NONE32;
	}
	return (uint32_t)m->op[op].imm;
}

const char *map_group_name(const struct map *m, uint32_t group)
{
	const char *s = group < m->ngroup ? map_name(m, m->group[group].name) : "";

	return *s ? s : NULL;
}

const uint8_t *map_rodata(const struct map *m, uint64_t vaddr, size_t n, uint64_t *run)
{
	for (uint32_t i = 0; i < m->nro; i++) {
		const struct map_rodata *r = &m->ro[i];

		if (r->flags & MAP_RO_ADDRESSES)
			break; /* they come last */
		if (vaddr < r->vaddr || vaddr - r->vaddr > r->size || n > r->size - (vaddr - r->vaddr))
			continue;
		if (run)
			*run = r->size - (vaddr - r->vaddr);
		return m->robytes + r->off + (vaddr - r->vaddr);
	}
	return NULL;
}

bool map_roaddress(const struct map *m, uint64_t vaddr, uint64_t *v)
{
	const struct map_rodata *r;
	uint32_t lo = 0, hi = m->nro;

	while (lo < hi) { /* the first of them that ends behind vaddr */
		uint32_t mid = lo + (hi - lo) / 2;

		r = &m->ro[mid];
		if (!(r->flags & MAP_RO_ADDRESSES) || r->vaddr + (uint64_t)r->size <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	r = &m->ro[lo];
	if (lo == m->nro || vaddr < r->vaddr || (vaddr - r->vaddr) % 8 || r->size - (vaddr - r->vaddr) < 8)
		return false;
	memcpy(v, m->robytes + r->off + (vaddr - r->vaddr), 8);
	return true;
}
