/* SPDX-License-Identifier: MIT
 *
 * rt_xlat.c - from a position in the copy to the state the original program would show
 *
 * The map's MAP_XLAT says for each copy address which original instruction is next and where
 * borrowed registers are. A position in the original text may be one of our patches: an
 * entry's jmp, or an island; those are followed into the copy, whose stub is in the table. And the
 * other way: where the copy can be entered for an instruction.
 */
#include "rt.h"

uint64_t rt_rflags(uint64_t rflags, uint64_t lahf)
{
	rflags &= ~0x8d5ull; /* OF SF ZF AF PF CF */
	return rflags | (lahf >> 8 & 0xd5) | (lahf & 1 ? 0x800 : 0);
}

uint64_t rt_rflags_hook(const struct rt_tcb *t)
{
	return rt_rflags(t->rflags, t->sv.flags);
}

uint64_t rt_lahf(uint64_t rflags)
{
	return (rflags & 0xd5) << 8 | (rflags >> 11 & 1);
}

static const struct map_xlat *find(const struct rt_module *m, uint64_t off)
{
	uint64_t lo = 0, n, hi;
	const struct map_xlat *x = rt_map_sect(m->map, MAP_XLAT, &n, sizeof(*x));

	for (hi = n; lo < hi;) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (x[mid].copy_off <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &x[lo - 1] : NULL;
}

static const struct map_patch *patch_at(const struct rt_module *m, uint64_t vaddr)
{
	uint64_t lo = 0, n, hi;
	const struct map_patch *p = rt_map_sect(m->map, MAP_PATCHES, &n, sizeof(*p));

	for (hi = n; lo < hi;) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (p[mid].vaddr < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	/* the distance of the short jump before it is this jump's prefix (analyzer/patch.c) */
	if (lo < n && lo && p[lo].vaddr == vaddr + 1 && p[lo - 1].vaddr == vaddr - 1 &&
	    p[lo - 1].kind == MAP_PATCH_JMP8)
		return &p[lo];
	return lo < n && p[lo].vaddr == vaddr ? &p[lo] : NULL;
}

/* a patch covers this byte of the original text: it is not what the program knows */
bool rt_xlat_patched(const struct rt_module *m, uint32_t vaddr)
{
	uint64_t lo = 0, n, hi;
	const struct map_patch *p = rt_map_sect(m->map, MAP_PATCHES, &n, sizeof(*p));

	for (hi = n; lo < hi;) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (p[mid].vaddr <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo--)
		return false;
	return vaddr - p[lo].vaddr < rt_patch_len(&p[lo]);
}

/* an address in the original text: where its jumps lead in the copy, or itself */
static uint64_t follow(uint64_t rip)
{
	for (int hops = 0; hops < 16; hops++) {
		const struct rt_module *m = rt_mod_at(rip);
		const struct map_patch *p = m && m->kind == 1 ? patch_at(m, rip - m->bias) : NULL;

		if (p && p->kind == MAP_PATCH_JMP)
			return m->copy + p->arg;
		if (!p || (p->kind != MAP_PATCH_JMP8 && MAP_PATCH_KIND(p->kind) != MAP_PATCH_NEAR))
			break;
		rip = m->bias + p->arg;
	}
	return rip;
}

static void in_copy(struct rt_tcb *t, const struct map_xlat *x, uint64_t *gpr, uint64_t *rflags)
{
	uint64_t r15 = t->t.r15;

	if (!rt_in_ring(gpr[R15]) && (x->flags & MAP_X_R15_REAL))
		r15 = gpr[R15];
	else if (x->r15_reg < 16)
		r15 = gpr[x->r15_reg]; /* before its host gets its own value back */
	for (int i = 0; i < 2; i++)
		if (x->spill[i] < 16)
			gpr[x->spill[i]] = t->t.spill[i];
	gpr[R15] = r15;
	if (x->flags & MAP_X_FLAGS_SAVED)
		*rflags = rt_rflags(*rflags, t->t.flags);
}

void rt_xlat(struct rt_tcb *t, uint64_t *gpr, uint64_t rip, uint64_t *rflags, struct rt_where *w)
{
	const struct rt_module *m = rt_mod_at_copy(rip);
	const struct map_xlat *x;
	uint64_t orig = rip;

	if (!m) {
		rip = follow(rip);
		m = rt_mod_at_copy(rip);
	}
	x = m ? find(m, rip - m->copy) : NULL;
	if (!x) {
		*w = (struct rt_where){orig, RUN_STOP_IN_TEXT, ~0u, 0, 0, 0, false};
		if (rt_in_ring(gpr[R15]))
			gpr[R15] = t->t.r15;
		return;
	}
	*w = (struct rt_where){m->bias + x->vaddr,   RUN_STOP_IN_COPY, m->index, rip - m->copy, 0, 0,
			       x->flags & MAP_X_STUB};
	w->ahead = x->ahead;
	if (rt_in_ring(gpr[R15])) /* else it is in tcb.lp, and exact */
		w->off = x->off;
	if (x->flags & MAP_X_TARGET) /* the call has happened but for its jump */
		w->rip = t->t.target;
	in_copy(t, x, gpr, rflags);
}

#define INSN_MAX 15 /* bytes (SDM Vol. 2, 2.3.11) */

/* the block of a group that vaddr is in, NULL if no instruction of it begins there; next: the one behind */
static const struct map_block *block_of(const struct rt_module *m, const struct map_group *g, uint32_t vaddr,
					uint32_t *next)
{
	uint64_t n, lo = 0, hi;
	const struct map_block *b = rt_map_sect(m->map, MAP_BLOCKS, &n, sizeof(*b));
	const uint8_t *len = rt_map_sect(m->map, MAP_INSNLEN, &n, 1);
	uint32_t end;

	b += g->block_first;
	hi = g->nblocks;
	/* nearly all groups are elsewhere: this is most of what looking through them costs */
	if (!hi || vaddr < b->vaddr || vaddr >= b[hi - 1].vaddr + INSN_MAX * (uint64_t)b[hi - 1].ninsn)
		return NULL;
	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (b[mid].vaddr <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return NULL;
	b += lo - 1;
	end = b->vaddr;
	for (uint32_t i = 0; i < b->ninsn && end <= vaddr; i++) {
		*next = end + len[b->insn + i];
		if (end == vaddr)
			return b;
		end = *next;
	}
	return NULL;
}

/* Nothing is borrowed where an instruction's own copy begins, unless a loop keeps the program's r15 in a
 * register (analyzer/r15_loop.c), which can be set, too. */
static bool usable(const struct map_xlat *x, struct rt_spot *s)
{
	*s = (struct rt_spot){x->copy_off, x->off, x->r15_reg, 0, s->keeps};
	if (x->flags != MAP_X_START || x->ahead)
		return false;
	for (int i = 0; i < 2; i++) {
		if (x->spill[i] >= 16)
			continue;
		if (x->spill[i] != x->r15_reg)
			return false;
		s->spill = (uint8_t)i;
	}
	return x->r15_reg >= 16 || x->spill[s->spill] == x->r15_reg;
}

/* entries of the address map for one instruction, at most: each of ours may have one of its own */
#define NEAR 64

bool rt_xlat_to(const struct rt_module *m, uint32_t vaddr, struct rt_spot *s)
{
	uint64_t n, nx;
	const struct map_group *g = rt_map_sect(m->map, MAP_GROUPS, &n, sizeof(*g));
	const struct map_xlat *x = rt_map_sect(m->map, MAP_XLAT, &nx, sizeof(*x)), *end = x + nx;

	for (uint64_t i = 0; i < n; i++) {
		uint32_t next;
		const struct map_block *b = block_of(m, &g[i], vaddr, &next);

		if (!b)
			continue;
		s->keeps = g[i].flags & MAP_G_KEEPS;
		x = find(m, b->copy_off);
		for (uint32_t k = 0; x && x < end && k < NEAR * (b->ninsn + 1u); k++, x++)
			if (x->vaddr == vaddr && (x->flags & MAP_X_START))
				return usable(x, s);
		return next != vaddr && rt_xlat_to(m, next, s); /* endbr64 has no copy */
	}
	return false;
}
