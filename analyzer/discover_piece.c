/* SPDX-License-Identifier: MIT
 *
 * discover_piece.c - text cut into pieces, and pieces joined into groups
 *
 *   |  FDE  | gap |  FDE  |stub|stub|   gap    |     a piece is what one FDE covers, one PLT stub,
 *   ‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾     or what lies between; gaps are cut at entries found
 *
 * Two pieces are of one group when a direct jump goes from one into the other at a place that
 * is no entry (hot and cold parts of a function), when control falls from one into the
 * other, or when a jump table of one has targets in the other.
 */
#include <string.h>
#include "disc.h"
#include "sort.h"

unsigned disc_nop_len(const uint8_t *p, unsigned avail)
{
	unsigned i = 0;

	if (avail && *p == 0xcc)
		return 1;
	while (i < avail && (p[i] == 0x66 || p[i] == 0x2e || p[i] == 0x3e) && i < 10)
		i++;
	if (i < avail && p[i] == 0x90)
		return i + 1;
	if (avail - i >= 3 && p[i] == 0x0f && p[i + 1] == 0x1f && (p[i + 2] & 0xf8) != 0xf8) {
		uint8_t mod = p[i + 2] >> 6, rm = p[i + 2] & 7;
		unsigned n = i + 3 + (mod != 3 && rm == 4) +
			     (mod == 1			      ? 1
			      : mod == 2 || (!mod && rm == 5) ? 4
							      : 0);

		return n <= avail ? n : 0;
	}
	return 0;
}

bool disc_is_pad(const struct disc *d, uint32_t v, uint32_t end)
{
	const uint8_t *p = elf_at(d->m, v, end - v);

	for (unsigned n; p && v < end; v += n, p += n)
		if (!(n = disc_nop_len(p, end - v)))
			return false;
	return p != NULL;
}

static void index_pieces(struct disc *d)
{
	uint32_t p = 0;

	for (uint32_t i = 0; i < d->size / PIECE_NEAR + 1; i++) {
		while (p < d->piece.n && d->piece.v[p].end - d->lo <= i * PIECE_NEAR)
			p++;
		d->near[i] = p;
	}
}

uint32_t disc_root(struct disc *d, uint32_t i)
{
	struct piece *p = d->piece.v;

	while (p[i].up != i)
		i = p[i].up = p[p[i].up].up;
	return i;
}

static void unite(struct disc *d, uint32_t a, uint32_t b)
{
	if (a == AN_NONE || b == AN_NONE)
		return;
	a = disc_root(d, a);
	b = disc_root(d, b);
	if (a < b)
		d->piece.v[b].up = a;
	else
		d->piece.v[a].up = b;
}

static bool in_plt(const struct disc *d, uint32_t v)
{
	for (uint32_t i = 0; i < d->x->plt.n; i++)
		if (v >= d->x->plt.v[i].start && v < d->x->plt.v[i].end)
			return true;
	return false;
}

/* Adds [start, end) and the gap before it, within text range t. */
static bool place(struct disc *d, const struct elf_range *t, uint32_t *at, struct piece p)
{
	if (p.start < *at)
		p.start = *at; /* overlapping FDEs: the first one keeps the bytes */
	if (p.end > t->end)
		p.end = t->end;
	if (p.start >= p.end)
		return true;
	if (p.start > *at &&
	    !VEC_PUSH(&d->piece, (struct piece){.start = *at, .end = p.start, .kind = PC_GAP}))
		return false;
	*at = p.end;
	return VEC_PUSH(&d->piece, p);
}

bool disc_pieces(struct disc *d)
{
	VEC(struct piece) raw = {0};
	uint32_t k = 0;
	bool ok = true;

	/* stubs first: an FDE may cover the whole PLT */
	for (uint32_t i = 0; ok && i < d->x->plt.n; i++)
		for (uint32_t v = d->x->plt.v[i].start; ok && v < d->x->plt.v[i].end; v += 16)
			ok = VEC_PUSH(&raw,
				      (struct piece){.start = v,
						     .kind = PC_STUB,
						     .end = d->x->plt.v[i].end - v < 16 ? d->x->plt.v[i].end
											: v + 16});
	for (uint32_t i = 0; ok && i < d->x->fde.n; i++) {
		const struct elf_fde *f = &d->x->fde.v[i];

		/* a signal return's begins a byte early, for unwinders that take it for a call's return */
		if (!in_plt(d, f->start))
			ok = VEC_PUSH(&raw,
				      (struct piece){.start = f->start + elf_sigreturn(d->m, f->start + 1),
						     .end = f->end,
						     .kind = PC_FDE});
	}
	sort_first(raw.v, raw.n, sizeof(*raw.v));
	for (uint32_t i = 0; ok && i < d->x->text.n; i++) {
		const struct elf_range *t = &d->x->text.v[i];
		uint32_t at = t->start;

		while (k < raw.n && raw.v[k].start < t->start)
			k++;
		for (; ok && k < raw.n && raw.v[k].start < t->end; k++)
			ok = place(d, t, &at, raw.v[k]);
		if (ok && at < t->end)
			ok = VEC_PUSH(&d->piece, (struct piece){.start = at, .end = t->end, .kind = PC_GAP});
	}
	for (uint32_t i = 0; i < d->piece.n; i++)
		d->piece.v[i].up = i;
	index_pieces(d);
	free(raw.v);
	return ok;
}

