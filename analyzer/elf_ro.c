/* SPDX-License-Identifier: MIT
 *
 * elf_ro.c - addresses in memory that is read-only after relocation
 *
 * The loader writes the words of PT_GNU_RELRO and then protects them (dl-reloc.c); a word with a relative
 * relocation is the load bias plus a constant from then on. Jump tables of position-independent code
 * are made of such words. Each run of them is read-only data whose bytes are link-time addresses.
 */
#include <string.h>
#include "elf_priv.h"

/* Is ptr[i] one, and right behind the one before it? */
static bool word(const struct elf_priv *x, uint32_t i, uint32_t *after)
{
	const struct elf_ptr *p = &x->ptr.v[i];
	bool runs = p->place == *after;

	*after = p->place + 8;
	return runs;
}

static bool counts(const struct elf_priv *x, uint32_t i)
{
	const struct elf_ptr *p = &x->ptr.v[i];

	return p->relative && p->place % 8 == 0 && p->place >= x->relro.start && p->place < x->relro.end &&
	       x->relro.end - p->place >= 8 && (i + 1 == x->ptr.n || x->ptr.v[i + 1].place >= p->place + 8) &&
	       (!i || x->ptr.v[i - 1].place + 8 <= p->place);
}

/* elf_ro_words - appends to m->ro, ascending; 0, -1 no memory */
int elf_ro_words(struct module *m)
{
	struct elf_priv *x = elf_priv(m);
	uint32_t n = 0, runs = 0, after = AN_NONE;
	struct an_ro *ro;

	for (uint32_t i = 0; i < x->ptr.n; i++)
		if (counts(x, i)) {
			runs += !word(x, i, &after);
			n++;
		}
	if (!n)
		return 0;
	ro = realloc(m->ro, (m->nro + runs) * sizeof(*ro));
	if (ro)
		m->ro = ro;
	x->rowords = malloc(n * sizeof(*x->rowords));
	if (!ro || !x->rowords)
		return -1;
	n = 0;
	after = AN_NONE;
	for (uint32_t i = 0; i < x->ptr.n; i++) {
		if (!counts(x, i))
			continue;
		if (!word(x, i, &after))
			m->ro[m->nro++] =
				(struct an_ro){x->ptr.v[i].place, 0, (uint8_t *)(x->rowords + n), true};
		m->ro[m->nro - 1].size += 8;
		x->rowords[n++] = x->ptr.v[i].target;
	}
	return 0;
}

/* elf_ro - the w bytes at vaddr cannot change after start. Of addresses, whole words only. */
bool elf_ro(const struct module *m, uint32_t vaddr, uint64_t w)
{
	uint32_t lo = 0, hi;

	for (; lo < m->nro && !m->ro[lo].addresses; lo++)
		if (vaddr >= m->ro[lo].vaddr && vaddr - m->ro[lo].vaddr + w <= m->ro[lo].size)
			return true;
	if (vaddr % 8 || w % 8)
		return false;
	for (hi = m->nro; lo < hi;) { /* the first that ends behind vaddr */
		uint32_t mid = lo + (hi - lo) / 2;

		if (m->ro[mid].vaddr + m->ro[mid].size <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < m->nro && vaddr >= m->ro[lo].vaddr && vaddr - m->ro[lo].vaddr + w <= m->ro[lo].size;
}
