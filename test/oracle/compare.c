/* SPDX-License-Identifier: MIT
 *
 * compare.c - do the oracle and the tracer agree, record for record?
 *
 *	compare ORACLE.raw TRACE.raw --ranges FILE [--threads FILE] [--show-opaque N] [--prefix] [--lossy]
 *	compare --dump FILE.raw
 *
 * FILE lists the code the tracer traced, `START END NAME` in hex, END exclusive, as
 * `ptrace-decode --ranges` prints it. Oracle records from elsewhere ran opaque: the
 * tracer cannot have them, so they are skipped and counted. Each thread is compared by itself. The file
 * of --threads has a line for each thread of ORACLE, in its order: that thread's number in TRACE.
 * Without it the first threads are compared. Records of further threads in TRACE are skipped and counted;
 * ORACLE may have none.
 * With --prefix, for traces that stop before the program does, TRACE may end early. With --lossy, for traces with gaps,
 * records may be missing anywhere: those that TRACE has must be in ORACLE, in the same order.
 *
 * Exit status: 0 equal (or a prefix), 1 diverged, 2 usage or input error.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace.h"

#define CONTEXT 8

struct trace {
	const char *path;
	const struct ptrace_rec *rec;
	size_t n, at;
};

struct range {
	uint64_t start, end;
	char name[96];
};

static struct range *ranges;
static size_t nranges;
static uint32_t *pairs; /* of oracle thread i: the trace's */
static size_t npairs;

static void fail(const char *path, const char *why)
{
	fprintf(stderr, "compare: %s: %s\n", path, why);
	exit(2);
}

static void trace_open(struct trace *t, const char *path)
{
	const struct ptrace_raw_head *head;
	struct stat st;
	int fd = open(path, O_RDONLY);

	t->path = path;
	t->at = 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		fail(path, strerror(errno));
	if ((size_t)st.st_size < sizeof(*head))
		fail(path, "too short for a raw trace");
	head = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (head == MAP_FAILED)
		fail(path, strerror(errno));
	close(fd);
	madvise((void *)head, st.st_size, MADV_SEQUENTIAL);
	if (head->magic != PTRACE_RAW_MAGIC)
		fail(path, "not a raw trace (bad magic)");
	if (head->version != PTRACE_RAW_VERSION || head->rec_size != sizeof(struct ptrace_rec))
		fail(path, "raw trace of another version");
	if ((st.st_size - sizeof(*head)) % sizeof(struct ptrace_rec))
		fail(path, "ends inside a record");
	t->rec = (const struct ptrace_rec *)(head + 1);
	t->n = (st.st_size - sizeof(*head)) / sizeof(struct ptrace_rec);
}

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void ranges_read(const char *path)
{
	char line[4352];
	size_t max = 0, kept = 0;
	FILE *f = fopen(path, "re");

	if (!f)
		fail(path, strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		struct range r = {0};

		if (line[0] == '\n' || line[0] == '#')
			continue;
		if (sscanf(line, "%" SCNx64 " %" SCNx64 " %95s", &r.start, &r.end, r.name) < 2 ||
		    r.start >= r.end)
			fail(path, "a line is not `START END NAME`");
		if (nranges == max) {
			max = max ? 2 * max : 256;
			ranges = realloc(ranges, max * sizeof(*ranges));
			if (!ranges)
				fail(path, "no memory");
		}
		ranges[nranges++] = r;
	}
	fclose(f);
	qsort(ranges, nranges, sizeof(*ranges), by_start);
	/* Merge, so that a lookup is one binary search. */
	for (size_t i = 0; i < nranges; i++) {
		if (kept && ranges[i].start <= ranges[kept - 1].end) {
			if (ranges[i].end > ranges[kept - 1].end)
				ranges[kept - 1].end = ranges[i].end;
		} else {
			ranges[kept++] = ranges[i];
		}
	}
	nranges = kept;
}

static bool is_traced(uint64_t ip)
{
	static size_t last;
	size_t lo = 0, hi = nranges;

	if (last < nranges && ip >= ranges[last].start && ip < ranges[last].end)
		return true;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (ip < ranges[mid].start) {
			hi = mid;
		} else if (ip >= ranges[mid].end) {
			lo = mid + 1;
		} else {
			last = mid;
			return true;
		}
	}
	return false;
}

