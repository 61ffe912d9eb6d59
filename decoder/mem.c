/* SPDX-License-Identifier: MIT
 *
 * mem.c - shadow memory: what the program's memory holds, as far as the decoder knows
 *
 *   address ─▶ page table (hash) ─▶ page: 4096 bytes + one valid bit a byte
 *                   └─ not there ─▶ start.bin: the page as it was at the start, copied on first write
 *
 * A byte never stored to and not in the start dump is unknown, and so is a load that touches
 * it: the caller decides, nothing is made up.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "dec.h"

#define PAGE 4096ull

struct page {
	uint64_t addr;
	uint64_t valid[PAGE / 64];
	uint8_t byte[PAGE];
};

struct mem {
	const struct start *start;
	struct page **tab; /* open addressing, power of two */
	size_t cap, n;
	struct page *last;
	uint64_t limit;
};

struct mem *mem_new(const struct start *s, uint64_t limit)
{
	struct mem *m = xcalloc(1, sizeof(*m));

	m->start = s;
	m->cap = 1024;
	m->tab = xcalloc(m->cap, sizeof(*m->tab));
	m->limit = limit ? limit : ~0ull;
	return m;
}

void mem_free(struct mem *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->cap; i++)
		free(m->tab[i]);
	free(m->tab);
	free(m);
}

static size_t hash(const struct mem *m, uint64_t page)
{
	return (page / PAGE * 0x9e3779b97f4a7c15ull) >> 20 & (m->cap - 1);
}

static struct page *find(struct mem *m, uint64_t page)
{
	if (m->last && m->last->addr == page)
		return m->last;
	for (size_t i = hash(m, page); m->tab[i]; i = (i + 1) & (m->cap - 1))
		if (m->tab[i]->addr == page)
			return m->last = m->tab[i];
	return NULL;
}

static void grow(struct mem *m)
{
	struct page **old = m->tab;
	size_t cap = m->cap;

	m->cap *= 2;
	m->tab = xcalloc(m->cap, sizeof(*m->tab));
	for (size_t i = 0; i < cap; i++) {
		size_t j;

		if (!old[i])
			continue;
		for (j = hash(m, old[i]->addr); m->tab[j]; j = (j + 1) & (m->cap - 1))
			;
		m->tab[j] = old[i];
	}
	free(old);
}

