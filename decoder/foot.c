/* SPDX-License-Identifier: MIT
 *
 * foot.c - footprint: which 64-byte lines were touched
 *
 *   address ─▶ area of 2 MiB (cache of the last ones, else hash) ─▶ one bit a line, one word a page
 *
 * Asked a record at a time, and nearly always about a line that is known already: a bit that is set
 * is only read. Exact up to MAX_AREAS areas (256 MiB of bits); beyond, a lower bound and said to be one.
 */
#include <stdlib.h>
#include "out.h"

#define LINE_BITS 6
#define AREA_BITS 21
#define WORDS (1u << (AREA_BITS - LINE_BITS - 6)) /* 64 lines each: a page of 4 KiB */
#define MAX_AREAS (1u << 16)
#define NCACHE 64

struct area {
	uint64_t no;
	uint64_t word[WORDS];
};

struct foot {
	struct area *last[NCACHE]; /* by low bits of the number; never NULL */
	struct area **tab; /* open addressing, power of two */
	uint64_t cap, n;
	bool full;
	struct area none; /* a number no address has */
};

struct foot *foot_new(void)
{
	struct foot *f = xcalloc(1, sizeof(*f));

	f->cap = 256;
	f->tab = xcalloc(f->cap, sizeof(*f->tab));
	f->none.no = ~0ull;
	for (int i = 0; i < NCACHE; i++)
		f->last[i] = &f->none;
	return f;
}

void foot_free(struct foot *f)
{
	for (uint64_t i = 0; i < f->cap; i++)
		free(f->tab[i]);
	free(f->tab);
	free(f);
}

static struct area **slot(const struct foot *f, uint64_t no)
{
	uint64_t i = no * 0x9e3779b97f4a7c15ull >> 32 & (f->cap - 1);

	while (f->tab[i] && f->tab[i]->no != no)
		i = (i + 1) & (f->cap - 1);
	return &f->tab[i];
}

static void grow(struct foot *f)
{
	struct area **old = f->tab;
	uint64_t cap = f->cap;

	f->cap *= 2;
	f->tab = xcalloc(f->cap, sizeof(*f->tab));
	for (uint64_t i = 0; i < cap; i++)
		if (old[i])
			*slot(f, old[i]->no) = old[i];
	free(old);
}

/* NULL when there are too many */
static __attribute__((noinline)) struct area *find(struct foot *f, uint64_t no)
{
	struct area **at = slot(f, no);

	if (!*at) {
		if (f->n == MAX_AREAS) {
			f->full = true;
			return NULL;
		}
		if (++f->n * 2 > f->cap) {
			grow(f);
			at = slot(f, no);
		}
		*at = xcalloc(1, sizeof(**at));
		(*at)->no = no;
	}
	return f->last[no % NCACHE] = *at;
}

static inline void touch(struct foot *f, uint64_t line)
{
	uint64_t no = line >> (AREA_BITS - LINE_BITS), bit = 1ull << line % 64;
	struct area *a = f->last[no % NCACHE];
	uint64_t *word;

	if (unlikely(a->no != no)) {
		a = find(f, no);
		if (!a)
			return;
	}
	word = &a->word[line / 64 % WORDS];
	if (unlikely(!(*word & bit)))
		*word |= bit;
}

void foot_batch(struct foot *f, const struct ptrace_rec *rec, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct ptrace_rec *r = &rec[i];
		uint64_t line = r->addr >> LINE_BITS, more;

		if (r->kind > PTRACE_W || !r->size)
			continue;
		touch(f, line);
		for (more = (r->addr % 64 + r->size - 1) / 64; unlikely(more); more--)
			touch(f,
			      ++line &
				      ~0ull >> LINE_BITS); /* the last line of all is followed by the first */
	}
}

void foot_count(const struct foot *f, uint64_t *lines, uint64_t *pages, bool *all)
{
	*lines = *pages = 0;
	for (uint64_t i = 0; i < f->cap; i++)
		for (uint32_t k = 0; f->tab[i] && k < WORDS; k++) {
			*lines += __builtin_popcountll(f->tab[i]->word[k]);
			*pages += f->tab[i]->word[k] != 0;
		}
	*all = !f->full;
}
