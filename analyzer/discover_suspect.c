/* SPDX-License-Identifier: MIT
 *
 * discover_suspect.c - bytes inside functions that nothing was found to reach
 *
 * Padding aside, a compiler leaves no unreachable bytes in a function: where there are some, a jump
 * table target may have been missed. Such a group is suspect. If it has an indirect jump whose targets
 * are not all known, the bytes are decoded too, and each place a jump could mean (the start of an
 * unreached run, and what it reaches) becomes a candidate of that jump. Without one they are data
 * or dead code, and stay as they are.
 *
 * Between functions (in gaps) there may be anything. There bytes count only where a group has jump tables of which not every
 * entry is known for certain. Where code lies behind tables (discover_info.c) they are those tables, never code.
 */
#include <string.h>
#include "disc.h"

/* First byte of an unreached run in [v, end) that is no padding; end if there is none. *stop: its end. */
uint32_t disc_run(const struct disc *d, uint32_t v, uint32_t end, uint32_t *stop)
{
	while ((v = disc_unused(d, v, end)) < end) {
		uint32_t e = v;
		unsigned n;

		while (e < end && !d->il[e - d->lo] && !(d->st[e - d->lo] & ST_DATA))
			e++;
		while (v < e && (n = disc_nop_len(elf_at(d->m, v, e - v), e - v)))
			v += n;
		if (v < e) {
			*stop = e;
			return v;
		}
	}
	return end;
}

static bool open_jump(const struct disc *d, const struct ijmp *j)
{
	const uint8_t *p = elf_at(d->m, j->vaddr, 2);

	/* through a GOT slot: never into the group */
	return !j->exact && !(p && p[0] == 0xff && p[1] == 0x25);
}

static bool add_candidate(struct ijmp *j, uint32_t v)
{
	uint32_t *t = realloc(j->target, (j->ntarget + 1ull) * sizeof(*t));

	if (!t)
		return false;
	j->target = t;
	j->target[j->ntarget++] = v;
	return true;
}

/* Numbers by the root of the group they belong to: those of root r are v[at[r]] .. v[at[r + 1]], ascending */
struct by_root {
	uint32_t *at, *v;
};

enum { PAIRS_MAX = 2000000 }; /* of a jump and a run that it may go to, in a group */

static void by_root_free(struct by_root *o)
{
	free(o->at);
	free(o->v);
}

/* of n numbers; root_of(d, i): AN_NONE, it belongs to none */
static bool by_root(struct disc *d, struct by_root *o, uint32_t n,
		    uint32_t (*root_of)(struct disc *d, uint32_t i))
{
	uint32_t r;

	o->at = calloc(d->piece.n + 3ull, sizeof(*o->at));
	o->v = malloc((n + 1ull) * sizeof(*o->v));
	if (!o->at || !o->v) {
		by_root_free(o);
		d->nomem = true;
		return false;
	}
	for (uint32_t i = 0; i < n; i++)
		if ((r = root_of(d, i)) != AN_NONE)
			o->at[r + 2]++;
	for (uint32_t i = 0; i < d->piece.n; i++)
		o->at[i + 2] += o->at[i + 1];
	for (uint32_t i = 0; i < n; i++)
		if ((r = root_of(d, i)) != AN_NONE)
			o->v[o->at[r + 1]++] = i;
	return true;
}

static uint32_t open_root(struct disc *d, uint32_t i)
{
	const struct ijmp *j = &d->ijmp.v[i];

	return open_jump(d, j) ? disc_root(d, disc_piece(d, j->vaddr)) : AN_NONE;
}

static uint32_t run_root(struct disc *d, uint32_t i)
{
	return disc_root(d, disc_piece(d, d->run.v[i]));
}

static void add_run(struct disc *d, const struct by_root *open, uint32_t root, uint32_t v)
{
	disc_push(d, v, ST_TARGET);
	if (!VEC_PUSH(&d->run, v))
		d->nomem = true;
	for (uint32_t k = open->at[root]; k < open->at[root + 1]; k++)
		if (!add_candidate(&d->ijmp.v[open->v[k]], v))
			d->nomem = true;
}

/* groups with tables that were assumed to end somewhere, or that lead elsewhere, too */
static void mark_tables(struct disc *d, uint8_t *tables)
{
	for (uint32_t i = 0; i < d->ijmp.n; i++) {
		const struct ijmp *j = &d->ijmp.v[i];

		if (j->assumed || (j->ntarget && !j->exact))
			tables[disc_root(d, disc_piece(d, j->vaddr))] = 1;
	}
}

/* Finds the suspect pieces; their groups' assumptions about tables without bound fall. */
static void find_suspects(struct disc *d, uint8_t *mark, const uint8_t *tables)
{
	for (uint32_t i = 0; i < d->piece.n; i++) {
		struct piece *p = &d->piece.v[i];
		uint32_t stop;

		if (p->kind == PC_STUB || p->reason || !IL_START(d->il[p->start - d->lo]) ||
		    (p->kind == PC_GAP && !tables[disc_root(d, i)]))
			continue;
		p->suspect = disc_run(d, p->start, p->end, &stop) < p->end;
		mark[disc_root(d, i)] |= p->suspect;
		/* there are data among such code: no jump's targets */
		p->suspect &= !(d->jumped && p->kind == PC_GAP);
	}
	for (uint32_t i = 0; i < d->ijmp.n; i++)
		if (d->ijmp.v[i].assumed && mark[disc_root(d, disc_piece(d, d->ijmp.v[i].vaddr))])
			d->ijmp.v[i].exact = d->ijmp.v[i].assumed = false;
}