/* bytes of the start dump from addr on, *n of them; to the page's end at least; NULL if not dumped */
static const uint8_t *dumped(const struct mem *m, uint64_t addr, uint64_t *n)
{
	static const uint8_t zero[PAGE];
	const struct start *s = m->start;

	const struct run_region *r;
	uint32_t lo = 0, hi = s ? s->nregion : 0;

	while (lo < hi) { /* in the order of their addresses, see check() in run_start.c */
		uint32_t mid = (lo + hi) / 2;

		if (s->region[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	r = lo ? &s->region[lo - 1] : NULL;
	if (!r || addr - r->addr >= r->size)
		return NULL;
	*n = r->size - (addr - r->addr);
	if (r->prot & RUN_REGION_ZERO) {
		*n = PAGE - addr % PAGE;
		return zero + addr % PAGE;
	}
	return r->prot & RUN_REGION_DUMPED ? s->base + r->file_off + (addr - r->addr) : NULL;
}

static struct page *make(struct mem *m, uint64_t page)
{
	struct page *p;
	const uint8_t *d;
	uint64_t n;
	size_t i;

	if ((m->n + 1) * sizeof(*p) > m->limit)
		return NULL;
	if (m->n * 2 > m->cap)
		grow(m);
	p = xcalloc(1, sizeof(*p));
	p->addr = page;
	d = dumped(m, page, &n);
	if (d && n >= PAGE) { /* regions are whole pages */
		memcpy(p->byte, d, PAGE);
		memset(p->valid, 0xff, sizeof(p->valid));
	}
	for (i = hash(m, page); m->tab[i]; i = (i + 1) & (m->cap - 1))
		;
	m->tab[i] = p;
	m->n++;
	return m->last = p;
}

bool mem_read(struct mem *m, uint64_t addr, void *buf, size_t n)
{
	for (uint8_t *to = buf; n; n--, addr++, to++) {
		struct page *p = find(m, addr & -PAGE);
		uint64_t k, off = addr % PAGE;
		const uint8_t *d;

		if (p) {
			if (!(p->valid[off / 64] >> (off % 64) & 1))
				return false;
			*to = p->byte[off];
		} else {
			d = dumped(m, addr, &k);
			if (!d)
				return false;
			*to = *d;
		}
	}
	return true;
}

bool mem_load(struct mem *m, uint64_t addr, uint32_t w, uint64_t *val)
{
	uint64_t off = addr % PAGE, need = (1ull << w) - 1;
	struct page *p = find(m, addr & -PAGE);

	*val = 0;
	if (p && off % 64 + w <= 64) {
		if ((p->valid[off / 64] >> (off % 64) & need) != need)
			return false;
		memcpy(val, p->byte + off, w);
		return true;
	}
	return mem_read(m, addr, val, w);
}

bool mem_store(struct mem *m, uint64_t addr, uint32_t w, uint64_t val)
{
	for (; w; w--, addr++, val >>= 8) {
		uint64_t off = addr % PAGE;
		struct page *p = find(m, addr & -PAGE);

		if (!p)
			p = make(m, addr & -PAGE);
		if (!p)
			return false;
		p->byte[off] = (uint8_t)val;
		p->valid[off / 64] |= 1ull << (off % 64);
	}
	return true;
}

bool mem_write(struct mem *m, uint64_t addr, const uint8_t *buf, uint64_t n)
{
	while (n) {
		uint64_t off = addr % PAGE, k = n < PAGE - off ? n : PAGE - off;
		struct page *p = find(m, addr & -PAGE);

		if (!p && !(p = make(m, addr & -PAGE)))
			return false;
		memcpy(p->byte + off, buf, k);
		for (uint64_t i = off; i < off + k; i++)
			p->valid[i / 64] |= 1ull << (i % 64);
		addr += k;
		buf += k;
		n -= k;
	}
	return true;
}

/* A page that is not there and not in the start dump is unknown already. */
bool mem_forget(struct mem *m, uint64_t addr, uint64_t n)
{
	while (n) {
		uint64_t off = addr % PAGE, k = 64 - off % 64, have;
		struct page *p = find(m, addr & -PAGE);

		if (!p && !dumped(m, addr & -PAGE, &have))
			k = PAGE - off;
		else if (!p && !(p = make(m, addr & -PAGE)))
			return false;
		k = k < n ? k : n;
		if (p)
			p->valid[off / 64] &= ~((k < 64 ? (1ull << k) - 1 : ~0ull) << off % 64);
		addr += k;
		n -= k;
	}
	return true;
}

bool mem_page(struct mem *m, uint64_t addr, struct mem_page *to)
{
	const struct page *p = find(m, addr & -PAGE);
	const uint8_t *d;
	uint64_t n;

	to->addr = addr & -PAGE;
	if (p) {
		memcpy(to->valid, p->valid, sizeof(to->valid));
		memcpy(to->byte, p->byte, sizeof(to->byte));
		return true;
	}
	d = dumped(m, to->addr, &n);
	if (!d || n < PAGE)
		return false;
	memset(to->valid, 0xff, sizeof(to->valid));
	memcpy(to->byte, d, PAGE);
	return true;
}

bool mem_put(struct mem *m, const struct mem_page *from)
{
	struct page *p = find(m, from->addr);

	if (!p && !(p = make(m, from->addr)))
		return false;
	memcpy(p->valid, from->valid, sizeof(p->valid));
	memcpy(p->byte, from->byte, sizeof(p->byte));
	return true;
}
