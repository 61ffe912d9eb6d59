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

static uint8_t flow_of(unsigned kind)
{
	static const uint8_t flow[] = {
		[K_NEXT] = FLOW_NEXT,	    [K_JMP8] = FLOW_JMP,    [K_JMP32] = FLOW_JMP,
		[K_JCC8] = FLOW_JCC,	    [K_JCC32] = FLOW_JCC,   [K_IJMP] = FLOW_IJMP,
		[K_CALL] = FLOW_CALL,	    [K_ICALL] = FLOW_ICALL, [K_RET] = FLOW_RET,
		[K_SYSCALL] = FLOW_SYSCALL, [K_HALT] = FLOW_HALT,   [K_RIP] = FLOW_NEXT,
		[K_RIP1] = FLOW_NEXT,	    [K_RIP2] = FLOW_NEXT,   [K_RIP4] = FLOW_NEXT,
	};

	return flow[kind];
}

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

static bool leader(const struct disc *d, const struct an_group *g, uint32_t i)
{
	const struct an_insn *in = &g->insn[i], *p = in - 1;

	if (!i || p->flow != FLOW_NEXT || p->vaddr + p->len != in->vaddr ||
	    (d->st[in->vaddr - d->lo] & (ST_LEAD | ST_ENTRY | ST_LAND | ST_TARGET)))
		return true;
	return i > 1 && p[-1].vaddr + p[-1].len > p->vaddr; /* behind a prefix variant */
}

/* of the call at v; s: what discovery found there. Code without unwind tables has rules of its own (discover_walk.c). */
static uint8_t call_flags(const struct disc *d, uint32_t v, uint8_t s)
{
	uint8_t f = s & ST_NORET ? AN_I_NORETURN : 0;

	if (s & ST_TWICE)
		f |= AN_I_SETJMP | (d->piece.v[disc_piece(d, v)].kind == PC_GAP ? AN_I_STRAY : 0);
	return f;
}

/* an_insn.disp of the instruction at v. The opcode of indirect calls and jumps is 0xff. */
static uint8_t rip_disp(const struct disc *d, uint32_t v, unsigned len, unsigned kind)
{
	static const uint8_t behind[] = {[K_RIP - K_RIP] = 4, 5, 6, 8};
	const uint8_t *p;

	if (kind >= K_RIP)
		return len - behind[kind - K_RIP];
	if ((kind != K_ICALL && kind != K_IJMP) || len < 6 || !(p = elf_at(d->m, v, len)))
		return 0;
	return p[len - 6] == 0xff && (p[len - 5] & 0xc7) == 5 ? len - 4 : 0;
}

/* Pass 1: counts (out == NULL) or fills instructions. */
static uint32_t scan_insns(const struct disc *d, const struct an_group *g, struct an_insn *out)
{
	bool whole = !d->nalt; /* no instruction begins within another one */
	uint32_t n = 0;

	for (uint32_t r = 0; r < g->nrange; r++)
		for (uint32_t v = g->range[r].start, len; v < g->range[r].end; v += len) {
			uint8_t b = d->il[v - d->lo], s = d->st[v - d->lo];

			len = 1;
			if (!IL_START(b))
				continue;
			len = whole ? IL_LEN(b) : 1;
			if (out)
				out[n] = (struct an_insn){.vaddr = v,
							  .len = IL_LEN(b),
							  .flow = flow_of(IL_KIND(b)),
							  .target = disc_target(d, v),
							  .flags = call_flags(d, v, s),
							  .disp = rip_disp(d, v, IL_LEN(b), IL_KIND(b))};
			n++;
		}
	return n;
}

static uint32_t block_flags(uint8_t st)
{
	return (st & ST_ENTRY ? AN_B_ENTRY : 0) | (st & ST_LAND ? AN_B_LANDING : 0);
}

static uint32_t block_at(const struct an_group *g, uint32_t vaddr)
{
	uint32_t i = cfg_insn_at(g, vaddr);

	return i == AN_NONE || g->block[g->insn[i].block].first != i ? AN_NONE : g->insn[i].block;
}

/* Block that the instruction's end leads to. */
static uint32_t next_block(const struct an_group *g, uint32_t i)
{
	uint32_t v = g->insn[i].vaddr + g->insn[i].len;

	if (i + 1 < g->ninsn && g->insn[i + 1].vaddr == v)
		return g->insn[i + 1].block;
	return block_at(g, v);
}