static bool same(const struct ptrace_rec *a, const struct ptrace_rec *b)
{
	return a->ip == b->ip && a->addr == b->addr && a->size == b->size && a->kind == b->kind;
}

static void print_rec(const char *tag, size_t i, const struct ptrace_rec *r)
{
	printf("%s %10zu  ip %12" PRIx64 "  %c %16" PRIx64 " %5u%s\n", tag, i, r->ip,
	       r->kind < 3 ? "RWP"[r->kind] : '?', r->addr, r->size, r->kind < 3 ? "" : "  (bad kind)");
}

/* The records around `at`: those before it, a marker line, it and those after it. */
static void print_context(const char *tag, const struct trace *t, bool mark_opaque)
{
	size_t from = t->at > CONTEXT ? t->at - CONTEXT : 0;
	size_t to = t->at + CONTEXT < t->n ? t->at + CONTEXT + 1 : t->n;

	printf("--- %s: %s, %zu records\n", tag, t->path, t->n);
	for (size_t i = from; i < to; i++) {
		bool opaque = mark_opaque && !is_traced(t->rec[i].ip);

		print_rec(i == t->at ? "=>" : opaque ? " o" : "  ", i, &t->rec[i]);
	}
	if (t->at >= t->n)
		printf("=> %10zu  (end)\n", t->n);
}

static void skip_opaque(struct trace *o, uint32_t tid, size_t *opaque)
{
	for (; o->at < o->n; o->at++) {
		if (o->rec[o->at].tid != tid)
			continue;
		if (is_traced(o->rec[o->at].ip))
			return;
		++*opaque;
	}
}

static void skip_threads(struct trace *t, uint32_t tid)
{
	while (t->at < t->n && t->rec[t->at].tid != tid)
		t->at++;
}

static size_t count_thread(const struct trace *t, uint32_t tid)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += t->rec[i].tid == tid;
	return n;
}

static void pairs_read(const char *path)
{
	FILE *f = fopen(path, "re");
	unsigned n;

	if (!f)
		fail(path, strerror(errno));
	while (fscanf(f, "%u", &n) == 1) {
		pairs = realloc(pairs, (npairs + 1) * sizeof(*pairs));
		if (!pairs)
			fail(path, "no memory");
		pairs[npairs++] = n;
	}
	fclose(f);
}

/* Where the opaque records come from: by page, the heaviest first. */
static void show_opaque(const struct trace *o, size_t top)
{
	struct {
		uint64_t page;
		size_t n;
	} seen[4096] = {0};
	size_t lost = 0;

	for (size_t i = 0; i < o->n; i++) {
		uint64_t page = o->rec[i].ip >> 12;
		size_t h = page * 0x9e3779b97f4a7c15ull >> 52, tries = 0;

		if (is_traced(o->rec[i].ip))
			continue;
		while (seen[h].n && seen[h].page != page && tries++ < 4096)
			h = (h + 1) % 4096;
		if (tries >= 4096) {
			lost++;
			continue;
		}
		seen[h].page = page;
		seen[h].n++;
	}
	for (size_t k = 0; k < top; k++) {
		size_t best = 0;

		for (size_t i = 1; i < 4096; i++) {
			if (seen[i].n > seen[best].n)
				best = i;
		}
		if (!seen[best].n)
			break;
		printf("opaque: %zu records at code page %" PRIx64 "000\n", seen[best].n, seen[best].page);
		seen[best].n = 0;
	}
	if (lost)
		printf("opaque: %zu records at further pages\n", lost);
}

static bool prefix, lossy;

/* A gap: on to the next record that is as t's. False, and where it was, when there is none. */
static bool skip_lost(struct trace *o, uint32_t otid, const struct trace *t, size_t *opaque)
{
	size_t was = o->at;

	if (!lossy || t->at == t->n)
		return false;
	while (o->at < o->n && !same(&o->rec[o->at], &t->rec[t->at])) {
		o->at++;
		skip_opaque(o, otid, opaque);
	}
	if (o->at == o->n) {
		o->at = was;
		return false;
	}
	return true;
}