/* Code that is no compiler's for C, most of all: data between its functions, and jumps through its own stack. */
static bool too_many(const struct disc *d, const struct piece *p, uint64_t njump)
{
	uint32_t v = p->start, stop;
	uint64_t n = 0;

	if (njump < 2)
		return false;
	for (; (v = disc_run(d, v, p->end, &stop)) < p->end; v = stop)
		n += njump;
	return n > PAIRS_MAX;
}

static bool add_runs(struct disc *d)
{
	struct by_root open;
	bool any = false;

	if (!by_root(d, &open, d->ijmp.n, open_root))
		return false;
	for (uint32_t i = 0; i < d->piece.n; i++) {
		struct piece *p = &d->piece.v[i];
		uint32_t v = p->start, stop = p->end, root = disc_root(d, i);

		if (!p->suspect || p->reason || open.at[root] == open.at[root + 1])
			continue;
		if (too_many(d, p, open.at[root + 1] - open.at[root])) {
			p->reason = MAP_R_INDIRECT;
			continue;
		}
		while ((v = disc_run(d, v, p->end, &stop)) < p->end) {
			add_run(d, &open, root, v);
			any = true;
			v = stop;
		}
	}
	by_root_free(&open);
	return any;
}

/* jmp *(%base,%index,8) through a table that nothing in the file shows: an interpreter fills it at run time (LuaJIT). Where
 * there are bytes that nothing reaches, it leads to them, and not only to where a run of them begins: handlers fall through into
 * others. A patch may lie over any of those. */
static bool hidden_table(const struct disc *d, const struct ijmp *j)
{
	const uint8_t *p = elf_at(d->m, j->vaddr, 5);
	unsigned rex = 0;

	if (!p || j->exact || j->table != AN_NONE)
		return false;
	while (*p == 0x3e || *p == 0xf2) /* notrack, bnd */
		p++;
	if ((*p & 0xf0) == 0x40)
		rex = *p++;
	return p[0] == 0xff && p[1] >> 6 != 3 && (p[1] & 7) == 4 && ((p[2] & 0x38) != 0x20 || (rex & 2));
}

/* Groups that such a jump makes opaque: any, or one that was found among those bytes. */
static void refuse(struct disc *d, bool missed)
{
	uint8_t *suspect = calloc(d->piece.n + 1ull, 1); /* by root: of the pieces as they are now */

	if (!suspect) {
		d->nomem = true;
		return;
	}
	for (uint32_t i = 0; i < d->piece.n; i++)
		suspect[disc_root(d, i)] |= d->piece.v[i].suspect;
	for (uint32_t i = 0; i < d->ijmp.n; i++) {
		const struct ijmp *j = &d->ijmp.v[i];
		uint32_t p = disc_piece(d, j->vaddr);

		if ((!missed || j->missed) && suspect[disc_root(d, p)] && hidden_table(d, j))
			d->piece.v[p].reason = MAP_R_INDIRECT;
	}
	free(suspect);
}

/* The jumps among those bytes, too, may go to any run: those found before they were. */
static void add_missed(struct disc *d)
{
	struct by_root run;

	if (!by_root(d, &run, d->run.n, run_root))
		return;
	for (uint32_t i = 0; i < d->ijmp.n && !d->nomem; i++) {
		struct ijmp *j = &d->ijmp.v[i];
		uint32_t root = j->missed ? disc_root(d, disc_piece(d, j->vaddr)) : 0;

		for (uint32_t k = run.at[root]; k < run.at[root + 1] && run.v[k] < j->missed && !d->nomem;
		     k++)
			if (!add_candidate(j, d->run.v[run.v[k]]))
				d->nomem = true;
	}
	by_root_free(&run);
}

void disc_suspects(struct disc *d)
{
	uint8_t *mark = calloc(d->piece.n + 1ull, 1), *tables = calloc(d->piece.n + 1ull, 1);

	if (mark && tables) {
		mark_tables(d, tables);
		find_suspects(d, mark, tables);
	} else {
		d->nomem = true;
	}
	free(mark);
	free(tables);
	if (d->nomem)
		return;
	refuse(d, false);
	/* what follows the last instruction that a run's start reaches is unreached still */
	while (add_runs(d) && !d->nomem) {
		uint32_t known = d->ijmp.n;

		disc_walk(d);
		for (uint32_t i = known; i < d->ijmp.n; i++)
			d->ijmp.v[i].missed = open_jump(d, &d->ijmp.v[i]) ? d->run.n : 0;
		disc_sort(d);
		disc_join(d); /* cuts gaps at entries: pieces have other numbers then */
	}
	refuse(d, true);
	add_missed(d);
}
