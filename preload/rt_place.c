/* SPDX-License-Identifier: MIT
 *
 * rt_place.c - where the runtime's memory goes
 *
 * The program must get the addresses from mmap and brk that it would get untraced. So nothing
 * is placed by the kernel's choice: every mapping of ours is at an explicit address.
 *
 *   far:  arena, ring, maps: from RT_BASE upwards, away from the low area, PIE programs, the
 *         mmap area, and the shadows of the sanitizers. ThreadSanitizer and MemorySanitizer also end a program
 *         that has memory where they do not expect a program's: RT_BASE is where they do.
 *   near: copies of text, within ±2 GiB of their module (rel32), as far below it as that
 *         allows; for programs in the low 4 GiB as far above as possible, so that brk has room.
 *         Large ones are aligned for huge pages.
 */
#include "rt.h"

#define RT_BASE 0x554000000000ull /* PIE programs are at 0x555555554000 at least, ptrace-replay below */
#define RT_TRIES 64
#define GUARD (1ull << 20)
#define REACH 0x7fe00000ull /* 2 GiB less slack for what lies between a base and its ends */

static uint64_t try_map(uint64_t at, uint64_t size, int fd, int prot, int flags)
{
	long p = rt_mmap(at, size, prot, flags | MAP_FIXED_NOREPLACE, fd, 0);

	if (rt_err(p))
		return 0;
	if ((uint64_t)p == at)
		return at;
	rt_munmap(p, size); /* a kernel before 4.17 took the address as a hint */
	return 0;
}

int rt_place_init(void)
{
	uint64_t at = RT_BASE;

	for (int i = 0; i < RT_TRIES; i++, at += 1ull << 36) {
		if (try_map(at, RT_ARENA, -1, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)) {
			rt.arena = rt.arena_top = at;
			rt.arena_end = rt.next = at + RT_ARENA;
			return 0;
		}
	}
	return -ENOMEM;
}

uint64_t rt_place_far(uint64_t size, uint64_t align, int fd, int prot, int flags)
{
	uint64_t at = rt.next;

	size = (size + RT_PAGE - 1) & ~(RT_PAGE - 1);
	for (int i = 0; i < RT_TRIES; i++) {
		at = (at + align - 1) & ~(align - 1);
		if (try_map(at, size, fd, prot, flags)) {
			rt.next = at + size + RT_PAGE;
			return at;
		}
		at += size + (64ull << 20);
	}
	return 0;
}

struct gap {
	uint64_t from, to, size; /* window for the whole mapping, and its size */
	uint64_t align;
	uint64_t last_end; /* end of the mapping before */
	uint64_t low, high; /* lowest and highest fitting address, 0 if none */
};

static void gap_test(struct gap *g, uint64_t lo, uint64_t hi)
{
	lo = (lo < g->from ? g->from : lo);
	hi = hi > g->to ? g->to : hi;
	lo = (lo + g->align - 1) & ~(g->align - 1);
	if (lo >= hi || hi - lo < g->size)
		return;
	if (!g->low)
		g->low = lo;
	g->high = (hi - g->size) & ~(g->align - 1);
}

/* The end of the gap is at hi. In a replay the program's memory of later on is as good as there: when it was recorded there were
 * other copies, smaller and fewer. A guard of one MiB on both sides: stacks and heaps grow, and so may neighbours */
static void gap_ends(struct gap *g, uint64_t hi)
{
	uint64_t lo = g->last_end + GUARD;

	for (uint64_t i = 0; rt.replay && i < rt.replay->nfuture; i++) {
		const struct replay_range *f = &rt.replay->future[i];

		if (f->hi + GUARD <= lo || f->lo >= hi)
			continue;
		gap_test(g, lo, f->lo > GUARD ? f->lo - GUARD : 0);
		lo = f->hi + GUARD;
	}
	gap_test(g, lo, hi);
}

static bool gap_vma(const struct rt_vma *v, void *arg)
{
	struct gap *g = arg;

	gap_ends(g, v->lo > GUARD ? v->lo - GUARD : 0);
	g->last_end = v->hi;
	return true;
}

bool rt_place_reaches(uint64_t lo, uint64_t hi, uint64_t at, uint64_t end)
{
	return (lo >= 1ull << 32 || end <= 1ull << 31) && end <= lo + REACH && at + REACH >= hi;
}

uint64_t rt_place_near(uint64_t lo, uint64_t hi, uint64_t size)
{
	struct gap g = {.last_end = 1 << 20};
	bool low = lo < 1ull << 32;

	if (size > REACH || hi - lo > REACH)
		return 0;
	g.size = (size + RT_PAGE - 1) & ~(RT_PAGE - 1);
	g.align = size < RT_HUGE ? RT_PAGE : RT_HUGE;
	g.from = hi > REACH ? hi - REACH : RT_PAGE * 16;
	g.to = lo + REACH;
	if (low && g.to > 1ull << 31)
		g.to = 1ull << 31; /* absolute 32-bit references of a non-PIE stay encodable */
	if (rt_maps(gap_vma, &g))
		return 0;
	gap_ends(&g, 0x7fffffff0000ull);
	if (!g.low)
		return 0;
	return try_map(low ? g.high : g.low, g.size, -1, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
}
