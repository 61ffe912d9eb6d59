/* SPDX-License-Identifier: MIT
 *
 * walk_mod.c - modules as they come and go; from a run-time address or a mark to its map
 *
 * Module records take effect at their event in the stream. Those loaded before the first
 * instruction have to be known without one: all records up to the first unload are applied at the
 * start (a module known early harms nothing: none of its addresses has run yet), and an event
 * for one already applied does nothing.
 *
 * The event stands in the stream of the thread that loaded the module. What another thread meets, in order:
 *   - RUN_EV_START says how many records were in effect when the thread began;
 *   - a mark that names a site id no live module has proves that the module with that id is loaded: ids are
 *     not used twice as long as a process has several threads (run.h), so its record takes effect then;
 *   - an address no live module holds, in a process with several logs, is looked for in the newest record
 *     that was not in effect yet and would replace nothing.
 */
#include <stdlib.h>
#include <string.h>
#include "walk.h"

static void flush_caches(struct walker *w)
{
	if (w->lcused)
		memset(w->lc, 0, LCACHE * sizeof(*w->lc));
	w->lcused = false;
	w->ron = 0;
}

int mod_apply(struct walker *w, uint32_t index)
{
	const struct modrec *rec;
	struct inst *m;

	if (index >= w->proc->nmod && w->proc->replay)
		replay_modules(w->proc);
	if (index >= w->proc->nmod)
		return lost(w, "the stream names module record %u, modules.bin has %u (damaged or cut)",
			    index, w->proc->nmod);
	if (w->applied[index])
		return 0;
	w->applied[index] = 1;
	rec = &w->proc->mod[index];
	flush_caches(w);
	for (uint32_t i = 0; i < w->ninst; i++) /* whatever was there is gone */
		if (w->inst[i]->rec->m.lo < rec->m.hi && rec->m.lo < w->inst[i]->rec->m.hi)
			w->inst[i]->live = false;
	w->flow->ops->module(w->flow, rec);
	if (rec->m.kind != 1 || !rec->map)
		return 0;
	w->blind |= rec->map->head->flags & MAP_F_ORDER;
	m = pool_take(w, rec);
	m->live = true;
	w->inst = xrealloc(w->inst, w->ninst + 1, sizeof(*w->inst));
	w->inst[w->ninst++] = m;
	seek_rearm(w);
	return 0;
}

int mod_start(struct walker *w)
{
	w->applied = xcalloc(w->proc->replay ? REPLAY_MODULES : w->proc->nmod, 1);
	w->lc = xcalloc(LCACHE, sizeof(*w->lc));
	for (uint32_t i = 0; i < w->proc->nmod && w->proc->mod[i].m.kind; i++)
		if (mod_apply(w, i))
			return 1;
	return 0;
}

void mod_free(struct walker *w)
{
	for (uint32_t i = 0; i < w->ninst; i++)
		pool_give(w, w->inst[i]);
	free(w->inst);
	free(w->applied);
	free(w->lc);
}

struct inst *mod_at(const struct walker *w, uint64_t addr)
{
	for (uint32_t i = 0; i < w->ninst; i++)
		if (w->inst[i]->live && addr >= w->inst[i]->rec->m.lo && addr < w->inst[i]->rec->m.hi)
			return w->inst[i];
	return NULL;
}

/* a module another thread has loaded, if there is just one it can be */
static struct inst *other_at(struct walker *w, uint64_t addr)
{
	const struct proc *p = w->proc;

	for (uint32_t i = p->nlog > 1 ? p->nmod : 0; i--;) {
		const struct modrec *r = &p->mod[i];
		bool clash = false;

		if (w->applied[i] || r->m.kind != 1 || !r->map || addr < r->m.lo || addr >= r->m.hi)
			continue;
		for (uint32_t k = 0; k < w->ninst; k++)
			clash |= w->inst[k]->live && w->inst[k]->rec->m.lo < r->m.hi &&
				 r->m.lo < w->inst[k]->rec->m.hi;
		if (clash || mod_apply(w, i))
			return NULL;
		return mod_at(w, addr);
	}
	return NULL;
}

const struct map_leader *mod_leader(struct walker *w, uint64_t addr, struct inst **m)
{
	struct lcache *c = &w->lc[(addr ^ addr >> 12) % LCACHE];
	const struct map_leader *l;

	if (c->m && c->addr == addr) {
		*m = c->m;
		return &c->m->map->leader[c->leader];
	}
	*m = mod_at(w, addr);
	if (!*m)
		*m = other_at(w, addr);
	if (!*m || addr - (*m)->bias > UINT32_MAX)
		return NULL;
	l = map_leader((*m)->map, (uint32_t)(addr - (*m)->bias));
	w->lcused |= l != NULL;
	if (l)
		*c = (struct lcache){addr, *m, (uint32_t)(l - (*m)->map->leader)};
	return l;
}

static const struct map_site *site_of(const struct inst *k, uint32_t id)
{
	uint32_t n = id - k->rec->m.site_base;

	return id >= k->rec->m.site_base && n < k->map->nsite && k->map->site[n].ops < k->map->nop
		       ? &k->map->site[n]
		       : NULL;
}

const struct map_site *mod_site(struct walker *w, uint32_t id, struct inst **m)
{
	const struct proc *p = w->proc;
	const struct map_site *s;

	for (uint32_t i = 0; i < w->ninst; i++) {
		*m = w->inst[i];
		s = (*m)->live ? site_of(*m, id) : NULL;
		if (s)
			return s;
	}
	for (uint32_t i = p->nmod; i--;) { /* another thread has loaded it */
		const struct modrec *r = &p->mod[i];

		if (w->applied[i] || r->m.kind != 1 || !r->map || id < r->m.site_base ||
		    id - r->m.site_base >= r->map->nsite)
			continue;
		if (mod_apply(w, i))
			return NULL;
		*m = w->inst[w->ninst - 1];
		return site_of(*m, id);
	}
	return NULL;
}

struct inst *mod_at_copy(const struct walker *w, uint64_t addr)
{
	for (uint32_t i = w->ninst; i--;) {
		struct inst *m = w->inst[i];

		if (m->live && addr - m->copy < m->map->head->sect[MAP_COPY].size)
			return m;
	}
	return NULL;
}

/* What stands at a return site: a RET mark (in its ops), or a RESYNC mark, where its stub is shared
 * with another kind of entry. The return then leads to a SEM_JMPX: not a jump, so it is not executed
 * as one (a jump sets tcb.expect), only the mark is read. */
uint32_t return_flags(const struct inst *m, uint32_t op, uint32_t *check)
{
	*check = 0;
	if (op < m->map->nop && m->map->op[op].op == SEM_JMPX)
		return FR_RESYNC;
	for (uint32_t i = op; i < op + 2 && i < m->map->nop; i++) {
		const struct sem_op *o = &m->map->op[i];

		if (o->op == SEM_RMARK) {
			*check = o->imm & 0x1f;
			return FR_RMARK;
		}
		if (o->op != SEM_BLOCK)
			break;
	}
	return 0;
}

/* The same for a leader met by address. */
uint32_t leader_flags(const struct inst *m, const struct map_leader *l, uint32_t *check)
{
	uint32_t site = l->flags >> 8;

	*check = 0;
	if (site < m->map->nsite && m->map->site[site].kind == MAP_SITE_RESYNC &&
	    m->map->site[site].vaddr == l->vaddr)
		return FR_RESYNC;
	return return_flags(m, l->ops, check);
}
