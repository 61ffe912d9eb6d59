/* SPDX-License-Identifier: MIT
 *
 * discover_link.c - facts between finished groups: who calls whom, who may leave how
 */
#include <string.h>
#include <sys/mman.h>
#include "discover_group.h"
#include "sort.h"

static struct an_group *in_group(const struct module *m, uint32_t group, uint32_t vaddr, uint32_t *block)
{
	struct an_group *g = &m->group[group];
	uint32_t i = cfg_insn_at(g, vaddr);

	if (i == AN_NONE || g->block[g->insn[i].block].first != i)
		return NULL;
	*block = g->insn[i].block;
	return g;
}

struct an_group *group_at(const struct module *m, uint32_t vaddr, uint32_t *block)
{
	const struct elf_priv *x = elf_priv(m);
	uint32_t lo = 0, hi = x->home.n;

	*block = AN_NONE;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (x->home.v[mid].end <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo >= x->home.n || x->home.v[lo].start > vaddr)
		return NULL;
	return in_group(m, x->home.v[lo].group, vaddr, block);
}

/* the same, while pieces are there */
static struct an_group *group_of(const struct disc *d, uint32_t vaddr, uint32_t *block)
{
	uint32_t p = disc_piece(d, vaddr);

	*block = AN_NONE;
	return p == AN_NONE || d->piece.v[p].group == AN_NONE
		       ? NULL
		       : in_group(d->m, d->piece.v[p].group, vaddr, block);
}

static int make_homes(struct module *m)
{
	struct elf_priv *x = elf_priv(m);

	for (uint32_t i = 0; i < m->ngroup; i++)
		for (uint32_t r = 0; r < m->group[i].nrange; r++)
			if (!VEC_PUSH(&x->home, (struct elf_home){m->group[i].range[r].start,
								  m->group[i].range[r].end, i}))
				return -1;
	sort_first(x->home.v, x->home.n, sizeof(*x->home.v));
	return 0;
}

/* The instruction that ends block b, if it goes directly to a place that may be another group. */
static const struct an_insn *leaves_to(const struct an_group *g, const struct an_block *b)
{
	const struct an_insn *in = &g->insn[b->first + b->n - 1];

	if (in->flow == FLOW_CALL)
		return in;
	return (in->flow == FLOW_JMP || in->flow == FLOW_JCC) && b->succ[0] == AN_NONE ? in : NULL;
}

/* A stub, `[endbr64] [bnd] jmp *slot(%rip)`, whose slot the loader sets to a symbol that this module defines:
 * the address of that definition, else AN_NONE. The symbol may be bound to another module's, the slot to
 * anything: it is what the copy compares the slot with. */
static uint32_t bound_to(const struct disc *d, const struct an_group *g, const struct an_block *b)
{
	const struct an_insn *in = &g->insn[b->first + b->n - 1];
	const uint8_t *p;
	const struct elf_sym *s;
	uint32_t o, slot;
	uint64_t to;
	bool fixed;

	if (in->flow != FLOW_IJMP || !(b->flags & AN_B_ENTRY) || b->table != AN_NONE || b->n > 2)
		return AN_NONE;
	p = elf_at(d->m, in->vaddr, in->len);
	o = in->len == 7 && p && p[0] == 0xf2;
	if (in->len != o + 6 || !p || p[o] != 0xff || p[o + 1] != 0x25 ||
	    (b->n == 2 && memcmp(elf_at(d->m, g->insn[b->first].vaddr, 4), "\xf3\x0f\x1e\xfa", 4)))
		return AN_NONE;
	memcpy(&slot, p + o + 2, 4);
	slot += in->vaddr + in->len;
	if (!elf_slot_name(d->m, slot) || !elf_word(d->m, slot, &to, &fixed) || to >= AN_NONE)
		return AN_NONE;
	s = elf_sym_at(d->m, (uint32_t)to);
	return s && s->kind == ELF_S_FUNC ? (uint32_t)to : AN_NONE;
}

