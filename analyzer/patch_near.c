/* SPDX-License-Identifier: MIT
 *
 * patch_near.c - a jump of five bytes where there are two to four, in front of another one
 *
 * Rows of `call f; jmp *(%r15)`, eight bytes each of which both are points (php: what opcodes do that are not inlined), leave no
 * byte over for an island, and nothing for a way to one. But the last bytes of a jump's distance may be the first
 * ones of the next point's jump, if both lead to islands that are chosen so:
 *
 *                 t           next
 *   three bytes   e9 aa bb  | e9 cc dd dd dd       t to its end + cce9bbaa, next to its end + ddddddcc
 *   or            2e e9 aa  | e9 cc cc dd dd       t to its end + cccce9aa, next to its end + ddddcccc
 *   or            2e 2e e9  | e9 cc cc cc dd
 *
 * aa, bb, cc and dd are free: t's island is in some stretch of 64 KiB, of 256 bytes, at some address, as often as the
 * text is large; next's at any address that ends in cc. The islands are dead bytes anywhere in the module's text, from which a jump
 * leads on to the copy, wherever that will be. 2e, a segment override, means nothing to a jump (patch.c: prefixes).
 */
#include "patch.h"

/* dead bytes for an island in [lo, hi); AN_NONE if there are none */
static uint32_t find(const struct pp *p, int64_t lo, int64_t hi)
{
	const int64_t first = p->m->text_lo, last = (int64_t)p->m->text_hi - 5;

	lo = lo < first ? first : lo;
	hi = hi > last ? last : hi;
	for (int64_t v = lo; v < hi; v++)
		if (dead(p, (uint32_t)v) && room(p, (uint32_t)v, 5) == 5)
			return (uint32_t)v;
	return AN_NONE;
}

/* an island at from + a multiple of step */
static uint32_t find_at(const struct pp *p, int64_t from, int64_t step)
{
	int64_t v = from + ((int64_t)p->m->text_lo - from) / step * step;

	for (v -= step; v < (int64_t)p->m->text_hi; v += step) {
		uint32_t to = find(p, v, v + 1);

		if (to != AN_NONE)
			return to;
	}
	return AN_NONE;
}

/* t's distance is: `open` bytes as one likes, e9, and `turn` times 256^(open + 1) */
static bool place(struct pp *p, struct point *t, struct point *next, uint32_t open, int64_t turn)
{
	uint32_t n = next->at - t->at, k = n - 1 - open, to, nextto;
	int64_t one = (int64_t)1 << 8 * open, rel = turn * one * 256 + one * 0xe9,
		cycle = (int64_t)1 << 8 * (3 - open);

	if (rel != (int32_t)rel)
		return false;
	to = find(p, t->at + k + 5 + rel, t->at + k + 5 + rel + one);
	if (to == AN_NONE)
		return false;
	take(p, to, 5);
	nextto = find_at(p, next->at + 5 + (turn & (cycle - 1)), cycle);
	if (nextto == AN_NONE) {
		memset(use_at(p, to), FREE, 5);
		return false;
	}
	take(p, nextto, 5);
	t->island = to;
	t->near = MAP_NEAR(n, k);
	next->island = nextto;
	next->near = MAP_NEAR(5, 0);
	t->state = 1;
	p->ps->nisland += 2;
	return true;
}

bool patch_near(struct pp *p, struct point *t, struct point *next)
{
	uint32_t n = next->vaddr - t->at;

	if (next->state != 1 || next->island != AN_NONE || next->at != next->vaddr || n < 2 || n > 4 ||
	    room(p, t->at + 2, n - 2) != n - 2)
		return false;
	take(p, t->at, n);
	for (uint32_t open = n; open-- > 0;) {
		int64_t turns = (((int64_t)p->m->text_hi - p->m->text_lo) >> 8 * (open + 1)) + 1;

		for (int64_t i = 0; i <= turns; i++)
			if (place(p, t, next, open, -1 - i) || place(p, t, next, open, i))
				return true;
	}
	memset(use_at(p, t->at + 2), FREE, n - 2);
	return false;
}