bool disc_falls(const struct disc *d, uint32_t v)
{
	switch (IL_KIND(d->il[v - d->lo])) {
	case K_JMP8:
	case K_JMP32:
	case K_IJMP:
	case K_RET:
	case K_HALT:
		return false;
	case K_CALL:
	case K_ICALL:
		return !(d->st[v - d->lo] & ST_NORET);
	}
	return true;
}

/* Cuts one gap at its entries into `out`; what control falls into stays with what is before. */
static bool split_gap(struct disc *d, const struct piece *p, struct piece_list *out)
{
	struct piece cur = *p;
	uint32_t last = AN_NONE; /* end of the last instruction that goes on */

	for (uint32_t v = p->start; v < p->end; v++) {
		uint8_t b = d->il[v - d->lo];

		if (!IL_START(b))
			continue;
		if ((d->st[v - d->lo] & ST_ENTRY) && v != cur.start && last != v) {
			cur.end = v;
			if (!VEC_PUSH(out, cur))
				return false;
			cur.start = v;
			cur.end = p->end;
		}
		last = disc_falls(d, v) ? v + IL_LEN(b) : AN_NONE;
	}
	return VEC_PUSH(out, cur);
}

static bool split_gaps(struct disc *d)
{
	struct piece_list out = {0};

	for (uint32_t i = 0; i < d->piece.n; i++)
		if (d->piece.v[i].kind == PC_GAP ? !split_gap(d, &d->piece.v[i], &out)
						 : !VEC_PUSH(&out, d->piece.v[i])) {
			free(out.v);
			return false;
		}
	if (out.n == d->piece.n) { /* as it was */
		free(out.v);
		return true;
	}
	free(d->piece.v);
	d->piece = out;
	index_pieces(d);
	return true;
}

/* Links the pieces of each group in ascending order behind its root, the lowest of them. */
static void chain(struct disc *d)
{
	uint32_t *last = malloc((d->piece.n + 1ull) * sizeof(*last));

	if (!last) {
		d->nomem = true;
		return;
	}
	for (uint32_t i = 0; i < d->piece.n; i++) {
		uint32_t r = disc_root(d, i);

		d->piece.v[i].next = AN_NONE;
		d->piece.v[i].done = false;
		if (r != i)
			d->piece.v[last[r]].next = i;
		last[r] = i;
	}
	free(last);
}

static bool in_piece(const struct disc *d, uint32_t p, uint32_t v)
{
	return p != AN_NONE && d->piece.v[p].start <= v && v < d->piece.v[p].end;
}

/* Code that lies behind tables ends in jumps to functions, whose address nobody may take: entries are those that begin
 * behind bytes that are nobody's, or all such code would be one group. */
static void tail_jumps(struct disc *d)
{
	for (uint32_t i = 0; d->jumped && i < d->cross.n; i++) {
		const struct edge *e = &d->cross.v[i];
		uint32_t o = e->to - d->lo, p = disc_piece(d, e->from), q = disc_piece(d, e->to);

		if (!(d->st[o] & ST_ENTRY) && p != q && d->piece.v[p].kind == PC_GAP &&
		    d->piece.v[q].kind == PC_GAP && IL_START(d->il[o]) && e->to % 8 == 0 &&
		    e->to > d->piece.v[q].start && !d->il[o - 1])
			d->st[o] |= ST_ENTRY;
	}
}

void disc_join(struct disc *d)
{
	tail_jumps(d);
	if (!split_gaps(d))
		d->nomem = true;
	for (uint32_t i = 0; i < d->piece.n; i++) {
		d->piece.v[i].up = i;
		/* what cannot be relocated is left by a tail call, not joined (lock elision's xbegin) */
		if (d->piece.v[i].reason == MAP_R_UNRELOCATABLE && d->piece.v[i].kind == PC_FDE)
			d->st[d->piece.v[i].start - d->lo] |= ST_ENTRY;
	}
	for (uint32_t i = 0; i < d->cross.n; i++)
		if (!(d->st[d->cross.v[i].to - d->lo] & ST_ENTRY))
			unite(d, disc_piece(d, d->cross.v[i].from), disc_piece(d, d->cross.v[i].to));
	for (uint32_t i = 0; i < d->fall.n; i++)
		unite(d, disc_piece(d, d->fall.v[i].from), disc_piece(d, d->fall.v[i].to));
	for (uint32_t i = 0; i < d->ijmp.n; i++) {
		const struct ijmp *j = &d->ijmp.v[i], *o = i ? j - 1 : NULL;
		uint32_t p = disc_piece(d, j->vaddr);

		/* an interpreter's jumps: hundreds, with the same hundreds of targets */
		if (o && j->ntarget && j->ntarget == o->ntarget && in_piece(d, p, o->vaddr) &&
		    !memcmp(j->target, o->target, j->ntarget * sizeof(*j->target)))
			continue;
		for (uint32_t k = 0; k < j->ntarget; k++)
			if (!in_piece(d, p, j->target[k]) && !(d->st[j->target[k] - d->lo] & ST_ENTRY))
				unite(d, p, disc_piece(d, j->target[k]));
	}
	chain(d);
}
