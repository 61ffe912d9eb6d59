/* SPDX-License-Identifier: MIT
 *
 * cfg.c - instructions and basic blocks of one group
 *
 * Blocks end at every transfer of control, calls and syscalls included, and before leaders.
 * An instruction that is also entered behind its prefix appears twice, each form a block of
 * its own, with the same successor:
 *
 *        p:   lock cmpxchg      block i     insn n      succ[1] = k
 *        p+1:      cmpxchg      block i+1   insn n+1    succ[1] = k
 *        q:   …                 block k
 *
 * so the block that follows in address order is not always the one control falls into.
 */
#include <string.h>
#include "disc.h"
#include "scratch.h"

uint32_t cfg_insn_at(const struct an_group *g, uint32_t vaddr)
{
	uint32_t lo = 0, hi = g->ninsn;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (g->insn[mid].vaddr < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < g->ninsn && g->insn[lo].vaddr == vaddr ? lo : AN_NONE;
}

/* Is instruction n, which follows one that falls through to it, behind a prefix variant? */
static bool behind_variant(const struct an_insn *insn, uint32_t n)
{
	return n > 1 && insn[n - 2].vaddr + insn[n - 2].len > insn[n - 1].vaddr;
}

/* May another instruction begin within the one of len bytes at il? */
static bool begins_within(const uint8_t *il, uint32_t len)
{
	uint64_t b;

	if (len > 8)
		return true;
	memcpy(&b, il, 8); /* there is slack behind the text */
	return b >> 8 << 8 << (64 - 8 * len) & 0x0f0f0f0f0f0f0f0full;
}

/* What else there is to say of instruction i, of that kind; s: what discovery found there. */
static void fill_special(const struct disc *d, struct an_insn *i, unsigned kind, uint8_t s)
{
	static const uint8_t behind[] = {[K_RIP - K_RIP] = 4, 5, 6, 8};
	const uint8_t *p;

	switch (kind) {
	case K_JMP8:
	case K_JMP32:
	case K_JCC8:
	case K_JCC32:
	case K_CALL:
		i->target = disc_target(d, i->vaddr);
		break;
	case K_ICALL:
	case K_IJMP:
		/* the opcode is 0xff */
		if (i->len >= 6 && (p = elf_at(d->m, i->vaddr, i->len)) && p[i->len - 6] == 0xff &&
		    (p[i->len - 5] & 0xc7) == 5)
			i->disp = i->len - 4;
		break;
	case K_RIP:
	case K_RIP1:
	case K_RIP2:
	case K_RIP4:
		i->disp = i->len - behind[kind - K_RIP];
		return;
	}
	if (s & ST_NORET)
		i->flags |= AN_I_NORETURN;
	if (!(s & ST_TWICE))
		return;
	/* code without unwind tables has rules of its own (discover_walk.c) */
	i->flags |= AN_I_SETJMP | (d->piece.v[disc_piece(d, i->vaddr)].kind == PC_GAP ? AN_I_STRAY : 0);
}

/* Fills instructions, which of them begin blocks, and the index that insn_at asks. Returns the number of blocks. */
static uint32_t find_insns(struct disc *d, struct an_group *g, uint32_t *first)
{
	static const uint8_t flow[] = {
		[K_NEXT] = FLOW_NEXT,	    [K_JMP8] = FLOW_JMP,    [K_JMP32] = FLOW_JMP,
		[K_JCC8] = FLOW_JCC,	    [K_JCC32] = FLOW_JCC,   [K_IJMP] = FLOW_IJMP,
		[K_CALL] = FLOW_CALL,	    [K_ICALL] = FLOW_ICALL, [K_RET] = FLOW_RET,
		[K_SYSCALL] = FLOW_SYSCALL, [K_HALT] = FLOW_HALT,   [K_RIP] = FLOW_NEXT,
		[K_RIP1] = FLOW_NEXT,	    [K_RIP2] = FLOW_NEXT,   [K_RIP4] = FLOW_NEXT,
	};
	const uint8_t *il = d->il, *st = d->st;
	bool whole = !d->nalt; /* no instruction begins within another one */
	uint32_t n = 0, nb = 0, line = AN_NONE;
	uint32_t falls = AN_NONE; /* where the instruction before falls through to */
	struct an_insn *out = g->insn;

	for (uint32_t r = 0; r < g->nrange; r++)
		for (uint32_t o = g->range[r].start - d->lo, end = g->range[r].end - d->lo, len; o < end;
		     o += len) {
			unsigned kind = IL_KIND(il[o]);

			if (!(len = IL_LEN(il[o]))) {
				len = 1;
				continue;
			}
			if (o != falls || (st[o] & (ST_LEAD | ST_ENTRY | ST_LAND | ST_TARGET)) ||
			    (!whole && behind_variant(out, n)))
				first[nb++] = n;
			out[n] = (struct an_insn){.vaddr = d->lo + o,
						  .target = AN_NONE,
						  .len = len,
						  .flow = flow[kind],
						  .block = nb - 1};
			falls = flow[kind] == FLOW_NEXT ? o + len : AN_NONE;
			if (kind != K_NEXT)
				fill_special(d, &out[n], kind, st[o]);
			if (o / INSN_NEAR != line)
				d->insn[line = o / INSN_NEAR] = n;
			n++;
			len = whole || !begins_within(il + o, len) ? len : 1;
		}
	first[nb] = n;
	g->ninsn = n;
	return nb;
}

/* cfg_insn_at while the group is made */
static uint32_t insn_at(const struct disc *d, const struct an_group *g, uint32_t vaddr)
{
	uint32_t i;

	if (!disc_in(d, vaddr))
		return AN_NONE;
	/* The index may be another group's, where none of this one's instructions begins. */
	i = d->insn[(vaddr - d->lo) / INSN_NEAR];
	if (i >= g->ninsn || g->insn[i].vaddr + INSN_NEAR <= vaddr)
		return AN_NONE;
	while (i < g->ninsn && g->insn[i].vaddr < vaddr)
		i++;
	return i < g->ninsn && g->insn[i].vaddr == vaddr ? i : AN_NONE;
}

static uint32_t block_flags(uint8_t st)
{
	return (st & ST_ENTRY ? AN_B_ENTRY : 0) | (st & ST_LAND ? AN_B_LANDING : 0);
}

static uint32_t block_at(const struct disc *d, const struct an_group *g, uint32_t vaddr)
{
	uint32_t i = insn_at(d, g, vaddr);

	return i == AN_NONE || g->block[g->insn[i].block].first != i ? AN_NONE : g->insn[i].block;
}

/* Block that the instruction's end leads to. */
static uint32_t next_block(const struct disc *d, const struct an_group *g, uint32_t i)
{
	uint32_t v = g->insn[i].vaddr + g->insn[i].len;

	if (i + 1 < g->ninsn && g->insn[i + 1].vaddr == v)
		return g->insn[i + 1].block;
	return block_at(d, g, v);
}

static void link_block(const struct disc *d, struct an_group *g, struct an_block *b)
{
	uint32_t last = b->first + b->n - 1;
	const struct an_insn *in = &g->insn[last];

	switch (in->flow) {
	case FLOW_JMP:
		b->succ[0] = block_at(d, g, in->target);
		break;
	case FLOW_JCC:
		b->succ[0] = block_at(d, g, in->target);
		b->succ[1] = next_block(d, g, last);
		break;
	case FLOW_CALL:
	case FLOW_ICALL:
		if (in->flags & AN_I_NORETURN)
			break;
		b->succ[1] = next_block(d, g, last);
		if (b->succ[1] != AN_NONE)
			g->block[b->succ[1]].flags |=
				AN_B_RETURN | (in->flags & AN_I_SETJMP ? AN_B_TWICE : 0);
		break;
	case FLOW_NEXT:
	case FLOW_SYSCALL:
		b->succ[1] = next_block(d, g, last);
		break;
	}
}

static int make_tables(struct disc *d, struct an_group *g)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->nblock; i++)
		n += g->insn[g->block[i].first + g->block[i].n - 1].flow == FLOW_IJMP;
	if (!n)
		return 0;
	if (!(g->table = calloc(n, sizeof(*g->table))))
		return -1;
	for (uint32_t i = 0; i < g->nblock; i++) {
		struct an_block *b = &g->block[i];
		uint32_t jump = b->first + b->n - 1;
		const struct ijmp *j =
			g->insn[jump].flow == FLOW_IJMP ? disc_ijmp(d, g->insn[jump].vaddr) : NULL;
		struct an_table *t = &g->table[g->ntable];

		if (!j || !j->ntarget)
			continue;
		*t = (struct an_table){.jump = jump,
				       .vaddr = j->table,
				       .entry_size = j->entsize,
				       .nentry = j->entries,
				       .exact = j->exact};
		if (!(t->target = malloc(j->ntarget * sizeof(*t->target))))
			return -1;
		b->table = g->ntable++;
		for (uint32_t k = 0; k < j->ntarget; k++) {
			uint32_t to = block_at(d, g, j->target[k]);

			if (to == AN_NONE) {
				t->exact = false; /* lies in opaque bytes or is another group's entry */
				continue;
			}
			t->target[t->ntarget++] = to;
			g->block[to].flags |= j->exact ? AN_B_TARGET : AN_B_ANYTARGET;
		}
	}
	return 0;
}

