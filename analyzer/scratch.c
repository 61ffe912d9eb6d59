/* SPDX-License-Identifier: MIT
 *
 * scratch.c - see scratch.h
 *
 * When a piece is used up there is one more for as long as something is handed out of it. The first one is enough for most
 * groups.
 *
 * Built with -DSCRATCH_EACH every array is a piece of its own, from malloc: for valgrind and sanitizers, which
 * then see who reads what was never written and who writes beyond the end.
 */
#include <stdlib.h>
#include <string.h>
#include "scratch.h"

#define ALIGN 16
#define FIRST ((size_t)1 << 20) /* bytes of a piece, or as many as are asked for */
#define MORE ((size_t)4 << 20)
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
	size_t size = top ? MORE : FIRST;
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

static void drop(void)
{
	struct piece *p = top;

	top = p->below;
	free(p);
}

struct scratch_mark scratch_mark(void)
{
	return (struct scratch_mark){top, top ? top->used : 0};
}

void scratch_release(struct scratch_mark m)
{
	while (top && top != m.piece && (top->below || EACH)) /* the first one stays */
		drop();
	if (top)
		top->used = m.used;
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
	if (top && !top->below && !top->used)
		drop();
}
