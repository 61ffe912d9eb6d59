/* SPDX-License-Identifier: MIT
 *
 * rt_pages.c - which pages of anonymous memory hold something
 *
 * A program may have reserved terabytes and touched a page here and there: shadow memory of sanitizers, heaps of garbage
 * collectors, pools of databases. Reading them all would take hours and page tables of gigabytes; the kernel
 * knows what is there. PAGEMAP_SCAN (Linux 6.7, include/uapi/linux/fs.h) skips what has no page tables; before, /proc's
 * pagemap has eight bytes for every page (1.5 s a terabyte).
 */
#include "rt.h"

#define PAGEMAP_SCAN 0xc0606610ul /* _IOWR('f', 16, struct scan) */
#define PRESENT (1u << 3)
#define SWAPPED (1u << 4)
#define ZERO_PAGE (1u << 5) /* the kernel's: it has only been read */
#define ENTRIES 2048 /* 16 KiB of them at a time */

struct scan {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t inverted, all_of, any_of, report;
};
struct found {
	uint64_t start, end, what;
};

void rt_pages_open(struct rt_pages *p, uint64_t lo, uint64_t hi)
{
	p->fd = rt_open("/proc/thread-self/pagemap", O_RDONLY, 0);
	p->at = lo;
	p->hi = hi;
	p->no_scan = false;
}

void rt_pages_close(const struct rt_pages *p)
{
	if (!rt_err(p->fd))
		rt_close((int)p->fd);
}

static bool give(struct rt_pages *p, uint64_t *lo, uint64_t *hi, uint64_t from, uint64_t to)
{
	*lo = from;
	*hi = p->at = to;
	return from < to;
}

/* 0 nothing from there on, 1 found, or -errno */
static int by_scan(struct rt_pages *p, uint64_t *lo, uint64_t *hi)
{
	struct found f = {0};
	struct scan s = {.size = sizeof(s),
			 .start = p->at,
			 .end = p->hi,
			 .vec = (uint64_t)&f,
			 .vec_len = 1,
			 .inverted = ZERO_PAGE,
			 .all_of = ZERO_PAGE,
			 .any_of = PRESENT | SWAPPED,
			 .report =
				 ZERO_PAGE}; /* never set in what is found: one stretch, present or swapped */
	long r = rt_sc(__NR_ioctl, p->fd, PAGEMAP_SCAN, &s);

	if (rt_err(r))
		return (int)r;
	return r ? give(p, lo, hi, f.start, f.end) : 0;
}

/* Where it cannot be read, all may hold something. */
static bool by_reading(struct rt_pages *p, uint64_t *lo, uint64_t *hi)
{
	static uint64_t e[ENTRIES];
	uint64_t from = p->hi;

	for (uint64_t at = p->at; at < p->hi;) {
		uint64_t want = (p->hi - at) / RT_PAGE < ENTRIES ? (p->hi - at) / RT_PAGE : ENTRIES;
		long n = rt_err(p->fd) ? p->fd : rt_pread((int)p->fd, e, want * 8, at / RT_PAGE * 8);

		if (n < 8)
			return give(p, lo, hi, from < at ? from : at, p->hi);
		for (long i = 0; i < n / 8; i++, at += RT_PAGE) {
			if (e[i] >> 62 && from == p->hi)
				from = at;
			else if (!(e[i] >> 62) && from < p->hi)
				return give(p, lo, hi, from, at);
		}
	}
	return give(p, lo, hi, from, p->hi);
}

bool rt_pages_next(struct rt_pages *p, uint64_t *lo, uint64_t *hi)
{
	if (p->at < p->hi && !p->no_scan && !rt_err(p->fd)) {
		int r = by_scan(p, lo, hi);

		if (r >= 0)
			return r;
		p->no_scan = true;
	}
	return p->at < p->hi && by_reading(p, lo, hi);
}
