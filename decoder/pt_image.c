/* SPDX-License-Identifier: MIT
 *
 * pt_image.c - what was where in memory, for libipt and for reading
 *
 *   pieces, sorted, none over another ──▶ regions: pieces without a gap between them ──▶ sections of libipt
 *
 * libipt takes its sections from files, ends a block at the end of a section, and reads an instruction that
 * lies in two of them slowly. Images often come page by page, so pieces that touch become one section: a file in
 * memory. A piece that stands alone, as whole modules do, stays the file that it is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "pt.h"

struct piece {
	uint64_t lo, size;
	const uint8_t *bytes;
	const char *path; /* NULL if no file has them as they are */
	uint64_t offset; /* in path */
};
struct region {
	uint64_t lo, size;
	const uint8_t *bytes;
	int fd; /* with the bytes, -1: they are the one piece's */
};
struct ptimg {
	struct piece *piece;
	size_t npiece, cap;
	struct region *region;
	size_t nregion;
	struct pt_image_section_cache *cache;
	struct pt_image *image;
};

struct ptimg *ptimg_new(void)
{
	return xcalloc(1, sizeof(struct ptimg));
}

static void drop(struct ptimg *g)
{
	pt_image_free(g->image);
	pt_iscache_free(g->cache);
	g->image = NULL;
	g->cache = NULL;
	for (size_t i = 0; i < g->nregion; i++) {
		if (g->region[i].fd < 0)
			continue;
		munmap((void *)g->region[i].bytes, g->region[i].size);
		close(g->region[i].fd);
	}
	free(g->region);
	g->region = NULL;
	g->nregion = 0;
}

void ptimg_free(struct ptimg *g)
{
	if (!g)
		return;
	drop(g);
	for (size_t i = 0; i < g->npiece; i++)
		free((char *)g->piece[i].path);
	free(g->piece);
	free(g);
}

/* room for n pieces at i, instead of the k that were there */
static void splice(struct ptimg *g, size_t i, size_t k, size_t n)
{
	size_t tail = g->npiece - i - k;

	if (g->npiece + n > g->cap) {
		g->cap = 2 * (g->npiece + n);
		g->piece = xrealloc(g->piece, g->cap, sizeof(*g->piece));
	}
	for (size_t j = i; j < i + k; j++)
		free((char *)g->piece[j].path);
	memmove(&g->piece[i + n], &g->piece[i + k], tail * sizeof(*g->piece));
	g->npiece += n - k;
}

static struct piece part(const struct piece *p, uint64_t lo, uint64_t size)
{
	struct piece r = *p;

	r.bytes += lo - p->lo;
	r.offset += lo - p->lo;
	r.lo = lo;
	r.size = size;
	r.path = p->path ? xprintf("%s", p->path) : NULL;
	return r;
}

/* first piece that ends behind addr */
static size_t find(const struct ptimg *g, uint64_t addr)
{
	size_t lo = 0, hi = g->npiece;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (g->piece[mid].lo + g->piece[mid].size - 1 < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int ptimg_add(struct ptimg *g, uint64_t addr, const uint8_t *bytes, uint64_t size, const char *path,
	      uint64_t offset, struct ptrace_error *e)
{
	struct piece p = {addr, size, bytes, path, offset}, add[3];
	uint64_t last = addr + (size - 1);
	size_t i = find(g, addr), k = 0, n = 0;

	if (!size)
		return 0;
	if (last < addr)
		return err_set(e, PTRACE_BAD, "%s at 0x%llx goes beyond the end of memory",
			       path ? path : "an image", (unsigned long long)addr);
	/* what it lies over is cut */
	if (i < g->npiece && g->piece[i].lo < addr)
		add[n++] = part(&g->piece[i], g->piece[i].lo, addr - g->piece[i].lo);
	add[n++] = part(&p, addr, size);
	for (; i + k < g->npiece && g->piece[i + k].lo <= last; k++) {
		struct piece *q = &g->piece[i + k];
		uint64_t qlast = q->lo + (q->size - 1);

		if (qlast > last)
			add[n++] = part(q, last + 1, qlast - last);
	}
	splice(g, i, k, n);
	memcpy(&g->piece[i], add, n * sizeof(*add));
	return 0;
}

static int region_fill(struct region *r, const struct piece *p, size_t n)
{
	uint8_t *b;

	r->fd = memfd_create("ptrace-image", MFD_CLOEXEC);
	if (r->fd < 0)
		return -1;
	b = ftruncate(r->fd, (off_t)r->size)
		    ? MAP_FAILED
		    : mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (b == MAP_FAILED) {
		close(r->fd);
		return -1;
	}
	r->bytes = b;
	for (size_t i = 0; i < n; i++)
		memcpy(b + (p[i].lo - r->lo), p[i].bytes, p[i].size);
	return 0;
}

static int section(struct ptimg *g, const struct region *r, const struct piece *p, struct ptrace_error *e)
{
	char name[40];
	int id;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", r->fd);
	id = r->fd < 0 ? pt_iscache_add_file(g->cache, p->path, p->offset, r->size, r->lo)
		       : pt_iscache_add_file(g->cache, name, 0, r->size, r->lo);
	if (id > 0)
		id = pt_image_add_cached(g->image, g->cache, id, NULL);
	if (id < 0)
		return err_set(e, PTRACE_BAD, "libipt refuses the image at 0x%llx (%s): %s",
			       (unsigned long long)r->lo, p->path ? p->path : "memory",
			       pt_errstr(pt_errcode(id)));
	return 0;
}

struct pt_image *ptimg_build(struct ptimg *g, struct ptrace_error *e)
{
	drop(g);
	g->region = xcalloc(g->npiece, sizeof(*g->region));
	g->cache = pt_iscache_alloc(NULL);
	g->image = pt_image_alloc(NULL);
	/* no limit: a section that is put away loses what libipt has found out about its code */
	if (!g->cache || !g->image || pt_iscache_set_limit(g->cache, UINT64_MAX) < 0) {
		err_set(e, PTRACE_IO, "out of memory");
		return NULL;
	}
	for (size_t i = 0, n; i < g->npiece; i += n) {
		const struct piece *p = &g->piece[i];
		struct region *r = &g->region[g->nregion];

		*r = (struct region){p->lo, p->size, p->bytes, -1};
		for (n = 1; i + n < g->npiece && p[n].lo == r->lo + r->size; n++)
			r->size += p[n].size;
		if ((n > 1 || !p->path) && region_fill(r, p, n)) {
			err_set(e, PTRACE_IO, "cannot make an image of %llu bytes in memory: %s",
				(unsigned long long)r->size, strerror(errno));
			return NULL;
		}
		g->nregion++;
		if (section(g, r, p, e))
			return NULL;
	}
	return g->image;
}

size_t ptimg_read(const struct ptimg *g, uint64_t addr, uint8_t *buf, size_t size)
{
	size_t lo = 0, hi = g->nregion;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		const struct region *r = &g->region[mid];

		if (addr < r->lo) {
			hi = mid;
		} else if (addr - r->lo >= r->size) {
			lo = mid + 1;
		} else {
			if (size > r->size - (addr - r->lo))
				size = r->size - (addr - r->lo);
			memcpy(buf, r->bytes + (addr - r->lo), size);
			return size;
		}
	}
	return 0;
}