/* Calls fn for every edge out of block i, none twice. Only a table's targets may repeat otherwise than by pairs: seen. */
#define EACH_EDGE(g, i, s, body)                                                                             \
	do {                                                                                                 \
		const struct an_block *b_ = &(g)->block[i];                                                  \
		const struct an_table *t_ = b_->table != AN_NONE ? &(g)->table[b_->table] : NULL;            \
		uint32_t s = b_->succ[0];                                                                    \
		if (s != AN_NONE)                                                                            \
			body;                                                                                \
		s = b_->succ[1];                                                                             \
		if (s != AN_NONE && s != b_->succ[0])                                                        \
			body;                                                                                \
		for (uint32_t k_ = 0; t_ && k_ < t_->ntarget; k_++) {                                        \
			s = t_->target[k_];                                                                  \
			if (seen[s] == i)                                                                    \
				continue;                                                                    \
			seen[s] = i;                                                                         \
			body;                                                                                \
		}                                                                                            \
	} while (0)

/* Predecessor lists, without duplicates, in one allocation owned by block 0's list. */
static int make_preds(struct an_group *g)
{
	struct scratch_mark m = scratch_mark();
	uint32_t *seen = scratch(g->nblock * sizeof(*seen)), *mem, total = 0;

	if (!seen)
		return -1;
	if (g->ntable)
		memset(seen, 0xff, g->nblock * sizeof(*seen));
	for (uint32_t i = 0; i < g->nblock; i++)
		EACH_EDGE(g, i, s, {
			g->block[s].npred++;
			total++;
		});
	mem = malloc((total + 1ul) * sizeof(*mem));
	for (uint32_t i = 0; mem && i < g->nblock; i++) {
		g->block[i].pred = mem;
		mem += g->block[i].npred;
		g->block[i].npred = 0;
	}
	if (g->ntable)
		memset(seen, 0xff, g->nblock * sizeof(*seen));
	for (uint32_t i = 0; mem && i < g->nblock; i++)
		EACH_EDGE(g, i, s, { g->block[s].pred[g->block[s].npred++] = i; });
	scratch_release(m);
	return mem ? 0 : -1;
}