/* One thread of each; false when they differ. Adds to the sums. */
static bool compare_thread(struct trace *o, uint32_t otid, struct trace *t, uint32_t ttid, size_t *equal,
			   size_t *opaque, bool *whole)
{
	size_t same_here = 0;

	o->at = t->at = 0;
	for (;;) {
		skip_opaque(o, otid, opaque);
		skip_threads(t, ttid);
		if (t->at == t->n && (o->at == o->n || prefix || lossy))
			break;
		if ((o->at == o->n || t->at == t->n || !same(&o->rec[o->at], &t->rec[t->at])) &&
		    !skip_lost(o, otid, t, opaque)) {
			printf("first divergence of thread %u after %zu equal records\n", otid, same_here);
			print_context("oracle", o, true);
			print_context("traced", t, false);
			*equal += same_here;
			return false;
		}
		o->at++;
		t->at++;
		same_here++;
	}
	*equal += same_here;
	*whole &= o->at == o->n;
	return true;
}

static int compare(struct trace *o, struct trace *t, size_t top)
{
	size_t opaque = 0, paired_o = 0, paired_t = 0, equal = 0, diverged = 0;
	bool whole = true;

	for (uint32_t i = 0; i < npairs; i++) {
		paired_o += count_thread(o, i);
		paired_t += count_thread(t, pairs[i]);
		diverged += !compare_thread(o, i, t, pairs[i], &equal, &opaque, &whole);
	}
	if (paired_o != o->n) {
		printf("%zu records of threads that have no counterpart in the trace\n", o->n - paired_o);
		diverged++;
	}
	if (top)
		show_opaque(o, top);
	if (paired_t != t->n)
		printf("skipped %zu records of other threads\n", t->n - paired_t);
	printf("compare: oracle=%zu traced=%zu equal=%zu opaque=%zu opaque_share=%.4f%% ", o->n, paired_t,
	       equal, opaque, o->n ? 100.0 * opaque / o->n : 0.0);
	if (lossy)
		printf("lost=%zu ", o->n - opaque - equal);
	if (npairs > 1)
		printf("threads=%zu ", npairs);
	printf("result=%s\n", diverged ? "diverged" : whole ? "equal" : "prefix");
	return diverged != 0;
}

static int dump(const char *path)
{
	struct trace t;

	trace_open(&t, path);
	for (size_t i = 0; i < t.n; i++) {
		char tag[16];

		snprintf(tag, sizeof(tag), "%2u", (unsigned)t.rec[i].tid);
		print_rec(tag, i, &t.rec[i]);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *files[2] = {NULL, NULL}, *range_file = NULL, *pair_file = NULL;
	size_t nfiles = 0, top = 0;
	struct trace o, t;

	if (argc == 3 && !strcmp(argv[1], "--dump"))
		return dump(argv[2]);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--ranges") && i + 1 < argc)
			range_file = argv[++i];
		else if (!strcmp(argv[i], "--threads") && i + 1 < argc)
			pair_file = argv[++i];
		else if (!strcmp(argv[i], "--show-opaque") && i + 1 < argc)
			top = strtoul(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--prefix"))
			prefix = true;
		else if (!strcmp(argv[i], "--lossy"))
			lossy = true;
		else if (argv[i][0] != '-' && nfiles < 2)
			files[nfiles++] = argv[i];
		else
			nfiles = 3;
	}
	if (nfiles != 2 || !range_file) {
		fprintf(stderr, "usage: compare ORACLE.raw TRACE.raw --ranges FILE [--threads FILE] "
				"[--show-opaque N] "
				"[--prefix] [--lossy]\n"
				"       compare --dump FILE.raw\n");
		return 2;
	}
	ranges_read(range_file);
	if (pair_file) {
		pairs_read(pair_file);
	} else {
		static uint32_t first;

		pairs = &first;
		npairs = 1;
	}
	trace_open(&o, files[0]);
	trace_open(&t, files[1]);
	return compare(&o, &t, top);
}