static void link_block(struct an_group *g, struct an_block *b)
{
	uint32_t last = b->first + b->n - 1;
	const struct an_insn *in = &g->insn[last];

	switch (in->flow) {
	case FLOW_JMP:
		b->succ[0] = block_at(g, in->target);
		break;
	case FLOW_JCC:
		b->succ[0] = block_at(g, in->target);
		b->succ[1] = next_block(g, last);
		break;
	case FLOW_CALL:
	case FLOW_ICALL:
		if (in->flags & AN_I_NORETURN)
			break;
		b->succ[1] = next_block(g, last);
		if (b->succ[1] != AN_NONE)
			g->block[b->succ[1]].flags |=
				AN_B_RETURN | (in->flags & AN_I_SETJMP ? AN_B_TWICE : 0);
		break;
	case FLOW_NEXT:
	case FLOW_SYSCALL:
		b->succ[1] = next_block(g, last);
		break;
	}
}

static int make_tables(struct disc *d, struct an_group *g)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->ninsn; i++)
		n += g->insn[i].flow == FLOW_IJMP;
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
			uint32_t to = block_at(g, j->target[k]);

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

/* Calls fn for every edge out of block i; duplicates of a table are visited once in a row only. */
#define EACH_SUCC(g, i, s, body)                                                                             \
	do {                                                                                                 \
		const struct an_block *b_ = &(g)->block[i];                                                  \
		for (int k_ = 0; k_ < 2; k_++) {                                                             \
			uint32_t s = b_->succ[k_];                                                           \
			if (s != AN_NONE)                                                                    \
				body;                                                                        \
		}                                                                                            \
		if (b_->table != AN_NONE)                                                                    \
			for (uint32_t k_ = 0; k_ < (g)->table[b_->table].ntarget; k_++) {                    \
				uint32_t s = (g)->table[b_->table].target[k_];                               \
				body;                                                                        \
			}                                                                                    \
	} while (0)

static void mark_reached(struct an_group *g, uint32_t *stack)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->nblock; i++)
		if (g->block[i].flags & (AN_B_ENTRY | AN_B_LANDING | AN_B_TARGET | AN_B_ANYTARGET)) {
			g->block[i].flags |= AN_B_REACHED;
			stack[n++] = i;
		}
	while (n) {
		uint32_t i = stack[--n];

		EACH_SUCC(g, i, s, {
			if (!(g->block[s].flags & AN_B_REACHED)) {
				g->block[s].flags |= AN_B_REACHED;
				stack[n++] = s;
			}
		});
	}
}

/* Predecessor lists, without duplicates, in one allocation owned by block 0's list. */
static int make_preds(struct an_group *g)
{
	uint32_t *seen = malloc(g->nblock * 2 * sizeof(*seen)), *mem, total = 0;

	if (!seen)
		return -1;
	memset(seen, 0xff, g->nblock * sizeof(*seen));
	mark_reached(g, seen + g->nblock);
	for (uint32_t i = 0; i < g->nblock; i++)
		EACH_SUCC(g, i, s, {
			if (seen[s] != i) {
				seen[s] = i;
				g->block[s].npred++;
				total++;
			}
		});
	mem = malloc((total + 1) * sizeof(*mem));
	if (!mem) {
		free(seen);
		return -1;
	}
	for (uint32_t i = 0; i < g->nblock; i++) {
		g->block[i].pred = mem;
		mem += g->block[i].npred;
		g->block[i].npred = 0;
	}
	memset(seen, 0xff, g->nblock * sizeof(*seen));
	for (uint32_t i = 0; i < g->nblock; i++)
		EACH_SUCC(g, i, s, {
			if (seen[s] != i) {
				seen[s] = i;
				g->block[s].pred[g->block[s].npred++] = i;
			}
		});
	free(seen);
	return 0;
}

uint32_t cfg_count(const struct disc *d, const struct an_group *g)
{
	return scan_insns(d, g, NULL);
}

int cfg_build(struct disc *d, struct an_group *g)
{
	uint32_t nb = 0;

	g->ninsn = scan_insns(d, g, NULL);
	if (!g->ninsn)
		return 0;
	if (!(g->insn = malloc(g->ninsn * sizeof(*g->insn))))
		return -1;
	scan_insns(d, g, g->insn);
	for (uint32_t i = 0; i < g->ninsn; i++) {
		nb += leader(d, g, i);
		g->insn[i].block = nb - 1;
	}
	if (!(g->block = calloc(nb, sizeof(*g->block))))
		return -1;
	g->nblock = nb;
	for (uint32_t i = 0; i < g->ninsn; i++) {
		struct an_block *b = &g->block[g->insn[i].block];

		if (!b->n++) {
			b->first = i;
			b->succ[0] = b->succ[1] = b->table = AN_NONE;
			b->flags = block_flags(d->st[g->insn[i].vaddr - d->lo]);
		}
	}
	for (uint32_t i = 0; i < nb; i++)
		link_block(g, &g->block[i]);
	return make_tables(d, g) || make_preds(g) ? -1 : 0;
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
