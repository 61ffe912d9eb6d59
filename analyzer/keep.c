/* SPDX-License-Identifier: MIT
 *
 * keep.c - groups that return with the log pointer still in r15
 *
 * The way home of a call is ret: mov %r15,%gs:LP; mov %gs:R15,%r15; return site: mov %gs:LP,%r15. The
 * load waits for the store, and every log after it waits for the load. A group needs none of this
 * when whoever calls it is known and knows: it is *private*, that is
 *   - only direct calls of relocated code and tail jumps of private groups lead to it. Its address is
 *     nowhere: not exported, not in data, in no lea (discovery's ST_TAKEN), and no code that stays where
 *     it is, and no word of the data, can be read as a reference to it (below);
 *   - the return sites of those calls are return sites and nothing else;
 *   - it leaves by ret, by a tail jump to a private group, or not at all;
 * and it *keeps* r15 when besides each ret provably goes to its caller (struct an_summary, lifo).
 *
 * A private group's entries have no stub: their bytes in the original text are int3. An entry that
 * nothing foretold (an address computed in a way discovery does not see) therefore ends the trace cleanly,
 * instead of returning with a log pointer to code that takes r15 for the program's; the next run has
 * the address on its list (avoid.c) and takes it for taken.
 *
 * Private has to stand before patches are placed, keeps only before code is emitted.
 */
#include <stdlib.h>
#include <string.h>
#include "elf_priv.h"
#include "emit.h"

static const struct an_insn *last(const struct an_group *g, uint32_t b)
{
	return &g->insn[g->block[b].first + g->block[b].n - 1];
}

/* a direct jump out of the group at the end of b */
static bool tail(const struct an_group *g, uint32_t b)
{
	uint8_t fl = last(g, b)->flow;

	return (fl == FLOW_JMP || fl == FLOW_JCC) && g->block[b].succ[0] == AN_NONE;
}

/* control goes on behind b, and that is in no block */
static bool runs_out(const struct an_group *g, uint32_t b)
{
	uint8_t fl = last(g, b)->flow;

	return (fl == FLOW_JCC || fl == FLOW_NEXT || fl == FLOW_SYSCALL) && g->block[b].succ[1] == AN_NONE;
}

static bool own_exits(const struct module *m, const struct an_group *g)
{
	const uint32_t more = AN_B_LANDING | AN_B_TWICE | AN_B_RETURN | AN_B_TARGET | AN_B_ANYTARGET;

	if (g->reason != MAP_OK || g->sum->addr_taken || g->sum->tailx)
		return false;
	for (uint32_t b = 0; b < g->nblock; b++) {
		if ((g->block[b].flags & AN_B_ENTRY) && (g->block[b].flags & more))
			return false;
		if (last(g, b)->flow == FLOW_IJMP && glue_jump(m, g, b) != JUMP_PLAIN)
			return false;
		if (runs_out(g, b) || (tail(g, b) && !glue_callee(g, g->block[b].first + g->block[b].n - 1)))
			return false;
	}
	return true;
}

/* ---- references that discovery has not followed -------------------------------------------------- */

struct entry {
	uint32_t vaddr, group;
};
struct refs {
	struct module *m;
	uint8_t *bit; /* per byte of text: an entry of a private group */
	struct entry *e; /* those, ascending vaddr */
	uint32_t n;
};

