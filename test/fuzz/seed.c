/* SPDX-License-Identifier: MIT
 *
 * seed.c - makes a small fuzz input from a run directory with one traced module
 *
 *   seed RUN-DIRECTORY OUTPUT          parts for fuzz_walk, fuzz_run
 *   seed --start RUN-DIRECTORY OUTPUT  the same, the start state in the stream: as of a forked process
 *   seed --bin RUN-DIRECTORY OUTPUT    a trace for fuzz_bin: as --format=bin, payloads not compressed
 *
 * Sections of the map that only the runtime reads are emptied, of the memory only the top of the stack is
 * kept, the streams are joined and stored uncompressed.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include "../../decoder/out.h"
#include "fuzz.h"

static void part(FILE *f, int kind, const void *p, size_t n)
{
	uint8_t h[4] = {(uint8_t)kind, (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16)};

	if (n >> 24 || fwrite(h, 4, 1, f) != 1 || (n && fwrite(p, n, 1, f) != 1)) {
		fprintf(stderr, "seed: a part is too large, or the disk is full\n");
		exit(1);
	}
}

static void put_map(FILE *f, const struct map *m)
{
	static const bool drop[MAP_NSECTIONS] = {[MAP_COPY] = true,
						 [MAP_FIXUPS] = true,
						 [MAP_PATCHES] = true,
						 [MAP_XLAT] = true,
						 [MAP_SEGS] = true};
	uint8_t *b = xcalloc(m->size, 1);
	struct map_head *h = (void *)b;
	size_t at = (sizeof(*h) + 63) & ~63ul;

	*h = *m->head;
	for (int i = 0; i < MAP_NSECTIONS; i++) {
		struct map_sect *s = &h->sect[i];

		if (drop[i])
			s->size = 0;
		memcpy(b + at, m->base + s->off, s->size);
		s->off = at;
		at = (at + s->size + 63) & ~63ul;
	}
	fuzz_fix_map(b, at);
	part(f, FZ_MAP, b, at);
	free(b);
}

static void put_start(FILE *f, const struct start *s)
{
	uint8_t b[sizeof(s->s) + sizeof(struct run_region) + 1024] = {0};
	struct run_start *h = (void *)b;
	struct run_region *r = (void *)(h + 1);
	uint64_t sp = s->s.gpr[SEM_RSP] & ~15ull;

	*h = s->s;
	h->nregions = 0;
	for (uint32_t i = 0; i < s->nregion; i++) {
		const struct run_region *k = &s->region[i];

		if (!(k->prot & RUN_REGION_DUMPED) || sp < k->addr || sp - k->addr >= k->size)
			continue;
		h->nregions = 1;
		*r = (struct run_region){sp, 1024, k->prot, 0, (uint64_t)((uint8_t *)(r + 1) - b)};
		if (k->size - (sp - k->addr) < r->size)
			r->size = k->size - (sp - k->addr);
		memcpy(r + 1, s->base + k->file_off + (sp - k->addr), r->size);
	}
	part(f, FZ_START, b, sizeof(b));
}

/* RUN_EV_START with what start.bin has; returns the bytes of it */
static size_t start_event(uint8_t *b, const struct start *s)
{
	struct run_thread_start t = {.rip = s->s.rip,
				     .rflags = s->s.rflags,
				     .fsbase = s->s.fsbase,
				     .tsc = s->s.tsc,
				     .flags = RUN_START_FORK,
				     .modules = 1,
				     .stack = s->s.gpr[SEM_RSP],
				     .stack_size = 512};
	uint32_t mark = RUN_MARK_EVENT | RUN_EV_START << RUN_MARK_ID_SHIFT;
	uint64_t size = sizeof(t) + t.stack_size;
	struct mem *m = mem_new(s, 0);

	memcpy(t.gpr, s->s.gpr, sizeof(t.gpr));
	memcpy(b, &mark, 4);
	memcpy(b + 4, &size, 8);
	memcpy(b + 12, &t, sizeof(t));
	mem_read(m, t.stack, b + 12 + sizeof(t), t.stack_size);
	mem_free(m);
	return 12 + size;
}

