/* SPDX-License-Identifier: MIT
 *
 * walk_count.c - what a thread did, from how often each block began
 *
 * The loop counts blocks only; instructions and accesses follow from the map, since all of a block
 * but its string, vector and state-save instructions does the same each time. The one block that the
 * walk ended in is counted up to there.
 */
#include <stdlib.h>
#include "walk.h"

uint32_t count_records(const struct map *m, uint32_t from, uint32_t to)
{
	uint32_t n = 0;

	for (; from < to; from++)
		n += m->op[from].op == SEM_REC;
	return n;
}

/* fixed records of block b from pc on that the last time it ran were not reached; 0 if pc is not in it */
static uint32_t not_reached(const struct walker *w, const struct inst *m, uint32_t b, uint32_t end)
{
	uint32_t first = m->map->block[b].ops, at;

	if (m != w->m || !w->pc)
		return 0;
	at = w->pc - m->code;
	/* at its first op, or the SEM_BLOCK behind a mark's: not begun */
	if (at <= first || at > end || w->pc->h == H_BLOCK || w->pc->h == H_BLOCKREC)
		return 0;
	return count_records(m->map, at, end);
}

static void block(struct walker *w, const struct inst *m, uint32_t b)
{
	struct walk_result *res = w->res;
	const struct map_block *k = &m->map->block[b];
	uint32_t end = map_block_end(m->map, k->ops);
	struct walk_block *to;

	if (!(res->nblock & (res->nblock + 1)))
		res->block = xrealloc(res->block, (size_t)res->nblock * 2 + 2, sizeof(*res->block));
	to = &res->block[res->nblock++];
	to->rec = m->rec;
	to->block = b;
	to->count = m->block[b].n;
	to->accesses = to->count * count_records(m->map, k->ops, end) + m->block[b].extra -
		       not_reached(w, m, b, end);
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

void count_finish(struct walker *w)
{
	for (uint32_t i = 0; i < w->ninst; i++) {
		struct inst *m = w->inst[i];

		if (w->o->counts && m->nseen) /* a group's are neighbours, its name is then looked up once */
			qsort(m->seen, m->nseen, sizeof(*m->seen), by_number);
		for (uint32_t k = 0; k < m->nseen; k++) {
			uint32_t b = m->seen[k];

			if ((!m->block[b].n && !m->block[b].extra) ||
			    (k && w->o->counts && m->seen[k - 1] == b))
				continue;
			w->st->instructions += m->block[b].n * m->map->block[b].ninsn;
			if (w->o->counts)
				block(w, m, b);
		}
	}
}