static int by_vaddr(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static void revoke(const struct refs *r, uint64_t v)
{
	struct entry key = {(uint32_t)v, 0}, *e;

	e = bsearch(&key, r->e, r->n, sizeof(*e), by_vaddr);
	if (e)
		r->m->group[e->group].sum->priv = false;
}

/* most words are nobody's address */
static inline void refers(const struct refs *r, uint64_t v)
{
	uint64_t at = v - r->m->text_lo;

	if (at < r->m->text_hi - r->m->text_lo && (r->bit[at >> 3] >> (at & 7) & 1))
		revoke(r, v);
}

/* The byte at v, of code that stays where it is, or of data among code: whatever instruction it may be in.
 * op: the two bytes before it. */
static void foreign(const struct refs *r, uint32_t v, const uint8_t *op, const uint8_t *p, bool four)
{
	int32_t d = (int8_t)*p;

	if (op[1] == 0xeb || (op[1] & 0xf0) == 0x70 || (op[1] & 0xfc) == 0xe0)
		refers(r, (uint64_t)v + 1 + (int64_t)d);
	if (!four)
		return;
	memcpy(&d, p, 4);
	if (op[1] == 0xe8 || op[1] == 0xe9 || (op[0] == 0x0f && (op[1] & 0xf0) == 0x80))
		refers(r, (uint64_t)v + 4 + (int64_t)d);
	for (unsigned imm = 0; (op[1] & 0xc7) == 5 && imm <= 4; imm++) /* modrm: rip-relative */
		refers(r, (uint64_t)v + 4 + imm + (int64_t)d);
	if (!r->m->pie)
		refers(r, (uint32_t)d);
}

static void foreign_code(const struct refs *r)
{
	const struct module *m = r->m;

	for (uint32_t v = m->text_lo; v < m->text_hi; v++) {
		uint8_t op[2] = {0, 0};
		const uint8_t *p,
			*keep = memchr(m->live_byte + (v - m->text_lo), AN_BYTE_KEEP, m->text_hi - v);

		if (!keep)
			return;
		v = m->text_lo + (uint32_t)(keep - m->live_byte);
		if (!(p = elf_at(m, v, 1)))
			continue;
		if (elf_at(m, v - 2, 2))
			memcpy(op, p - 2, 2);
		foreign(r, v, op, p, elf_at(m, v, 4) != NULL);
	}
}

/* .eh_frame names every function, and only unwinders read it */
static void data(const struct refs *r)
{
	const struct module *m = r->m;
	const struct elf_range *eh = &elf_priv(m)->ehdr;
	uint64_t lo = m->text_lo, n = m->text_hi - lo;

	for (uint32_t i = 0; i < m->nseg; i++) {
		const struct map_seg *s = &m->seg[i];
		const uint8_t *p = s->prot & PF_X ? NULL : elf_at(m, s->vaddr, s->filesz);
		int32_t d;

		for (uint64_t o = -s->vaddr & 3; p && o + 4 <= s->filesz; o += 4) {
			uint64_t at = s->vaddr + o;

			memcpy(&d, p + o, 4);
			if (!m->pie && (uint32_t)d - lo < n)
				refers(r, (uint32_t)d);
			if (at + (int64_t)d - lo < n && at - eh->start >= eh->end - eh->start)
				refers(r, at + (int64_t)d);
		}
	}
}

static void unfollowed(struct module *m)
{
	struct refs r = {.m = m, .bit = calloc((m->text_hi - m->text_lo) / 8 + 1, 1)};
	uint32_t cap = 0;

	if (!r.bit)
		abort();
	for (uint32_t i = 0; i < m->ngroup; i++) {
		const struct an_group *g = &m->group[i];

		for (uint32_t b = 0; g->sum->priv && b < g->nblock; b++) {
			uint32_t v = g->insn[g->block[b].first].vaddr;

			if (!(g->block[b].flags & AN_B_ENTRY) || v < m->text_lo)
				continue;
			r.bit[(v - m->text_lo) >> 3] |= 1 << ((v - m->text_lo) & 7);
			r.e = grow(r.e, r.n, &cap, sizeof(*r.e));
			r.e[r.n++] = (struct entry){v, i};
		}
	}
	if (r.n)
		qsort(r.e, r.n, sizeof(*r.e), by_vaddr);
	foreign_code(&r);
	data(&r);
	for (uint32_t i = 0; i < m->ngroup; i++) {
		const struct an_group *g = &m->group[i];

		/* leaves for what follows in the original text */
		for (uint32_t b = 0; g->reason == MAP_OK && b < g->nblock; b++)
			if (runs_out(g, b))
				refers(&r, last(g, b)->vaddr + last(g, b)->len);
	}
	free(r.bit);
	free(r.e);
}

/* ---- what the groups that it is linked with ask for ---------------------------------------------- */

static bool plain_return(const struct an_group *g, uint32_t insn)
{
	uint32_t b = g->block[g->insn[insn].block].succ[1];

	return b == AN_NONE || ((g->block[b].flags & AN_B_RETURN) &&
				!(g->block[b].flags &
				  (AN_B_ENTRY | AN_B_LANDING | AN_B_TWICE | AN_B_TARGET | AN_B_ANYTARGET)));
}

/* which of the two properties */
static bool *set_of(struct an_group *g, bool keeps)
{
	return keeps ? &g->sum->keeps : &g->sum->priv;
}

static void close_set(struct module *m, bool keeps)
{
	bool again = true;

	while (again) {
		again = false;
		for (uint32_t i = 0; i < m->ngroup; i++) {
			struct an_group *g = &m->group[i];

			for (uint32_t k = 0; g->reason == MAP_OK && k < g->ncallee; k++) {
				bool *from = set_of(g, keeps),
				     *to = set_of(&m->group[g->callee[k].group], keeps);
				bool call = g->insn[g->callee[k].insn].flow == FLOW_CALL;

				if (call && *to && !plain_return(g, g->callee[k].insn))
					again = !(*to = false);
				if (!call && *from != *to)
					again = !(*from = *to = false);
			}
		}
	}
}

/* discovery's and patch.c's facts stand, for now */
void keep_private(struct module *m)
{
	for (uint32_t i = 0; i < m->ngroup; i++) {
		m->group[i].sum->priv = own_exits(m, &m->group[i]);
		m->group[i].sum->keeps = false;
	}
	unfollowed(m);
	close_set(m, false);
}

/* summaries stand */
void keep_find(struct module *m)
{
	for (uint32_t i = 0; i < m->ngroup; i++)
		m->group[i].sum->keeps = m->group[i].sum->priv && m->group[i].sum->lifo;
	close_set(m, true);
}
