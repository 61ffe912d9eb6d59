/* SPDX-License-Identifier: MIT
 *
 * mem.c - the writable memory of another process, to be compared with itself
 *
 * Private anonymous pages that the process never touched are left untouched: /proc/PID/pagemap says which
 * (Documentation/admin-guide/mm/pagemap.rst). They are zero.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "mem.h"

#define PAGE 4096ull
#define AROUND (64 * PAGE)
#define POPULATED (3ull << 62) /* present, swapped */

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static struct area *add(struct area **a, size_t *n, size_t *cap, uint64_t lo, uint64_t hi)
{
	if (*n == *cap) {
		*cap = *cap ? 2 * *cap : 64;
		*a = realloc(*a, *cap * sizeof(**a));
		if (!*a)
			die("realloc");
	}
	(*a)[*n] = (struct area){.lo = lo, .hi = hi};
	return &(*a)[(*n)++];
}

static void add_run(struct snap *s, uint64_t lo, uint64_t hi)
{
	if (s->nrun && s->run[s->nrun - 1].hi == lo)
		s->run[s->nrun - 1].hi = hi;
	else
		add(&s->run, &s->nrun, &s->cap_run, lo, hi)->at = s->nbytes;
	s->nbytes += hi - lo;
}

static void populated(struct snap *s, uint64_t lo, uint64_t hi)
{
	uint64_t word[512];

	while (lo < hi) {
		uint64_t n = (hi - lo) / PAGE < 512 ? (hi - lo) / PAGE : 512;

		if (pread(s->pagemap, word, n * 8, (off_t)(lo / PAGE * 8)) != (ssize_t)(n * 8))
			return;
		for (uint64_t i = 0; i < n; i++, lo += PAGE)
			if (word[i] & POPULATED)
				add_run(s, lo, lo + PAGE);
	}
}

void snap_maps(struct snap *s, pid_t pid)
{
	char name[64], line[4096];
	FILE *f;

	if (s->pid)
		close(s->pagemap);
	s->pid = pid;
	snprintf(name, sizeof(name), "/proc/%d/pagemap", pid);
	s->pagemap = open(name, O_RDONLY | O_CLOEXEC);
	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	f = fopen(name, "re");
	if (s->pagemap < 0 || !f)
		die(name);
	s->nmap = 0;
	while (fgets(line, sizeof(line), f)) {
		unsigned long lo, hi, ino;
		char prot[8];

		if (sscanf(line, "%lx-%lx %7s %*x %*x:%*x %lu", &lo, &hi, prot, &ino) != 4)
			continue;
		if (prot[1] == 'w') {
			struct area *a = add(&s->map, &s->nmap, &s->cap_map, lo, hi);

			a->blind = prot[0] != 'r';
			a->shared = prot[3] == 's';
			a->zero = prot[3] == 'p' && !ino;
		}
	}
	fclose(f);
}

void snap_same(struct snap *s, const struct snap *as)
{
	if (s->pid)
		close(s->pagemap);
	s->pid = as->pid;
	s->pagemap = dup(as->pagemap);
	s->nmap = 0;
	for (size_t i = 0; i < as->nmap; i++)
		*add(&s->map, &s->nmap, &s->cap_map, 0, 0) = as->map[i];
}

static bool is_near(const struct near *n, uint64_t page)
{
	for (int i = 0; i < n->n; i++)
		if (page + AROUND > n->addr[i] && page < n->addr[i] + AROUND)
			return true;
	return false;
}

static void only_near(struct snap *s, const struct near *n)
{
	struct area *all = s->run;
	size_t nall = s->nrun;

	s->run = NULL;
	s->nrun = s->cap_run = s->nbytes = 0;
	for (size_t i = 0; i < nall; i++)
		for (uint64_t p = all[i].lo; p < all[i].hi; p += PAGE)
			if (is_near(n, p))
				add_run(s, p, p + PAGE);
	free(all);
	s->near = n;
}

/* Of a mapping of a file that is shorter there is nothing to read behind its end: zero on both sides. */
static void fill(const struct snap *s)
{
	memset(s->bytes, 0, s->nbytes);
	for (size_t i = 0; i < s->nrun; i++) {
		uint64_t at = s->run[i].lo;

		while (at < s->run[i].hi) {
			struct iovec l = {s->bytes + s->run[i].at + (at - s->run[i].lo), s->run[i].hi - at};
			struct iovec r = {(void *)at, s->run[i].hi - at};
			ssize_t k = process_vm_readv(s->pid, &l, 1, &r, 1, 0);

			at += k > 0 ? (uint64_t)k : PAGE;
		}
	}
}

void snap_take(struct snap *s, size_t budget, const struct near *n)
{
	s->nrun = s->nbytes = 0;
	s->near = NULL;
	for (size_t i = 0; i < s->nmap; i++)
		if (s->map[i].zero && !s->map[i].blind)
			populated(s, s->map[i].lo, s->map[i].hi);
		else if (!s->map[i].blind)
			add_run(s, s->map[i].lo, s->map[i].hi);
	if (n && s->nbytes > budget)
		only_near(s, n);
	if (s->nbytes > s->cap) {
		free(s->bytes);
		s->cap = s->nbytes + s->nbytes / 2;
		s->bytes = malloc(s->cap);
		if (!s->bytes)
			die("malloc");
	}
	fill(s);
}

static const struct area *find(const struct area *a, size_t n, uint64_t addr)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (a[mid].hi <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n && a[lo].lo <= addr ? &a[lo] : NULL;
}

/* the page's contents; NULL when it is not known */
static const uint8_t *page_of(const struct snap *s, uint64_t page)
{
	static const uint8_t zero[PAGE];
	const struct area *a = find(s->run, s->nrun, page);

	if (a)
		return s->bytes + a->at + (page - a->lo);
	if (s->near && !is_near(s->near, page))
		return NULL;
	a = find(s->map, s->nmap, page);
	return a && a->zero ? zero : NULL;
}

void snap_diff(const struct snap *old, const struct snap *new,
	       void (*differ)(void *arg, uint64_t addr, uint64_t len), void *arg)
{
	for (size_t i = 0; i < new->nrun; i++)
		for (uint64_t p = new->run[i].lo; p < new->run[i].hi; p += PAGE) {
			const uint8_t *a = page_of(old, p), *b = page_of(new, p);

			if (!a || !memcmp(a, b, PAGE))
				continue;
			for (uint64_t k = 0, e; k < PAGE; k = e + 1) {
				for (e = k; e < PAGE && a[e] != b[e]; e++)
					;
				if (e > k)
					differ(arg, p + k, e - k);
			}
		}
}

const struct area *snap_map(const struct snap *s, uint64_t addr)
{
	return find(s->map, s->nmap, addr);
}

void snap_free(struct snap *s)
{
	if (s->pid)
		close(s->pagemap);
	free(s->map);
	free(s->run);
	free(s->bytes);
	memset(s, 0, sizeof(*s));
}
