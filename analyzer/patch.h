/* SPDX-License-Identifier: MIT
 *
 * patch.h - what patch.c and patch_near.c share: the points, and whose the original text's bytes are
 */
#ifndef PATCH_H
#define PATCH_H

#include <string.h>
#include "emit.h"

enum { FREE, TAKEN, START, CALL }; /* patches.used */

struct point {
	uint32_t vaddr, at, group, block;
	uint32_t island; /* AN_NONE: five bytes at `at` */
	uint32_t hop; /* AN_NONE: the short jump leads to the island at once */
	uint32_t near; /* 0, or MAP_NEAR that leads to the island (patch_near.c) */
	uint8_t state; /* 0 unplaced, 1 placed, 2 needs an island, 3 impossible, 4 needs one at a distance that is
	                  a prefix of the next point, 5 none is in reach */
};

struct site {
	uint32_t vaddr, end, group, insn;
}; /* a call executed in the original text */

struct pp {
	struct module *m;
	struct patches *ps;
	struct site *site;
	uint32_t nsite;
	uint8_t *bad; /* per group: enum map_reason */
	uint8_t *crowded; /* per group: there was a point too many in it */
};

static inline uint8_t *use_at(const struct pp *p, uint32_t v)
{
	return &p->ps->used[v - p->m->text_lo];
}

static inline bool in_text(const struct pp *p, uint32_t v)
{
	return v >= p->m->text_lo && v < p->m->text_hi;
}

static inline bool dead(const struct pp *p, uint32_t v)
{
	return in_text(p, v) && p->m->live_byte[v - p->m->text_lo] != AN_BYTE_KEEP && *use_at(p, v) == FREE;
}

/* dead bytes from v on, up to n; v itself may be the point's own start */
static inline uint32_t room(const struct pp *p, uint32_t v, uint32_t n)
{
	uint32_t r = 0;

	if (in_text(p, v) && p->m->live_byte[v - p->m->text_lo] != AN_BYTE_KEEP && *use_at(p, v) == START)
		r = 1;
	while (r < n && dead(p, v + r))
		r++;
	return r;
}

static inline void take(const struct pp *p, uint32_t v, uint32_t n)
{
	memset(use_at(p, v), TAKEN, n);
}

/* patch_near.c: places t, whose next point has five bytes; false if there is no island for it */
bool patch_near(struct pp *p, struct point *t, struct point *next);

#endif
