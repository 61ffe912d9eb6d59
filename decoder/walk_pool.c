/* SPDX-License-Identifier: MIT
 *
 * walk_pool.c - modules as loaded, with their threaded code, handed from a thread that ended to the next
 *
 * A run may have very many threads that do little each: then making a module's tables and translating what is
 * executed is most of the work. The code depends on the map, on where it is loaded and on whether blocks are
 * recorded; its counts are the thread's and begin at zero.
 */
#include <stdlib.h>
#include <string.h>
#include "walk.h"

#define MAX_IDLE 64 /* of a map: those used last */

static void inst_free(struct inst *m)
{
	free(m->code);
	free(m->block);
	free(m->count);
	free(m->seen);
	free(m);
}

static bool pooled(const struct walker *w)
{
	return w->proc->run && !w->o->why;
}

struct inst *pool_take(const struct walker *w, const struct modrec *rec)
{
	struct map *map = rec->map;
	struct inst *m;

	for (struct inst **at = &map->idle; pooled(w) && *at; at = &(*at)->next) {
		m = *at;
		if (m->bias != rec->m.bias || m->blocks != w->o->blocks)
			continue;
		*at = m->next;
		m->rec = rec;
		m->copy = rec->m.copy_base;
		return m;
	}
	m = xcalloc(1, sizeof(*m));
	m->rec = rec;
	m->map = map;
	m->bias = rec->m.bias;
	m->copy = rec->m.copy_base;
	m->blocks = w->o->blocks;
	m->code = xcalloc(map->nop, sizeof(*m->code));
	m->block = xcalloc(map->nblock + 1, sizeof(*m->block));
	if (w->o->why)
		m->count = xcalloc(map->nop, sizeof(*m->count));
	return m;
}

/* Only from walks that went well: others may have left their marks in the code. */
void pool_give(const struct walker *w, struct inst *m)
{
	struct inst **at = &m->map->idle;

	if (!pooled(w) || w->end != WALK_EXIT) {
		inst_free(m);
		return;
	}
	for (uint32_t i = 0; i < m->nseen; i++)
		m->block[m->seen[i]] = (struct bcount){0};
	m->block[m->map->nblock] = (struct bcount){0};
	m->next = *at;
	*at = m;
	for (int i = 0; i < MAX_IDLE && *at; i++)
		at = &(*at)->next;
	while ((m = *at)) {
		*at = m->next;
		inst_free(m);
	}
}

void pool_free(struct map *m)
{
	struct inst *i;

	while ((i = m->idle)) {
		m->idle = i->next;
		inst_free(i);
	}
}

void pool_seen(struct inst *m, uint32_t block)
{
	if (!(m->nseen & (m->nseen + 1)))
		m->seen = xrealloc(m->seen, (size_t)m->nseen * 2 + 2, sizeof(*m->seen));
	m->seen[m->nseen++] = block;
}