uint32_t cfg_count(const struct disc *d, const struct an_group *g)
{
	const uint64_t ones = 0x0101010101010101u;
	uint32_t n = 0;

	/* eight bytes at a time: what begins an instruction has its length in the low half */
	for (uint32_t r = 0; r < g->nrange; r++)
		for (uint32_t o = g->range[r].start - d->lo, end = g->range[r].end - d->lo; o < end; o += 8) {
			uint64_t il;

			memcpy(&il, d->il + o, 8); /* there is slack behind the text */
			if (end - o < 8)
				il &= (1ull << 8 * (end - o)) - 1;
			n += (((il & 15 * ones) + 15 * ones) >> 4 & ones) * ones >> 56;
		}
	return n;
}

static int make_blocks(const struct disc *d, struct an_group *g, const uint32_t *first, uint32_t n)
{
	if (!(g->block = malloc(n * sizeof(*g->block))))
		return -1;
	g->nblock = n;
	for (uint32_t b = 0; b < n; b++)
		g->block[b] = (struct an_block){.first = first[b],
						.n = first[b + 1] - first[b],
						.succ = {AN_NONE, AN_NONE},
						.table = AN_NONE,
						.flags = block_flags(d->st[g->insn[first[b]].vaddr - d->lo])};
	for (uint32_t b = 0; b < n; b++)
		link_block(d, g, &g->block[b]);
	return 0;
}

int cfg_build(struct disc *d, struct an_group *g)
{
	struct scratch_mark m = scratch_mark();
	uint32_t n = cfg_count(d, g), *first;
	int rc = -1;

	if (!n)
		return 0;
	first = scratch((n + 1ul) * sizeof(*first));
	if (first && (g->insn = malloc(n * sizeof(*g->insn))))
		rc = make_blocks(d, g, first, find_insns(d, g, first));
	scratch_release(m);
	return rc || make_tables(d, g) || make_preds(g) ? -1 : 0;
}

void cfg_free(struct an_group *g)
{
	for (uint32_t i = 0; g->table && i < g->ntable; i++)
		free(g->table[i].target);
	free(g->table);
	if (g->block)
		free(g->block[0].pred);
	free(g->block);
	free(g->insn);
	free(g->callee);
	free(g->range);
	g->table = NULL;
	g->block = NULL;
	g->insn = NULL;
	g->callee = NULL;
	g->range = NULL;
	g->ninsn = g->nblock = g->ntable = g->ncallee = g->nrange = 0;
}