static void add_callee(struct an_group *g, uint32_t insn, uint32_t group, uint32_t block)
{
	g->insn[insn].flags |= AN_I_CALLEE;
	g->block[g->insn[insn].block].callee = g->ncallee;
	g->callee[g->ncallee++] = (struct an_callee){insn, group, block};
}

static int link_group(struct disc *d, struct an_group *g, uint8_t *called)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->nblock; i++)
		n += leaves_to(g, &g->block[i]) ||
		     g->insn[g->block[i].first + g->block[i].n - 1].flow == FLOW_IJMP;
	if (n && !(g->callee = malloc(n * sizeof(*g->callee))))
		return -1;
	for (uint32_t i = 0; i < g->nblock; i++) {
		const struct an_insn *in = leaves_to(g, &g->block[i]);
		uint32_t bound = bound_to(d, g, &g->block[i]), block;
		struct an_group *to;

		if (g->block[i].table != AN_NONE
			    ? !g->table[g->block[i].table].exact
			    : g->insn[g->block[i].first + g->block[i].n - 1].flow == FLOW_IJMP)
			g->sum->tailx = true;
		if (bound != AN_NONE && (to = group_of(d, bound, &block)) &&
		    (to->block[block].flags & AN_B_ENTRY))
			add_callee(g, g->block[i].first + g->block[i].n - 1, to->id, block);
		if (!in)
			continue;
		to = group_of(d, in->target, &block);
		if (to && (to->block[block].flags & AN_B_ENTRY)) {
			add_callee(g, in - g->insn, to->id, block);
			called[to->id] = 1;
		} else if (in->flow != FLOW_CALL) {
			g->sum->tailx = true; /* jumps to opaque code */
		}
	}
	return 0;
}

/* A tail jump to a group that may leave by an indirect jump may leave that way too. */
static void spread_tailx(struct module *m)
{
	bool more = true;

	while (more) {
		more = false;
		for (uint32_t i = m->ngroup; i-- > 0;) {
			struct an_group *g = &m->group[i];

			for (uint32_t k = 0; !g->sum->tailx && k < g->ncallee; k++)
				if (g->insn[g->callee[k].insn].flow != FLOW_CALL &&
				    m->group[g->callee[k].group].sum->tailx)
					g->sum->tailx = more = true;
		}
	}
}

static bool taken(const struct disc *d, const struct an_group *g)
{
	for (uint32_t i = 0; i < g->nblock; i++)
		if ((g->block[i].flags & AN_B_ENTRY) &&
		    (d->st[g->insn[g->block[i].first].vaddr - d->lo] & ST_TAKEN))
			return true;
	return false;
}

int group_link(struct disc *d)
{
	struct module *m = d->m;
	uint8_t *called = calloc(m->ngroup + 1ull, 1);
	int rc = called ? make_homes(m) : -1;

	for (uint32_t i = 0; !rc && i < m->ngroup; i++)
		rc = link_group(d, &m->group[i], called);
	for (uint32_t i = 0; !rc && i < m->ngroup; i++)
		m->group[i].sum->addr_taken = !called[i] || taken(d, &m->group[i]);
	free(called);
	if (!rc)
		spread_tailx(m);
	d->x->nalt = d->nalt;
	return rc;
}

void elf_close(struct module *m)
{
	struct elf_priv *x = m ? elf_priv(m) : NULL;

	if (!m)
		return;
	for (uint32_t i = 0; i < m->ngroup; i++) {
		cfg_free(&m->group[i]);
		free(m->group[i].sum);
	}
	free(m->group);
	free(m->opaque);
	free(m->live_byte);
	free(m->seg);
	free(m->ro);
	if (m->file)
		munmap((void *)m->file, m->file_size);
	free((char *)m->path);
	free(x->fde.v);
	free(x->text.v);
	free(x->plt.v);
	free(x->data.v);
	free(x->sym.v);
	free(x->ptr.v);
	free(x->slot.v);
	free(x->rowords);
	free(x->root.v);
	free(x->pad.v);
	free(x->avoid.v);
	free(x->home.v);
	free(x);
	free(m);
}
