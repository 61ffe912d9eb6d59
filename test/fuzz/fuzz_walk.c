/* SPDX-License-Identifier: MIT
 *
 * fuzz_walk.c - a map, a start state, module records and a stream, straight into the walker
 *
 * The callback ends a walk that gives too much: a hostile map may well describe a loop that needs nothing
 * from the stream, but one that gives no records either is a defect, and shows as a timeout.
 */
#include <stdlib.h>
#include <string.h>
#include "dec.h"
#include "fuzz.h"

#define ENOUGH 200000

static int batch(void *ctx, struct ptrace_rec *rec, size_t n)
{
	size_t *seen = ctx;
	volatile uint8_t sum = 0;

	for (size_t i = 0; i < n; i++) { /* lengths of a block's instructions are in the map */
		const uint8_t *len = (const uint8_t *)(uintptr_t)rec[i].addr;

		for (uint32_t k = 0; rec[i].kind == WALK_BLOCK && k < rec[i].size; k++)
			sum += len[k];
	}
	*seen += n;
	return *seen > ENOUGH;
}

static void names(struct map *m)
{
	for (uint32_t i = 0; i < m->nleader && i < 64; i++) {
		uint64_t run;

		map_leader(m, m->leader[i].vaddr);
		map_leader_of(m, m->leader[i].ops);
		map_block_at(m, m->leader[i].vaddr);
		map_block_of(m, m->leader[i].ops);
		map_rodata(m, m->leader[i].vaddr, 8, &run);
	}
	for (uint32_t i = 0; i < m->ngroup && i < 64; i++)
		map_group_name(m, i);
}

static uint32_t modules(struct modrec *rec, uint32_t max, struct map *m, const uint8_t *b, size_t n)
{
	uint32_t k = 0;

	for (; k < max && n >= sizeof(struct run_module); k++) {
		memcpy(&rec[k].m, b, sizeof(rec[k].m));
		rec[k].m.kind %= 3;
		rec[k].path = (char *)"module";
		rec[k].map = rec[k].m.kind == 1 ? m : NULL;
		if (rec[k].m.size < sizeof(rec[k].m) || rec[k].m.size > n)
			return k + 1;
		b += rec[k].m.size;
		n -= rec[k].m.size;
	}
	return k;
}

static struct start *start_of(struct start *s, uint8_t *b, size_t n)
{
	if (n < sizeof(s->s))
		return NULL;
	memcpy(&s->s, b, sizeof(s->s));
	s->base = b;
	s->size = n;
	s->region = (const void *)(b + sizeof(s->s));
	s->nregion = s->s.nregions;
	if (s->nregion > (n - sizeof(s->s)) / sizeof(*s->region))
		return NULL;
	for (uint32_t i = 0; i < s->nregion; i++)
		if ((s->region[i].prot & RUN_REGION_DUMPED) &&
		    (s->region[i].file_off > n || s->region[i].size > n - s->region[i].file_off))
			return NULL;
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_part part[FZ_KINDS];
	struct modrec rec[16] = {0};
	struct map *m = xcalloc(1, sizeof(*m));
	struct ptrace_error e = {0};
	struct start start = {0};
	uint8_t *map, *st, *mods, *cuts;

	fuzz_split(data, size, part);
	map = fuzz_copy(part[FZ_MAP]);
	st = fuzz_copy(part[FZ_START]);
	mods = fuzz_copy(part[FZ_MODULES]);
	cuts = fuzz_copy(part[FZ_CUTS]);
	fuzz_fix_map(map, part[FZ_MAP].n);
	m->path = xprintf("map");
	if (!map_parse(m, map, part[FZ_MAP].n, &e)) {
		struct proc p = {.pid = 7, .mod = rec};
		struct walk_opts o = {.blocks = true, .verify = true, .memory = 16 << 20, .idle = 1 << 16};
		struct log *log =
			log_mem(part[FZ_STREAM].p ? part[FZ_STREAM].p : data, part[FZ_STREAM].n,
				(const void *)cuts, part[FZ_CUTS].n / sizeof(struct run_cut), size & 1);
		struct walk_result res;
		struct ptrace_stats stats = {0};
		size_t seen = 0;

		names(m);
		p.nmod = modules(rec, NELEM(rec), m, mods, part[FZ_MODULES].n);
		p.start = start_of(&start, st, part[FZ_START].n);
		walk_thread(&p, log, NULL, p.start ? start.s.tid : 7, 0, &o, batch, &seen, &stats, &res);
		walk_result_free(&res);
		log_close(log);
	}
	m->base = NULL; /* ours */
	map_close(m);
	free(map);
	free(st);
	free(mods);
	free(cuts);
	return 0;
}
