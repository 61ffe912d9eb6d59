/* SPDX-License-Identifier: MIT
 *
 * scratch.c - see scratch.h
 *
 * When a piece is used up the next one is twice as large. Once nothing is handed out any more, one piece as large as all of
 * them takes their place.
 *
 * Built with -DSCRATCH_EACH every array is a piece of its own, from malloc: for valgrind and sanitizers, which
 * then see who reads what was never written and who writes beyond the end.
 */
#include <stdlib.h>
#include <string.h>
#include "scratch.h"

#define ALIGN 16
#define FIRST ((size_t)1 << 20)
#ifdef SCRATCH_EACH
#define EACH 1
#else
#define EACH 0
#endif

struct piece {
	struct piece *below; /* the one used before it */
	size_t size, used, last; /* bytes behind this head; where the array handed out last begins */
};
_Static_assert(sizeof(struct piece) % ALIGN == 0, "what follows is aligned");

static _Thread_local struct piece *top;

static char *at(struct piece *p, size_t off)
{
	return (char *)(p + 1) + off;
}

static size_t round_up(size_t n)
{
	return n ? (n + ALIGN - 1) & ~(size_t)(ALIGN - 1) : ALIGN;
}

/* one more piece, with room for n bytes */
static bool add(size_t n)
{
	size_t size = top ? 2 * top->size : FIRST;
	struct piece *p;

	if (EACH || size < n)
		size = n;
	p = malloc(sizeof(*p) + size);
	if (!p)
		return false;
	*p = (struct piece){top, size, 0, 0};
	top = p;
	return true;
}

static size_t drop(void)
{
	struct piece *p = top;
	size_t size = p->size;

	top = p->below;
	free(p);
	return size;
}

struct scratch_mark scratch_mark(void)
{
	bool none = !top || (!top->used && !top->below); /* that piece may be another one by then */

	return none ? (struct scratch_mark){NULL, 0} : (struct scratch_mark){top, top->used};
}

void scratch_release(struct scratch_mark m)
{
	size_t size = 0;

	while (top && top != m.piece && (m.piece || top->below || EACH))
		size += drop();
	if (top)
		top->used = m.used;
	if (!m.piece && size && !EACH) {
		size += drop();
		add(size); /* if not now, later */
	}
}

void *scratch(size_t n)
{
	void *a;

	n = round_up(n);
	if ((EACH || !top || n > top->size - top->used) && !add(n))
		return NULL;
	a = at(top, top->used);
	top->last = top->used;
	top->used += n;
	return a;
}

void *scratch_zero(size_t n)
{
	void *a = scratch(n);

	return a ? memset(a, 0, n) : NULL;
}

void *scratch_more(void *old, size_t was, size_t n)
{
	void *a;

	if (old && old == at(top, top->last) && n <= top->size - top->last) {
		top->used = top->last + round_up(n);
		return old;
	}
	a = scratch(n);
	return a && old ? memcpy(a, old, was < n ? was : n) : a;
}

void scratch_end(void)
{
	if (scratch_mark().piece)
		return;
	while (top)
		drop();
}