static void put_stream(FILE *f, const struct thread *t, const struct start *s)
{
	struct ptrace_error e = {0};
	char *path = thread_path(t, t->proc);
	struct log *l = log_open(path, t->at, t->pub.pid, t->pub.tid, t->shared ? LOG_ONE : 0, &e);
	const uint8_t *p = NULL, *end = NULL;
	struct run_chunk c = {.kind = 1};
	struct run_cut cut[64];
	uint8_t *b = NULL, *disk;
	struct log_pause pause;
	size_t n = 0, ncut;

	free(path);
	if (s) {
		b = xcalloc(1, 1024);
		n = start_event(b, s);
	}
	while (l && n < 4096) {
		if (log_need(l, &p, &end, 1)) {
			b = xrealloc(b, n + 1, 1);
			b[n++] = *p++;
		} else if (log_pause(l, &pause) && c.ncut < sizeof(cut) / sizeof(*cut)) {
			cut[c.ncut++] = (struct run_cut){(uint32_t)n - pause.bytes, pause.bytes};
			log_pass(l, &end);
		} else {
			break;
		}
	}
	log_close(l);
	ncut = c.ncut * sizeof(*cut);
	part(f, FZ_STREAM, b, n);
	if (ncut)
		part(f, FZ_CUTS, cut, ncut);
	disk = xcalloc(sizeof(c) + n + ncut, 1);
	c.raw_size = c.disk_size = (uint32_t)(n + ncut);
	memcpy(disk, &c, sizeof(c));
	if (n)
		memcpy(disk + sizeof(c), b, n);
	memcpy(disk + sizeof(c) + n, cut, ncut);
	fuzz_fix_log(disk, sizeof(c) + n + ncut, 7, 7);
	part(f, FZ_LOG, disk, sizeof(c) + n + ncut);
	free(disk);
	free(b);
}

static void put_file(FILE *f, int kind, const char *dir, const char *name)
{
	char *path = xprintf("%s/%s", dir, name);
	size_t n;
	const uint8_t *b = file_map(path, &n, NULL);

	if (b)
		part(f, kind, b, n);
	file_unmap(b, n);
	free(path);
}

static struct ptrace_rec rec[300];
static size_t nrec;

static int collect(void *ctx, const struct ptrace_rec *r, size_t n)
{
	(void)ctx;
	n = n < NELEM(rec) - nrec ? n : NELEM(rec) - nrec;
	memcpy(rec + nrec, r, n * sizeof(*r));
	nrec += n;
	return nrec == NELEM(rec);
}

static void chunk(FILE *f, struct bin_chunk c, const void *p, size_t n)
{
	c.magic = BIN_CHUNK_MAGIC;
	c.raw_size = c.disk_size = n;
	fwrite(&c, sizeof(c), 1, f);
	fwrite(p, 1, n, f);
}

static void put_bin(FILE *f, ptrace_run *r)
{
	struct {
		uint32_t n[2];
		struct ptrace_thread t;
		struct ptrace_module m;
		char path[8];
	} tab = {.n = {1, 1}, .path = "/bin/ls"};
	struct bin_chunk c = {.type = BIN_RECORDS}, t = {.type = BIN_TABLES}, e = {.type = BIN_END};
	struct bin_head h = {BIN_MAGIC, BIN_VERSION, 0};
	struct ptrace_error err = {0};
	uint8_t *raw = xcalloc(BIN_PACK_MAX(NELEM(rec)), 1);
	uint64_t len = 7;
	size_t n;

	ptrace_run_decode(r, 0, collect, NULL, NULL, &err);
	memcpy(&tab.m.path, &len, sizeof(len));
	c.count = nrec;
	e.first = nrec;
	fwrite(&h, sizeof(h), 1, f);
	n = bin_pack(rec, nrec, raw, c.part);
	chunk(f, c, raw, n);
	chunk(f, t, &tab, sizeof(tab) - 1);
	chunk(f, e, "", 0);
	free(raw);
}

static void put_parts(FILE *f, ptrace_run *r, bool start)
{
	put_map(f, r->map[0]);
	if (!start)
		put_start(f, r->proc[0]->start);
	put_file(f, FZ_MODULES, r->proc[0]->dir, "modules.bin");
	put_stream(f, r->thread[0], start ? r->proc[0]->start : NULL);
	put_file(f, FZ_PROC, r->proc[0]->dir, "proc.json");
	put_file(f, FZ_STOP, r->proc[0]->dir, "stop.bin");
}

int main(int argc, char **argv)
{
	bool start = argc == 4 && !strcmp(argv[1], "--start"), bin = argc == 4 && !strcmp(argv[1], "--bin");
	struct ptrace_error e = {0};
	ptrace_run *r =
		argc == 3 + bin + start ? ptrace_run_open(argv[1 + bin + start], NULL, NULL, &e) : NULL;
	FILE *f = r && r->nmap == 1 && r->nthread == 1 ? fopen(argv[2 + bin + start], "wb") : NULL;

	if (!f) {
		fprintf(stderr, "seed: %s\n",
			e.text[0] ? e.text : "[--bin | --start] RUN-DIRECTORY OUTPUT (one module)");
		return 1;
	}
	if (bin)
		put_bin(f, r);
	else
		put_parts(f, r, start);
	ptrace_run_close(r);
	return fclose(f) != 0;
}
